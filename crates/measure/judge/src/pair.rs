//! The input of the judge: pairs of runs, the order that a coin gave them, and
//! which of them cannot be used.
//!
//! This module exists so that an unusable run is a value with a reason, and not
//! a number that was forgotten to be left out. Must never repair a value: a
//! throughput of zero is an outcome, and dropping it would flatter the lock
//! that starved.

use std::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Says which way a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Direction {
    /// More is better: operations per second, Jain's index.
    HigherIsBetter,
    /// Less is better: latency, cache misses, elapsed time.
    LowerIsBetter,
}

impl Direction {
    /// Returns +1 where higher is better, −1 where lower is: the `s` in
    /// `d = s · ln(E / B)`.
    #[must_use]
    pub fn sign(self) -> f64 {
        match self {
            Self::HigherIsBetter => 1.0,
            Self::LowerIsBetter => -1.0,
        }
    }
}

/// One of the two subjects of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Side {
    /// The existing subject.
    Baseline,
    /// The subject that differs from it in one thing.
    Experiment,
}

impl Side {
    /// Both sides, the baseline first.
    pub const BOTH: [Self; 2] = [Self::Baseline, Self::Experiment];
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Experiment => "experiment",
        })
    }
}

/// Says which run of a pair goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Order {
    /// Baseline, then experiment.
    BaselineFirst,
    /// Experiment, then baseline.
    ExperimentFirst,
}

impl Order {
    /// Returns the two sides in the order in which they run.
    #[must_use]
    pub fn sides(self) -> [Side; 2] {
        match self {
            Self::BaselineFirst => Side::BOTH,
            Self::ExperimentFirst => [Side::Experiment, Side::Baseline],
        }
    }
}

/// Returns the coin that decides which run of pair `pair` goes first.
///
/// A pure function of its arguments, the same on every platform and in every
/// version, so that a stored seed reproduces the order of the runs. Two
/// comparisons must not share their coins, or the noise of one moment gets
/// the same sign in both: give each its own seed with [`fork_seed`].
///
/// ```
/// use locklab_judge::coin;
/// assert_eq!(coin(7, 3), coin(7, 3));
/// assert!((0..64).any(|pair| coin(7, pair) != coin(8, pair)));
/// ```
#[must_use]
pub fn coin(seed: u64, pair: u64) -> Order {
    if mix(mix(seed).wrapping_add(pair.wrapping_mul(GOLDEN))) >> 63 == 0 {
        Order::BaselineFirst
    } else {
        Order::ExperimentFirst
    }
}

/// Returns the seed of the `index`th comparison (a cell of a matrix, a workload) of a
/// session that was given `seed`.
#[must_use]
pub fn fork_seed(seed: u64, index: u64) -> u64 {
    // The constant keeps a fork apart from the coins of the seed itself.
    mix(mix(seed ^ 0x6a09_e667_f3bc_c909).wrapping_add(index.wrapping_mul(GOLDEN)))
}

/// 2^64 over the golden ratio, the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns one output of SplitMix64 (Steele, Lea and Flood 2014). Not from a crate,
/// because stored seeds outlive the versions of a generator.
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The kind of fault of a run, or of a pair of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FaultKind {
    /// It did not finish: a signal, an exit status, a time limit. The pair is
    /// set aside; too many of them make the comparison invalid.
    RunFailed,
    /// A counter ran for less time than it was enabled. The pair is set
    /// aside; too many of them make the comparison invalid.
    CounterPartial,
    /// The machine disturbed it: other programs ran, or it was suspended. The
    /// pair is set aside and, since that says nothing about the subjects, does
    /// not count against the comparison: it must be repeated.
    Disturbed,
    /// The workload's own check failed: failed requests, mutual exclusion
    /// lost. Never tolerated: the whole comparison is invalid.
    CheckFailed,
    /// The value is zero, negative, infinite or not a number, and so has no
    /// logarithm. Never tolerated, because it may be the worst outcome of all
    /// (nothing was done), and dropping it would hide that.
    Unusable,
}

/// Names the reason why a pair cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Fault {
    /// Names the kind of fault, which decides how it is treated.
    pub kind: FaultKind,
    /// The run at fault; `None` where it is the pair.
    pub side: Option<Side>,
    /// The symptom in words: "exit status 139", "37 failed requests".
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.side {
            Some(side) => write!(f, "the {side}'s run ")?,
            None => f.write_str("the pair ")?,
        }
        f.write_str(match self.kind {
            FaultKind::RunFailed => "failed",
            FaultKind::CounterPartial => "had a counter that did not run all the time",
            FaultKind::Disturbed => "was disturbed by the machine",
            FaultKind::CheckFailed => "failed the workload's own check",
            FaultKind::Unusable => "gave a value that is not a positive number",
        })?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}

/// Says whether a pair can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Validity {
    /// Both runs went well.
    #[default]
    Valid,
    /// A run failed, for the reason given.
    Invalid(Fault),
}

/// One pair: baseline and experiment, run once each, one after the other.
///
/// A value is the result of the highest level that varies (a boot, a link
/// order, a process); iterations below that level have been averaged already.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Pair {
    /// The metric of the baseline's run, in any unit, as long as it is the
    /// same in all pairs of a comparison.
    pub baseline: f64,
    /// The metric of the experiment's run.
    pub experiment: f64,
    /// Says which of them ran first.
    pub order: Order,
    /// Says whether both runs can be used.
    pub validity: Validity,
}

impl Pair {
    /// Makes a pair whose runs both went well.
    ///
    /// Any value is accepted; one that is not positive and finite makes the
    /// comparison invalid when it is judged.
    #[must_use]
    pub fn new(baseline: f64, experiment: f64, order: Order) -> Self {
        Self {
            baseline,
            experiment,
            order,
            validity: Validity::Valid,
        }
    }

    /// Returns a pair that cannot be used. Its values are not a number.
    #[must_use]
    pub fn invalid(
        kind: FaultKind,
        side: Option<Side>,
        detail: impl Into<String>,
        order: Order,
    ) -> Self {
        Self {
            baseline: f64::NAN,
            experiment: f64::NAN,
            order,
            validity: Validity::Invalid(Fault {
                kind,
                side,
                detail: detail.into(),
            }),
        }
    }

    /// Returns why this pair cannot be used, if it cannot: the fault it was given, or
    /// else a value that has no logarithm.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        if let Validity::Invalid(fault) = &self.validity {
            return Some(fault.clone());
        }
        [
            (Side::Baseline, self.baseline),
            (Side::Experiment, self.experiment),
        ]
        .into_iter()
        .find(|(_, value)| !usable(*value))
        .map(|(side, value)| Fault {
            kind: FaultKind::Unusable,
            side: Some(side),
            detail: value.to_string(),
        })
    }

    /// Returns `d = s · ln(E / B)`: how much better the experiment was, as a natural
    /// logarithm. `None` for a pair that cannot be used.
    #[must_use]
    pub fn difference(&self, direction: Direction) -> Option<f64> {
        let valid =
            self.validity == Validity::Valid && usable(self.baseline) && usable(self.experiment);
        // A difference of logarithms and not the logarithm of a quotient: it
        // cannot overflow, and swapping the sides negates it to the last bit.
        // Adding zero turns -0 into 0.
        valid.then(|| direction.sign() * (self.experiment.ln() - self.baseline.ln()) + 0.0)
    }
}

/// Returns whether a value has a logarithm.
pub(crate) fn usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}
