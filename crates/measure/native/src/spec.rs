//! The specification of a native matrix: locks, lengths, threads, slices.
//!
//! It does not describe how it is measured and checks nothing; see
//! [`crate::plan`].

use locklab_lab::workload::Work;
pub use locklab_workload::Unit;
use locklab_workload::{Mix, mix};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The specification of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the baseline lock.
    pub baseline: String,
    /// Name of the experiment lock.
    pub experiment: String,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub critical: Vec<u64>,
    /// Lengths of the non-critical section.
    pub non_critical: Vec<u64>,
    /// The unit of the lengths.
    pub unit: Unit,
    /// The content of the critical section.
    pub work: Work,
    /// Numbers of locks that are used at once.
    #[serde(default = "mix::one_lock", skip_serializing_if = "mix::is_one_lock")]
    pub locks: Vec<u32>,
    /// What a turn does beyond its lengths.
    #[serde(default, skip_serializing_if = "Mix::is_usual")]
    pub mix: Mix,
    /// The recorded program that is replayed instead of turns of these lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// CPUs to pin to, in this order; `None`: cores, then siblings, then
    /// other nodes.
    pub pin: Option<Vec<usize>>,
    /// Processes and shared memory instead of threads.
    pub processes: bool,
    /// Whether acquisition latency is measured.
    pub latency: bool,
    /// Measured part of a slice; `None`: found for each cell by a short
    /// calibration.
    pub slice: Option<Duration>,
    /// Code layout of both locks; `None`: drawn for each pair of slices.
    pub layout: Option<usize>,
    /// The time limit of all cells together.
    pub time: Duration,
}

/// One thread, half the CPUs and all of them. More threads than CPUs measure
/// the scheduler with the lock, and take the time of the others: they are on
/// request.
#[must_use]
pub fn default_threads(cpus: usize) -> Vec<usize> {
    let mut threads = vec![1, (cpus / 2).max(1), cpus];
    threads.dedup();
    threads.retain(|n| *n <= locklab_locks::MAX_CPUS);
    threads
}

impl Spec {
    /// Two locks with one thread and with two, everything else as in the
    /// command's defaults.
    #[must_use]
    pub fn new(baseline: &str, experiment: &str) -> Self {
        Self {
            baseline: baseline.into(),
            experiment: experiment.into(),
            threads: vec![1, 2],
            critical: vec![1],
            non_critical: vec![1],
            unit: Unit::Units,
            work: Work::Units,
            locks: mix::one_lock(),
            mix: Mix::default(),
            trace: None,
            pin: None,
            processes: false,
            latency: false,
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
