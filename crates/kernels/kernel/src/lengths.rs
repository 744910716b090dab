//! The axes of the matrix of a spinlock inside the kernel.

use locklab_host::error::Error;
use serde::{Deserialize, Serialize};

/// The most cells for which the guest has room.
const MOST_CELLS: usize = 1024;
/// The length of the longest list that the guest can read, in bytes.
const LONGEST_LIST: usize = 250;

/// The axes of the matrix. A length of n is n + 1 units of about 15 cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lengths {
    /// Threads that want the lock.
    pub threads: Vec<u64>,
    /// Units under the lock.
    pub critical: Vec<u64>,
    /// Units without the lock.
    pub non_critical: Vec<u64>,
}

impl Default for Lengths {
    fn default() -> Self {
        Self {
            threads: vec![1, 2, 4, 8, 16, 32, 64],
            critical: vec![0, 1, 2, 4, 8, 16, 32, 64, 128],
            non_critical: vec![1, 32],
        }
    }
}

impl Lengths {
    /// Returns the numbers of threads that have a CPU each.
    #[must_use]
    pub fn threads(&self, vcpus: u64) -> Vec<u64> {
        let mut threads = self.threads.clone();
        threads.retain(|n| *n <= vcpus);
        threads
    }

    /// Returns a description of the cells that are left out.
    #[must_use]
    pub fn left_out(&self, vcpus: u64) -> Option<String> {
        let out: Vec<String> = self
            .threads
            .iter()
            .filter(|n| **n > vcpus)
            .map(u64::to_string)
            .collect();
        (!out.is_empty()).then(|| {
            format!(
                "cells of {} threads, as the guest has {vcpus} vCPU{}",
                out.join(", "),
                if vcpus == 1 { "" } else { "s" }
            )
        })
    }

    /// Checks the axes.
    ///
    /// # Errors
    /// If an axis has no number, too many or one twice, threads are zero, no
    /// cell fits the vCPUs, or there are more cells than the guest can hold.
    pub fn check(&self, vcpus: u64) -> Result<(), Error> {
        for (name, list) in [
            ("threads", &self.threads),
            ("critical", &self.critical),
            ("non_critical", &self.non_critical),
        ] {
            let length: usize = list.iter().map(|n| n.to_string().len() + 1).sum();
            if list.is_empty() || length > LONGEST_LIST {
                return Err(Error::Usage(format!(
                    "{name} of a spinlock matrix takes 1 to 50 numbers"
                )));
            }
            let mut sorted = list.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() != list.len() {
                return Err(Error::Usage(format!(
                    "{name} of a spinlock matrix has a number twice"
                )));
            }
        }
        if self.threads.contains(&0) {
            return Err(Error::Usage(
                "threads of a spinlock matrix start at 1".into(),
            ));
        }
        let threads = self.threads(vcpus).len();
        if threads == 0 {
            return Err(Error::Usage(format!(
                "every cell of the spinlock matrix has more threads than the guest has vCPUs \
                 ({vcpus}); give more with --vcpus"
            )));
        }
        if threads * self.critical.len() * self.non_critical.len() > MOST_CELLS {
            return Err(Error::Usage(format!(
                "a spinlock matrix has at most {MOST_CELLS} cells"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_that_makes_no_sense_is_refused() {
        let refused = |threads: &[u64], vcpus, part: &str| {
            let why = Lengths {
                threads: threads.to_vec(),
                ..Lengths::default()
            }
            .check(vcpus)
            .unwrap_err()
            .to_string();
            assert!(why.contains(part), "{why}");
        };
        refused(&[], 1, "takes 1 to 50 numbers");
        refused(&[0, 1], 1, "start at 1");
        refused(&[1, 1], 1, "a number twice");
        refused(&[2, 4], 1, "give more with --vcpus");
    }
}
