//! The specification of a native matrix: locks, lengths, threads, slices.
//!
//! It does not describe how it is measured and checks nothing; see
//! [`crate::plan`].

use locklab_workload::{Cells, MOST_THREADS};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The specification of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the baseline lock.
    pub baseline: String,
    /// Name of the experiment lock.
    pub experiment: String,
    /// Holds what threads do.
    #[serde(flatten)]
    pub cells: Cells,
    /// The recorded program that is replayed instead of turns of these lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// CPUs to pin to, in this order; `None`: cores, then siblings, then
    /// other nodes.
    pub pin: Option<Vec<usize>>,
    /// Processes and shared memory instead of threads.
    pub processes: bool,
    /// Measured part of a slice; `None`: found for each cell by a short
    /// calibration.
    pub slice: Option<Duration>,
    /// Code layout of both locks; `None`: drawn for each pair of slices.
    pub layout: Option<usize>,
    /// The time limit of all cells together.
    pub time: Duration,
}

const _: () = assert!(MOST_THREADS == locklab_locks::MAX_CPUS);

/// Returns one thread, half the CPUs and all of them. More threads than CPUs measure
/// the scheduler with the lock, and take the time of the others: they are on
/// request.
#[must_use]
pub fn default_threads(cpus: usize) -> Vec<usize> {
    let mut threads = vec![1, (cpus / 2).max(1), cpus];
    threads.dedup();
    threads.retain(|n| *n <= MOST_THREADS);
    threads
}

impl Spec {
    /// Returns two locks with one thread and with two, everything else as in the
    /// command's defaults.
    #[must_use]
    pub fn new(baseline: &str, experiment: &str) -> Self {
        Self {
            baseline: baseline.into(),
            experiment: experiment.into(),
            cells: Cells::default(),
            trace: None,
            pin: None,
            processes: false,
            slice: None,
            layout: None,
            time: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_matrix_goes_from_one_thread_to_as_many_as_there_are_cpus() {
        assert_eq!(default_threads(1), [1]);
        assert_eq!(default_threads(2), [1, 2]);
        assert_eq!(default_threads(8), [1, 4, 8]);
    }
}
