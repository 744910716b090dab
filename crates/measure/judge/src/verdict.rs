//! The verdict on a comparison: invalid, flat, better or worse, unclear.
//!
//! "Flat" has been shown; "unclear" means that nothing has been shown, and must
//! never be printed as equal.

use std::fmt;

#[cfg(feature = "serde")]
use serde::Serialize;

use crate::estimate::Estimate;
use crate::pair::{Fault, FaultKind};
use crate::role::Role;
use crate::warning::Warning;

/// Names the reason why a comparison is invalid.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Reason {
    /// There is no pair.
    NotMeasured,
    /// Both sides are copies of one run.
    SameSamples,
    /// More runs failed than is tolerated.
    TooManyFailures {
        /// Counts the pairs that failed.
        failed: usize,
        /// The number of all pairs.
        of: usize,
        /// Names the fault of the first of them.
        first: Fault,
    },
    /// A fault that is never tolerated.
    Fatal {
        /// Index of the pair.
        pair: usize,
        /// Names the fault of that pair.
        fault: Fault,
    },
    /// Means the same, of a run that is in no pair.
    FatalSample {
        /// Index of the run in its side.
        sample: usize,
        /// Holds what was wrong with it.
        fault: Fault,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMeasured => f.write_str("nothing was measured; continue with --resume"),
            Self::SameSamples => f.write_str(
                "both sides hold the same samples, so a run is compared with itself; give two \
                 different runs",
            ),
            Self::TooManyFailures { failed, of, first } => write!(
                f,
                "{failed} of {of} pairs failed, the first because {first}; mend that and measure \
                 again"
            ),
            Self::FatalSample { sample, fault } => write!(
                f,
                "in sample {}, {fault}; choose a metric that is always above zero, or find out \
                 what that run did",
                sample + 1
            ),
            Self::Fatal { pair, fault } => {
                write!(f, "in pair {}, {fault}", pair + 1)?;
                f.write_str(match fault.kind {
                    FaultKind::CheckFailed => "; find out why before measuring anything",
                    _ => "; choose a metric that is always above zero, or longer runs",
                })
            }
        }
    }
}

/// The verdict on a comparison.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Verdict {
    /// It was measured wrongly, or not at all: the figures must not be used.
    /// There is at least one reason; noise is none.
    Invalid(Vec<Reason>),
    /// Shown to be within ±δ: the 90 % interval lies inside. Holds for each
    /// comparison by itself, at 5 %, with no correction for the family.
    Flat {
        /// Zero is outside the 95 % interval: a difference that exists and
        /// does not matter.
        nonzero: bool,
    },
    /// The experiment is better, beyond the bias band.
    Better,
    /// The experiment is worse, beyond the bias band.
    Worse,
    /// Neither shown to be flat nor to differ.
    Unclear {
        /// The effect that this many pairs find four times in five, as a
        /// fraction: about 0.66 s_d at 20 pairs (plus b), more in a family.
        /// `None` where they could not have called any effect, however large.
        detectable: Option<f64>,
        /// About how many pairs it would take to show flat four times in
        /// five if there were no difference: 9.4 (s_d/δ)²; of independent samples,
        /// how many of each side. `None` where the
        /// bias band forbids flat, and where there are too few pairs to tell.
        pairs_for_flat: Option<u64>,
    },
}

impl Verdict {
    /// Returns the verdict as one lower-case word, as used in JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Flat { .. } => "flat",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unclear { .. } => "unclear",
        }
    }
}

/// A comparison with its verdict and everything behind it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Judged {
    /// The role as given by the caller.
    pub role: Role,
    /// Holds what the pairs show: better, worse, flat, unclear or invalid.
    pub verdict: Verdict,
    /// The estimate from the usable runs; `None` if there are none. Present for invalid
    /// comparisons too, where it must not be shown as a result.
    pub estimate: Option<Estimate>,
    /// p of this comparison alone: the signed-rank or rank-sum test's, or the e-value's
    /// where it could stop early. Of two samples, that of a difference within the
    /// bias band. 1 where invalid.
    pub p: f64,
    /// p adjusted for the family.
    pub p_adjusted: f64,
    /// Counts the comparisons that share the 5 %.
    pub members: usize,
    /// Pairs, or samples of a side, that were set aside, by index.
    pub set_aside: Vec<(usize, Fault)>,
    /// Warnings about the verdict.
    pub warnings: Vec<Warning>,
}

impl Judged {
    /// Returns whether there were pairs enough for a verdict that a gate may trust:
    /// neither invalid nor unclear for want of pairs.
    #[must_use]
    pub fn was_judged(&self) -> bool {
        let few = |warning: &Warning| {
            matches!(
                warning,
                Warning::TooFewPairs { .. } | Warning::TooFewSamples { .. }
            )
        };
        !matches!(self.verdict, Verdict::Invalid(_)) && !self.warnings.iter().any(few)
    }
}
