//! One run of one side, and two that belong together: their values, where their
//! CPUs were, and the reason if they do not count. A pair that does not count is
//! kept, never dropped.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Figures of one run by the names of their metrics.
pub type Values = BTreeMap<String, f64>;

/// The reason why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum Invalid {
    /// It did not finish, or gave no figure. The pair is set aside and the
    /// others stand.
    Failed(String),
    /// The machine disturbed it, and still did when the pair had been repeated.
    /// The pair is set aside and does not count as a failure. (Version 0.2
    /// also set pairs aside whose CPUs had moved.)
    #[serde(alias = "placement_moved")]
    Disturbed(String),
    /// A counter did not run all the time. The pair is set aside.
    Counter(String),
    /// The workload's own check failed, such as mutual exclusion. Never
    /// tolerated: nothing in this cell counts.
    CheckFailed(String),
    /// It was never run: the experiment was interrupted after the other run of
    /// its pair. Such a half is stored, and its pair is run again.
    Interrupted(String),
}

impl Invalid {
    /// Returns why the sample is invalid, as one sentence.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Failed(why)
            | Self::Disturbed(why)
            | Self::Counter(why)
            | Self::CheckFailed(why)
            | Self::Interrupted(why) => why,
        }
    }
}

/// One run of one side in one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds from the start of the experiment to the start of the run, where
    /// the backend has a clock: the time axis of charts of drift.
    pub started: Option<f64>,
    /// Holds what it measured, by the names of the metrics and in their units.
    pub values: Values,
    /// The placement of its CPUs, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The reason why it does not count, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Invalid>,
    /// Data that only its backend knows; no other code reads it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

impl Sample {
    /// Returns a sample that does not count.
    #[must_use]
    pub fn invalid(invalid: Invalid) -> Self {
        Self {
            invalid: Some(invalid),
            ..Self::default()
        }
    }
}

/// Describes how far apart the CPUs of a run were: the round trip of a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The first of the run, in ns.
    pub before: f64,
    /// The last of it, in ns.
    pub after: f64,
    /// The typical one, over the links between its CPUs, in ns; `None` in
    /// what version 0.2 stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
}

impl Placement {
    /// Returns the round trip that stands for the run, in ns.
    #[must_use]
    pub fn round_trip(&self) -> f64 {
        self.typical
            .unwrap_or_else(|| (self.before * self.after).sqrt())
    }
}

/// The order in which the runs of a pair were made. It is recorded when they
/// are made, and never computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Baseline, then experiment, by the coin.
    BaselineFirst,
    /// Experiment, then baseline, by the coin.
    ExperimentFirst,
    /// They ran at the same time, or without a time: there is no order that could
    /// matter.
    Together,
}

impl Order {
    /// Returns the order in the judge's terms. Runs without an order are given one:
    /// nothing is read from it (see [`Pair::has_order`]).
    #[must_use]
    pub fn judged(self) -> locklab_judge::Order {
        match self {
            Self::BaselineFirst | Self::Together => locklab_judge::Order::BaselineFirst,
            Self::ExperimentFirst => locklab_judge::Order::ExperimentFirst,
        }
    }
}

impl From<locklab_judge::Order> for Order {
    fn from(order: locklab_judge::Order) -> Self {
        match order {
            locklab_judge::Order::BaselineFirst => Self::BaselineFirst,
            locklab_judge::Order::ExperimentFirst => Self::ExperimentFirst,
        }
    }
}

/// Two runs that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Its number in its cell.
    pub index: u32,
    /// The order in which its runs were made.
    pub order: Order,
    /// Holds what the run of the baseline yielded.
    pub baseline: Sample,
    /// Holds what the run of the experiment yielded.
    pub experiment: Sample,
}

impl Pair {
    /// Returns both runs, the baseline's first.
    #[must_use]
    pub fn samples(&self) -> [&Sample; 2] {
        [&self.baseline, &self.experiment]
    }

    /// Returns both runs, the baseline's first.
    pub fn samples_mut(&mut self) -> [&mut Sample; 2] {
        [&mut self.baseline, &mut self.experiment]
    }

    /// Returns whether only one of its runs was made.
    #[must_use]
    pub fn is_half(&self) -> bool {
        self.any_invalid(|i| matches!(i, Invalid::Interrupted(_)))
    }

    /// Returns whether one of its runs does not count for a reason of this kind.
    pub fn any_invalid(&self, kind: impl Fn(&Invalid) -> bool) -> bool {
        let invalid = self
            .samples()
            .into_iter()
            .filter_map(|s| s.invalid.as_ref());
        invalid.into_iter().any(kind)
    }

    /// Returns whether the machine, and not the subject, is the reason why it does not
    /// count: such a pair is run again.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.any_invalid(|i| matches!(i, Invalid::Disturbed(_)))
    }

    /// Returns the most serious reason why it does not count.
    #[must_use]
    pub fn invalid(&self) -> Option<&Invalid> {
        let reasons = self
            .samples()
            .into_iter()
            .filter_map(|s| s.invalid.as_ref());
        reasons.min_by_key(|invalid| match invalid {
            Invalid::CheckFailed(_) => 0,
            Invalid::Failed(_) | Invalid::Interrupted(_) => 1,
            Invalid::Counter(_) => 2,
            Invalid::Disturbed(_) => 3,
        })
    }

    /// Returns whether its runs were made one after the other.
    #[must_use]
    pub fn has_order(&self) -> bool {
        self.order != Order::Together
    }

    /// Returns the cache-line round trip of both runs, in ns; `None` where it was not
    /// measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<f64> {
        let [b, e] = self.samples().map(|s| s.placement.map(|p| p.round_trip()));
        let trip = (b? * e?).sqrt();
        (trip.is_finite() && trip > 0.0).then_some(trip)
    }
}
