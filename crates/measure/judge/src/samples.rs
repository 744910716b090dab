//! Holds the samples of a comparison: pairs of runs, or two samples that nothing
//! pairs.
//!
//! Pairs are what one should measure. Two independent samples are what many files
//! hold: all runs of the baseline, then all of the experiment. Must never make
//! pairs of runs that were not measured as such: their noise would not cancel,
//! and the test would believe that it had.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::family::{Family, smallest_p};
use crate::pair::{Direction, Fault, FaultKind, Pair, Side, usable};
use crate::rank_sum;

/// The fewest independent samples of each side that are judged: fewer cannot
/// reach 5 %, however far apart they are.
pub const MIN_SAMPLES: usize = 4;

/// The runs of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// Runs that were measured in pairs, in order, including unusable ones.
    Pairs(Vec<Pair>),
    /// Runs of which only the side is known.
    Independent(Independent),
}

/// Two samples that nothing pairs, each in the order in which it was measured.
///
/// Any value is accepted; one that is not positive and finite makes the
/// comparison invalid when it is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Independent {
    /// The metric of the baseline's runs, in any unit, as long as it is that of
    /// the experiment's.
    pub baseline: Vec<f64>,
    /// The metric of the experiment's runs.
    pub experiment: Vec<f64>,
}

impl Independent {
    /// Returns the values of a side.
    #[must_use]
    pub fn side(&self, side: Side) -> &[f64] {
        match side {
            Side::Baseline => &self.baseline,
            Side::Experiment => &self.experiment,
        }
    }

    /// Returns s · ln of the usable values of a side, in order: more is better.
    pub(crate) fn logarithms(&self, side: Side, direction: Direction) -> Vec<f64> {
        let values = self.side(side).iter().filter(|x| usable(**x));
        values.map(|x| direction.sign() * x.ln()).collect()
    }

    /// Returns every value that has no logarithm, with its place in its side.
    fn faults(&self) -> Vec<(usize, Fault)> {
        let of = |side: Side| {
            let values = self.side(side).iter().enumerate();
            values
                .filter(|(_, value)| !usable(**value))
                .map(move |(i, value)| {
                    let fault = Fault {
                        kind: FaultKind::Unusable,
                        side: Some(side),
                        detail: value.to_string(),
                    };
                    (i, fault)
                })
        };
        Side::BOTH.into_iter().flat_map(of).collect()
    }
}

impl Samples {
    /// Returns every pair or sample that cannot be used, by its index.
    pub(crate) fn faults(&self) -> Vec<(usize, Fault)> {
        match self {
            Self::Pairs(pairs) => {
                let pairs = pairs.iter().enumerate();
                pairs.filter_map(|(i, p)| Some((i, p.fault()?))).collect()
            }
            Self::Independent(samples) => samples.faults(),
        }
    }

    /// Returns the number of pairs, or of all samples, usable or not.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.len(),
            Self::Independent(samples) => samples.baseline.len() + samples.experiment.len(),
        }
    }

    /// Returns whether there is nothing to judge.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Pairs(pairs) => pairs.is_empty(),
            Self::Independent(samples) => {
                samples.baseline.is_empty() || samples.experiment.is_empty()
            }
        }
    }
}

/// Returns how many independent samples of each side one of `members` comparisons needs
/// before it alone can be called.
#[must_use]
pub fn samples_needed(family: Family, members: usize) -> usize {
    of_each_side(family.level(members))
}

fn of_each_side(level: f64) -> usize {
    let enough = |n: &usize| rank_sum::smallest_p(*n, *n) < level;
    (MIN_SAMPLES..).find(enough).unwrap_or(usize::MAX)
}

/// Says how the runs behind an estimate were taken, and how many of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Sampling {
    /// Holds the number of pairs.
    Pairs(usize),
    /// Each side by itself.
    Independent {
        /// Says how many runs of the baseline.
        baseline: usize,
        /// Says how many runs of the experiment.
        experiment: usize,
    },
}

impl Sampling {
    /// Returns the smallest two-sided p that so many runs can give.
    #[must_use]
    pub fn smallest_p(self) -> f64 {
        match self {
            Self::Pairs(pairs) => smallest_p(pairs),
            Self::Independent {
                baseline,
                experiment,
            } => rank_sum::smallest_p(baseline, experiment),
        }
    }

    /// Returns the number of pairs, or of the samples of both sides.
    pub(crate) fn runs(self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs,
            Self::Independent {
                baseline,
                experiment,
            } => baseline + experiment,
        }
    }

    /// Returns how many pairs, or samples of each side, one of `members` comparisons needs
    /// before it alone can be called at one of so many looks.
    pub(crate) fn needed(self, family: Family, members: usize, looks: u32) -> usize {
        let level = family.level(members) / f64::from(looks);
        match self {
            Self::Pairs(_) => (1..).find(|n| smallest_p(*n) < level).unwrap_or(usize::MAX),
            Self::Independent { .. } => of_each_side(level),
        }
    }

    /// Returns the number by whose root the spread of one run is divided in the standard
    /// error of the estimate, less what a test of so few costs at this quantile z.
    pub(crate) fn room(self, z: f64) -> f64 {
        match self {
            Self::Pairs(pairs) => pairs as f64 - 0.5 * z * z,
            Self::Independent {
                baseline,
                experiment,
            } => {
                let (m, n) = (baseline as f64, experiment as f64);
                m * n / (m + n) - 0.125 * z * z
            }
        }
    }

    /// Returns by how much more runs of each side it takes than pairs, where the spread is
    /// that of a run and not that of a difference.
    pub(crate) fn per_pair(self) -> f64 {
        match self {
            Self::Pairs(_) => 1.0,
            Self::Independent { .. } => 2.0,
        }
    }
}
