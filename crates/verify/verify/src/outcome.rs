//! Says what came of an exploration.
//!
//! Must never call an exploration that was cut short complete.

use crate::trace::Step;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Tells what came of exploring a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Says that every execution within the bound keeps the promise.
    Holds,
    /// Says that no execution explored breaks it, but some were left out that are
    /// within every bound: [`Explored::left_out`] names them.
    Cut,
    /// Holds an execution that breaks it.
    Fails(Failure),
}

/// Describes an execution that breaks a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Says which promise is broken, as a sentence.
    pub message: String,
    /// Holds what each thread did, in order.
    pub trace: Vec<Step>,
}

/// Holds the outcome of an exploration and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explored {
    /// Tells what came of it.
    pub outcome: Outcome,
    /// Bounds the preemptions in an execution; `None`: any number.
    pub preemptions: Option<usize>,
    /// Counts the executions that were run within that bound.
    pub executions: u64,
    /// Gives the time that it took, other bounds included: CPU time, if it had a
    /// process of its own.
    pub took: Duration,
    /// Names what was left out of one that was cut, a sentence each.
    pub left_out: Vec<String>,
    /// Counts the schedules that were drawn of one that was cut.
    pub schedules: u64,
    /// Tells in how many of its executions two reads of a word came in either order.
    pub reads: Reads,
    /// Says whether each execution was explored once, as a graph.
    pub every: bool,
}

/// Tells how far the order of two reads of a word was explored, which matters where one
/// of the readers writes it afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Means either order, in all that was explored.
    Either,
    /// Means either order, in a second exploration.
    Within {
        /// Bounds its preemptions; `None`: any number.
        preemptions: Option<usize>,
        /// Counts its executions.
        executions: u64,
    },
    /// Means one order only.
    #[default]
    One,
}

impl Reads {
    /// Returns whether either order was explored within this bound on preemptions.
    #[must_use]
    pub fn reach(self, bound: Option<usize>) -> bool {
        match (self, bound) {
            (Self::Either, _)
            | (
                Self::Within {
                    preemptions: None, ..
                },
                _,
            ) => true,
            (Self::Within { preemptions, .. }, bound) => bound.is_some() && preemptions >= bound,
            (Self::One, _) => false,
        }
    }
}

impl Explored {
    /// Returns the outcome of an exploration whose process a failure has ended.
    pub(crate) fn crashed(failure: Failure, preemptions: Option<usize>, executions: u64) -> Self {
        Self {
            outcome: Outcome::Fails(failure),
            preemptions,
            executions,
            took: Duration::ZERO,
            left_out: Vec::new(),
            schedules: 0,
            reads: Reads::One,
            every: false,
        }
    }
}
