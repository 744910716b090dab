//! The settings that are decided before the run: the margin, the family, and
//! the tolerated failures.
//!
//! They must never be changed once a sample has been seen.

use std::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::family::Family;

/// The fewest pairs that are judged, unless set otherwise.
pub const MIN_PAIRS: usize = 8;

/// The settings of all comparisons of a session, decided before the run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Settings {
    /// δ, the margin within which a difference does not matter, as a
    /// fraction: 0.01 is 1 %, the default. Ratios between 1/(1 + δ) and
    /// 1 + δ are within.
    pub delta: f64,
    /// The fewest usable pairs, [`MIN_PAIRS`] by default.
    pub min_pairs: usize,
    /// Says how primary comparisons share the 5 %: [`Family::Holm`] by default;
    /// a matrix takes [`Family::FalseDiscovery`].
    pub family: Family,
    /// The largest share of pairs that may be set aside because a run failed
    /// or a counter did not run all the time; beyond it the comparison is
    /// invalid. 0.1 by default; 0 makes every such fault fatal.
    pub tolerated_failures: f64,
    /// The number of looks at which a comparison may end, decided before the run: 1 by
    /// default. Each look gets an equal part of the 5 % (Bonferroni), so the verdict
    /// errs in 5 % at the most, whatever decided at which of them it ended.
    pub looks: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delta: 0.01,
            min_pairs: MIN_PAIRS,
            family: Family::Holm,
            tolerated_failures: 0.1,
            looks: 1,
        }
    }
}

impl Settings {
    /// Checks the settings. [`judge`](crate::judge()) does so itself; a
    /// command does so before the first run.
    ///
    /// # Errors
    /// [`BadSetting`]: the first setting that makes no sense.
    pub fn check(&self) -> Result<(), BadSetting> {
        if !(self.delta > 0.0 && self.delta.is_finite()) {
            return Err(BadSetting::Delta(self.delta));
        }
        if !(0.0..=1.0).contains(&self.tolerated_failures) {
            return Err(BadSetting::ToleratedFailures(self.tolerated_failures));
        }
        if self.looks == 0 {
            return Err(BadSetting::Looks);
        }
        if self.min_pairs < 2 {
            return Err(BadSetting::MinPairs(self.min_pairs));
        }
        Ok(())
    }
}

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BadSetting {
    /// δ is not positive and finite.
    Delta(f64),
    /// The tolerated share of failures is not between 0 and 1.
    ToleratedFailures(f64),
    /// Fewer than two pairs have no spread.
    MinPairs(usize),
    /// Without a look there is no verdict.
    Looks,
    /// The bias band of the comparison with this index is negative or not
    /// finite.
    BiasBand(usize, f64),
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delta(x) => write!(
                f,
                "the margin for flat is {x}; give a positive fraction, such as 0.01 for 1 %"
            ),
            Self::ToleratedFailures(x) => write!(
                f,
                "the tolerated share of failed pairs is {x}; give a fraction from 0 to 1"
            ),
            Self::MinPairs(n) => {
                write!(f, "at least {n} pairs are asked for; ask for 2 or more")
            }
            Self::Looks => write!(f, "no look is asked for; ask for 1 or more"),
            Self::BiasBand(i, x) => write!(
                f,
                "the bias band of comparison {i} is {x}; measure it again with --aa, or leave it \
                 out"
            ),
        }
    }
}

impl std::error::Error for BadSetting {}
