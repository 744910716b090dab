//! Says how far an exploration may go, and what is left of that as it goes on.
//!
//! Must never depend on what is explored.

use crate::journal::Journal;
use std::time::{Duration, Instant};

/// Limits an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Counts the executions after which the exploration is cut.
    pub executions: u64,
    /// Counts the steps, of all executions together, after which it is cut.
    pub steps: u64,
    /// Gives the time after which it is cut.
    pub duration: Duration,
    /// Says whether loom explores what the engine of graphs has explored, too.
    pub both: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            executions: u64::MAX,
            steps: u64::MAX,
            duration: Duration::MAX,
            both: false,
        }
    }
}

/// Keeps account of what is left of limits as an exploration goes on.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    limits: Limits,
    began: Instant,
    /// Counts the steps of this process until then.
    before: u64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            began: Instant::now(),
            before: Journal::current().steps(),
        }
    }

    /// Returns the time since it was made.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the number of steps since then.
    pub(crate) fn spent(&self) -> u64 {
        Journal::current().steps() - self.before
    }

    /// Returns limits of so many executions, and of what is left of the rest.
    pub(crate) fn left(&self, executions: u64) -> Limits {
        Limits {
            executions,
            steps: self.limits.steps.saturating_sub(self.spent()),
            duration: self.limits.duration.saturating_sub(self.elapsed()),
            both: self.limits.both,
        }
    }
}

/// Ends an execution that has more branches: the lock makes no progress. A wait that looks
/// for deadlocks reads six words a turn, so four CPUs that all wait a while take half of it.
pub(crate) const MAX_BRANCHES: usize = 10_000;
