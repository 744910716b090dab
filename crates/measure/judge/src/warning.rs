//! Warnings about a verdict, as values.
//!
//! The text of each says what was observed and what to do next. They must never
//! be printed here.

use std::fmt;

#[cfg(feature = "serde")]
use serde::Serialize;

use crate::family::Family;
use crate::pair::Side;
use crate::rank_sum::EXACT_SAMPLES;
use crate::samples::{MIN_SAMPLES, Sampling};
use crate::signed_rank::EXACT_PAIRS;

/// A condition that weakens a verdict, or that a further run would fix.
///
/// Comparisons of one family may carry equal warnings; a report shows them
/// once.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Warning {
    /// Some pairs could not be used; the others count.
    PairsSetAside {
        /// The number of these pairs.
        count: usize,
        /// The number of all pairs.
        of: usize,
        /// The first of their faults, in words.
        first: String,
    },
    /// The differences are autocorrelated, which the test assumes they are
    /// not. By chance this appears in about one comparison of twenty.
    Autocorrelated {
        /// Lag-1 autocorrelation of d.
        rho: f64,
        /// The bound that chance exceeds once in twenty, 2/√n.
        limit: f64,
    },
    /// A claim was made without an A/A run behind it.
    BandUnknown,
    /// The bias band is as wide as the margin: flat cannot be claimed.
    BandTooWide {
        /// The bias band, a fraction.
        band: f64,
        /// The margin, a fraction.
        delta: f64,
    },
    /// The difference is significant but not beyond the bias band.
    WithinBand {
        /// The bias band, a fraction.
        band: f64,
    },
    /// p was below 5 % by itself and is not after the family's correction.
    LostToFamily {
        /// The p-value of this comparison by itself.
        p: f64,
        /// The p after the correction.
        adjusted: f64,
        /// Counts the comparisons of the family.
        members: usize,
    },
    /// So few pairs cannot call a lone member of so large a family.
    TooFewForFamily {
        /// The correction in use.
        family: Family,
        /// Counts the comparisons of the family.
        members: usize,
        /// Says how many runs there are, and whether they are pairs.
        sampling: Sampling,
        /// Says how many pairs it takes, or samples of each side.
        needed: usize,
        /// Counts the members that must be unanimous before any can be called;
        /// `None` if even all of them are not enough.
        together: Option<usize>,
    },
    /// Fewer pairs can be used than any verdict needs.
    TooFewPairs {
        /// The number of usable pairs.
        usable: usize,
        /// The number of pairs needed.
        needed: usize,
    },
    /// A side has fewer samples than any verdict needs.
    TooFewSamples {
        /// The side with fewer.
        side: Side,
        /// The number of its usable samples.
        usable: usize,
    },
    /// All differences are the same number: the runs were not independent, or
    /// the metric is too coarse.
    NoVariation,
    /// All samples of a side are the same number: the metric is exact, or too
    /// coarse.
    NoVariationWithin,
    /// The samples of a side are autocorrelated, which the test assumes they are
    /// not.
    SamplesAutocorrelated {
        /// Lag-1 autocorrelation within the sides.
        rho: f64,
        /// The bound that chance exceeds once in twenty, 2/√n.
        limit: f64,
    },
    /// Nothing pairs the runs, so a drift between the sides looks like an effect.
    DriftNotControlled,
    /// Too many pairs for the exact distribution.
    NormalApproximation {
        /// Counts the pairs that there are.
        pairs: usize,
    },
    /// Means the same, of samples that nothing pairs.
    NormalApproximationOfSamples {
        /// Says how many samples both sides have.
        samples: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PairsSetAside { count, of, first } => write!(
                f,
                "{count} of {of} pairs were set aside ({first}); repeat them, or read the log of \
                 those runs"
            ),
            Self::Autocorrelated { rho, limit } => write!(
                f,
                "the pairs depend on one another (lag-1 autocorrelation {rho:.2}, beyond \
                 ±{limit:.2}): the error rate may not be 5 %; make runs longer or quiet the \
                 machine, and repeat"
            ),
            Self::BandUnknown => f.write_str(
                "the bias of this set-up is not known; measure baseline against baseline (--aa)",
            ),
            Self::BandTooWide { band, delta } => write!(
                f,
                "flat cannot be claimed: baseline against baseline may be off by {:.2} %, and \
                 flat means within {:.2} %; measure more A/A pairs or quiet the machine",
                100.0 * band,
                100.0 * delta
            ),
            Self::WithinBand { band } => write!(
                f,
                "the difference is significant but not beyond the {:.2} % by which baseline \
                 against baseline may be off; measure more A/A pairs or quiet the machine",
                100.0 * band
            ),
            Self::LostToFamily {
                p,
                adjusted,
                members,
            } => write!(
                f,
                "p = {p:.4} alone, but {adjusted:.4} as one of {members} comparisons; measure \
                 this one by itself, with new pairs"
            ),
            Self::TooFewForFamily {
                members,
                sampling,
                needed,
                together,
                ..
            } => {
                let (have, of) = match sampling {
                    Sampling::Pairs(pairs) => (format!("{pairs} pairs"), "pairs"),
                    Sampling::Independent {
                        baseline,
                        experiment,
                    } => (
                        format!("{baseline} and {experiment} samples"),
                        "samples of each side",
                    ),
                };
                write!(
                    f,
                    "{have} cannot call one of {members} comparisons better or worse"
                )?;
                if let Some(k) = together {
                    write!(f, " unless {k} agree")?;
                }
                write!(f, "; take {needed} {of} or more, or fewer comparisons")
            }
            Self::TooFewPairs { usable, needed } => write!(
                f,
                "only {usable} {} can be used and {needed} are needed; measure for longer",
                if *usable == 1 { "pair" } else { "pairs" }
            ),
            Self::TooFewSamples { side, usable } => write!(
                f,
                "the {side} has only {usable} {} that can be used and {MIN_SAMPLES} are needed; \
                 repeat the benchmark more often",
                if *usable == 1 { "sample" } else { "samples" }
            ),
            Self::NoVariationWithin => f.write_str(
                "every sample of a side is the same number: an exact count, or a metric that is \
                 too coarse",
            ),
            Self::SamplesAutocorrelated { rho, limit } => write!(
                f,
                "the samples depend on one another (lag-1 autocorrelation {rho:.2}, beyond \
                 ±{limit:.2}): the error rate may not be 5 %; let each sample be a process of its \
                 own, or measure in turn (locklab compare)"
            ),
            Self::DriftNotControlled => f.write_str(
                "drift was not controlled: the sides were not measured in turn, so what changed \
                 between them looks like an effect; measure in pairs (locklab compare)",
            ),
            Self::NormalApproximationOfSamples { samples } => write!(
                f,
                "{samples} samples are more than the {EXACT_SAMPLES} of the exact distribution; \
                 its normal approximation was used"
            ),
            Self::NoVariation => f.write_str(
                "every pair gave the same difference; vary the seed, the layout or the boot \
                 between pairs, or take a finer metric",
            ),
            Self::NormalApproximation { pairs } => write!(
                f,
                "{pairs} pairs are more than the {EXACT_PAIRS} of the exact distribution; its \
                 normal approximation was used"
            ),
        }
    }
}
