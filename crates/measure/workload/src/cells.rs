//! Declares what the threads of a comparison of locks do, in all of its cells.
//!
//! It is declared here once: for two locks and for many, measured and simulated,
//! of a command or a file. A store keeps it, so a field that exists must
//! never change its name or its meaning.

use crate::mix::{self, Mix, Unit};
use locklab_host::error::Error;
use serde::{Deserialize, Serialize};

/// The cells: every combination of these threads, lengths and numbers of locks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub critical: Vec<u64>,
    /// Lengths of the non-critical section.
    pub non_critical: Vec<u64>,
    /// The unit of the lengths.
    #[serde(default)]
    pub unit: Unit,
    /// The content of the critical section.
    pub work: Work,
    /// Numbers of locks that are used at once.
    #[serde(default = "mix::one_lock", skip_serializing_if = "mix::is_one_lock")]
    pub locks: Vec<u32>,
    /// Says what a turn does beyond its lengths.
    #[serde(default, skip_serializing_if = "Mix::is_usual")]
    pub mix: Mix,
    /// Says whether the latency of each acquisition is asked for too.
    pub latency: bool,
}

/// The acquisitions whose waits are asked for; each asks for all before it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// No waits are asked for.
    None,
    /// The waits of all threads together.
    All,
    /// The waits of all threads together, and of readers and of writers apart.
    ByUse,
}

/// The most threads: locks can name no more.
pub const MOST_THREADS: usize = (1 << 14) - 1;

/// A cell: threads, critical and non-critical length, number of locks.
pub type Place = [u64; 4];

/// The content of the critical section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "arguments", derive(clap::ValueEnum, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Units of computation and copying, of the given lengths
    #[default]
    Units,
    /// One fstat(2) on a file of the thread's own
    Fstat,
}

impl Work {
    /// Returns its name in a file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Units => "units",
            Self::Fstat => "fstat",
        }
    }
}

impl Default for Cells {
    /// Returns one lock with one thread and with two, and the shortest lengths that differ
    /// from none.
    fn default() -> Self {
        Self {
            threads: vec![1, 2],
            critical: vec![1],
            non_critical: vec![1],
            unit: Unit::Units,
            work: Work::Units,
            locks: mix::one_lock(),
            mix: Mix::default(),
            latency: false,
        }
    }
}

impl Cells {
    /// Returns each cell, in the order of reports.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for &locks in &self.locks {
            for &non_critical in &self.non_critical {
                for &threads in &self.threads {
                    for &critical in &self.critical {
                        places.push([threads as u64, critical, non_critical, locks.into()]);
                    }
                }
            }
        }
        places
    }

    /// Returns the most threads of a cell; 0 if there is no cell.
    #[must_use]
    pub fn most_threads(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(0)
    }

    /// Returns the acquisitions whose waits are asked for: readers and writers are
    /// apart where there are both.
    #[must_use]
    pub fn waits(&self) -> Waits {
        match self.latency {
            false => Waits::None,
            true if self.mix.has_both() => Waits::ByUse,
            true => Waits::All,
        }
    }

    /// Returns whether every turn takes the one lock, and is like every other.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        self.mix.is_usual() && mix::is_one_lock(&self.locks)
    }

    /// Returns whether the numbers of what a turn does make sense.
    ///
    /// # Errors
    /// The first number that makes none.
    pub fn check(&self) -> Result<(), Error> {
        self.mix.check(&self.locks)
    }

    /// Returns what is not as usual, in words; empty if nothing is.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        self.mix.words(&self.locks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_cells_is_that_of_reports() {
        let cells = Cells {
            critical: vec![0, 4],
            locks: vec![1, 2],
            ..Cells::default()
        };
        let places = cells.places();
        assert_eq!(places[..3], [[1, 0, 1, 1], [1, 4, 1, 1], [2, 0, 1, 1]]);
        assert_eq!(places[4], [1, 0, 1, 2]);
        assert_eq!((places.len(), cells.most_threads()), (8, 2));
    }

    #[test]
    fn what_is_as_usual_is_not_stored() {
        let text = serde_json::to_string(&Cells::default()).unwrap();
        assert_eq!(
            text,
            r#"{"threads":[1,2],"critical":[1],"non_critical":[1],"unit":"units","work":"units","latency":false}"#
        );
        assert_eq!(
            serde_json::from_str::<Cells>(&text).unwrap(),
            Cells::default()
        );
    }
}
