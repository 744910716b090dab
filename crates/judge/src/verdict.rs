//! The verdict: invalid, flat, better or worse, unclear, asked in this order.
//!
//! "Flat" has been shown; "unclear" has not, in either direction, and is
//! never printed as equal. Must never widen δ to fit the noise.

use std::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::early_stop::{EarlyStop, Stopping};
use crate::estimate::{ALPHA, Estimate, estimate};
use crate::family::{Family, fewest_callable, pairs_needed, smallest_p};
use crate::normal;
use crate::pair::{Direction, Fault, FaultKind, Pair};
use crate::signed_rank::Method;
use crate::warning::Warning;

/// The fewest pairs that are judged, unless set otherwise.
pub const MIN_PAIRS: usize = 8;

/// What is decided before the run, for all comparisons of a session.
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
    /// How primary comparisons share the 5 %: [`Family::Holm`] by default;
    /// a matrix takes [`Family::FalseDiscovery`].
    pub family: Family,
    /// The largest share of pairs that may be set aside because a run failed
    /// or a counter did not run all the time; beyond it the comparison is
    /// invalid. 0.1 by default; 0 makes every such fault fatal.
    pub tolerated_failures: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delta: 0.01,
            min_pairs: MIN_PAIRS,
            family: Family::Holm,
            tolerated_failures: 0.1,
        }
    }
}

impl Settings {
    /// Whether these can be judged with. [`judge`] asks this itself; a
    /// command asks before the first run.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn check(&self) -> Result<(), BadSetting> {
        if !(self.delta > 0.0 && self.delta.is_finite()) {
            return Err(BadSetting::Delta(self.delta));
        }
        if !(0.0..=1.0).contains(&self.tolerated_failures) {
            return Err(BadSetting::ToleratedFailures(self.tolerated_failures));
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
    /// The bias band of the comparison with this index is negative or not
    /// finite.
    BiasBand(usize, f64),
    /// The expected σ_d of the comparison with this index is not positive and
    /// finite.
    SigmaD(usize, f64),
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
            Self::BiasBand(i, x) => write!(
                f,
                "the bias band of comparison {i} is {x}; measure it again with --aa, or leave it \
                 out"
            ),
            Self::SigmaD(i, x) => write!(
                f,
                "the expected spread of comparison {i} is {x}; give a positive number, such as \
                 0.01 for 1 %, or do not stop early"
            ),
        }
    }
}

impl std::error::Error for BadSetting {}

/// What a comparison is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Role {
    /// It decides: one metric a workload, or a cell of a matrix. Shares the
    /// 5 % with the other primary ones as [`Settings::family`] says.
    Primary,
    /// It explains, as counters do: Benjamini-Hochberg at 5 % over all
    /// screening comparisons, and to be shown as screening.
    Screening,
}

/// One metric of one workload (or one cell of a matrix), to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Every pair that was measured, in order, unusable ones too.
    pub pairs: Vec<Pair>,
    /// Which way the metric improves.
    pub direction: Direction,
    /// Whether it decides or explains.
    pub role: Role,
    /// b of this metric, workload and machine, as
    /// [`bias_band`](crate::bias_band) gave it: a fraction. `None` where no
    /// A/A run was made, which the verdict then warns of.
    pub bias_band: Option<f64>,
    /// How the number of pairs was decided.
    pub stopping: Stopping,
}

impl Comparison {
    /// A primary comparison without a bias band, of a fixed number of pairs.
    #[must_use]
    pub fn primary(pairs: Vec<Pair>, direction: Direction) -> Self {
        Self {
            pairs,
            direction,
            role: Role::Primary,
            bias_band: None,
            stopping: Stopping::Fixed,
        }
    }

    /// A screening comparison, otherwise the same.
    #[must_use]
    pub fn screening(pairs: Vec<Pair>, direction: Direction) -> Self {
        Self {
            role: Role::Screening,
            ..Self::primary(pairs, direction)
        }
    }
}

/// Why a comparison is invalid.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Reason {
    /// Too few pairs can be used.
    TooFewPairs {
        /// How many can.
        usable: usize,
        /// How many it takes.
        needed: usize,
    },
    /// More runs failed than is tolerated.
    TooManyFailures {
        /// How many pairs failed.
        failed: usize,
        /// Of how many.
        of: usize,
        /// The first fault.
        first: Fault,
    },
    /// A fault that is never tolerated.
    Fatal {
        /// Index of the pair.
        pair: usize,
        /// What was wrong.
        fault: Fault,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewPairs { usable, needed } => write!(
                f,
                "only {usable} pairs can be used and {needed} are needed; measure more"
            ),
            Self::TooManyFailures { failed, of, first } => write!(
                f,
                "{failed} of {of} pairs failed, the first because {first}; mend that and measure \
                 again"
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

/// What a comparison has shown.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Verdict {
    /// Nothing: it must not be read. At least one reason.
    Invalid(Vec<Reason>),
    /// Shown to be within ±δ: the 90 % interval lies inside. Holds for each
    /// comparison by itself, at 5 %, with no correction for the family.
    Flat {
        /// Zero is outside the 95 % interval: a difference that is there and
        /// does not matter.
        nonzero: bool,
    },
    /// The experiment is better, beyond the bias band.
    Better,
    /// The experiment is worse, beyond the bias band.
    Worse,
    /// Neither shown to be flat nor to differ.
    Unclear {
        /// The effect that so many pairs find four times in five, as a
        /// fraction: about 0.66 s_d at 20 pairs (plus b), more in a family.
        /// `None` where they could not have called any, however large.
        detectable: Option<f64>,
        /// About how many pairs it would take to show flat four times in
        /// five if there were no difference: 9.4 (s_d/δ)². `None` where the
        /// bias band forbids flat.
        pairs_for_flat: Option<u64>,
    },
}

impl Verdict {
    /// The verdict in one lower-case word, as JSON has it.
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
    /// As it was given.
    pub role: Role,
    /// What was shown.
    pub verdict: Verdict,
    /// From the usable pairs; `None` if there are none. Present for invalid
    /// comparisons too, where it must not be shown as a result.
    pub estimate: Option<Estimate>,
    /// p of this comparison alone: the signed-rank test's, or the e-value's
    /// where it could stop early. 1 where invalid.
    pub p: f64,
    /// p adjusted for the family.
    pub p_adjusted: f64,
    /// How many comparisons share the 5 %.
    pub members: usize,
    /// Pairs that were set aside, by index.
    pub set_aside: Vec<(usize, Fault)>,
    /// What to know besides.
    pub warnings: Vec<Warning>,
}

/// Judges all comparisons of a session: estimates, correction for the
/// family, verdicts. The answers are in the order of the comparisons.
///
/// Primary comparisons form one family and screening ones another. An invalid
/// comparison stays in its family with p = 1, since the family was decided
/// before the run.
///
/// # Errors
/// A setting, a bias band or an expected σ_d that makes no sense. Samples
/// never are an error: those that cannot be used make a comparison
/// [`Verdict::Invalid`].
pub fn judge(comparisons: &[Comparison], settings: &Settings) -> Result<Vec<Judged>, BadSetting> {
    settings.check()?;
    for (i, comparison) in comparisons.iter().enumerate() {
        comparison.check(i)?;
    }
    let mut judged: Vec<Judged> = comparisons.iter().map(|c| c.examine(settings)).collect();
    for (role, family) in [
        (Role::Primary, settings.family),
        (Role::Screening, Family::FalseDiscovery),
    ] {
        let members: Vec<usize> = (0..judged.len())
            .filter(|i| judged[*i].role == role)
            .collect();
        let p: Vec<f64> = members.iter().map(|i| judged[*i].p).collect();
        for (i, adjusted) in members.iter().zip(family.adjust(&p)) {
            judged[*i].p_adjusted = adjusted;
            judged[*i].members = members.len();
            comparisons[*i].decide(&mut judged[*i], family, settings);
        }
    }
    Ok(judged)
}

impl Comparison {
    fn check(&self, index: usize) -> Result<(), BadSetting> {
        match self.bias_band {
            Some(b) if !(b >= 0.0 && b.is_finite()) => {
                return Err(BadSetting::BiasBand(index, b));
            }
            _ => {}
        }
        match self.stopping {
            Stopping::Early { sigma_d } if !(sigma_d > 0.0 && sigma_d.is_finite()) => {
                Err(BadSetting::SigmaD(index, sigma_d))
            }
            _ => Ok(()),
        }
    }

    /// Everything that does not depend on the other comparisons. A verdict
    /// that is not invalid is left for [`Comparison::decide`].
    fn examine(&self, settings: &Settings) -> Judged {
        let set_aside: Vec<(usize, Fault)> = self
            .pairs
            .iter()
            .enumerate()
            .filter_map(|(i, pair)| Some((i, pair.fault()?)))
            .collect();
        let estimate = estimate(&self.pairs, self.direction);
        let reasons = self.reasons(&set_aside, settings);
        let mut warnings = Vec::new();
        if let Some((_, fault)) = set_aside.first() {
            warnings.push(Warning::PairsSetAside {
                count: set_aside.len(),
                of: self.pairs.len(),
                first: fault.to_string(),
            });
        }
        Judged {
            role: self.role,
            p: match &estimate {
                Some(estimate) if reasons.is_empty() => self.p(estimate),
                _ => 1.0,
            },
            verdict: Verdict::Invalid(reasons),
            estimate,
            p_adjusted: 1.0,
            members: 0,
            set_aside,
            warnings,
        }
    }

    fn reasons(&self, set_aside: &[(usize, Fault)], settings: &Settings) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let Some((pair, fault)) = set_aside
            .iter()
            .find(|(_, f)| matches!(f.kind, FaultKind::CheckFailed | FaultKind::Unusable))
        {
            reasons.push(Reason::Fatal {
                pair: *pair,
                fault: fault.clone(),
            });
        }
        // A pair whose placement differed is to be repeated; it says nothing
        // about the subjects, so it is not among those that could fail.
        let moved = |f: &Fault| f.kind == FaultKind::PlacementDiffered;
        let failed: Vec<&Fault> = set_aside
            .iter()
            .map(|(_, f)| f)
            .filter(|f| matches!(f.kind, FaultKind::RunFailed | FaultKind::CounterPartial))
            .collect();
        let of = self.pairs.len() - set_aside.iter().filter(|(_, f)| moved(f)).count();
        if failed.len() as f64 > settings.tolerated_failures * of as f64 {
            reasons.push(Reason::TooManyFailures {
                failed: failed.len(),
                of,
                first: failed[0].clone(),
            });
        }
        let usable = self.pairs.len() - set_aside.len();
        if usable < settings.min_pairs {
            reasons.push(Reason::TooFewPairs {
                usable,
                needed: settings.min_pairs,
            });
        }
        reasons
    }

    fn p(&self, estimate: &Estimate) -> f64 {
        match self.stopping {
            Stopping::Fixed => estimate.p,
            Stopping::Early { sigma_d } => {
                let mut watch = EarlyStop::new(sigma_d);
                for pair in &self.pairs {
                    if let Some(d) = pair.difference(self.direction) {
                        watch.push(d);
                    }
                }
                watch.p()
            }
        }
    }

    /// The verdict on a comparison that has been examined and whose p has
    /// been adjusted.
    fn decide(&self, judged: &mut Judged, family: Family, settings: &Settings) {
        let Some(estimate) = judged.estimate else {
            return;
        };
        if matches!(&judged.verdict, Verdict::Invalid(reasons) if !reasons.is_empty()) {
            return;
        }
        // Fractions become logarithms here and nowhere else.
        let delta = settings.delta.ln_1p();
        let band = self.bias_band.unwrap_or(0.0).ln_1p();
        let warnings = &mut judged.warnings;
        let significant = judged.p_adjusted < ALPHA;

        judged.verdict = if estimate.ci90.within(delta) && band < delta {
            Verdict::Flat {
                nonzero: estimate.ci95.excludes_zero(),
            }
        } else if significant && estimate.ci95.low > band {
            Verdict::Better
        } else if significant && estimate.ci95.high < -band {
            Verdict::Worse
        } else {
            if significant && estimate.ci95.excludes_zero() {
                warnings.push(Warning::WithinBand {
                    band: band.exp_m1(),
                });
            }
            if judged.p < ALPHA && !significant {
                warnings.push(Warning::LostToFamily {
                    p: judged.p,
                    adjusted: judged.p_adjusted,
                    members: judged.members,
                });
            }
            if fewest_callable(family, judged.members, estimate.pairs) != Some(1) {
                warnings.push(Warning::TooFewForFamily {
                    family,
                    members: judged.members,
                    pairs: estimate.pairs,
                    needed: pairs_needed(family, judged.members),
                    together: fewest_callable(family, judged.members, estimate.pairs),
                });
            }
            Verdict::Unclear {
                detectable: detectable(&estimate, family.level(judged.members))
                    .map(|effect| (effect + band).exp_m1()),
                pairs_for_flat: (band < delta).then(|| {
                    let pairs = (9.4 * (estimate.spread / delta).powi(2)).ceil();
                    (pairs as u64).max(settings.min_pairs as u64)
                }),
            }
        };

        if band >= delta {
            warnings.push(Warning::BandTooWide {
                band: band.exp_m1(),
                delta: settings.delta,
            });
        }
        if self.bias_band.is_none() && !matches!(judged.verdict, Verdict::Unclear { .. }) {
            warnings.push(Warning::BandUnknown);
        }
        let limit = 2.0 / (estimate.pairs as f64).sqrt();
        match estimate.autocorrelation {
            Some(rho) if rho.abs() > limit => {
                warnings.push(Warning::Autocorrelated { rho, limit });
            }
            _ => {}
        }
        if estimate.spread == 0.0 {
            warnings.push(Warning::NoVariation);
        }
        if self.stopping != Stopping::Fixed {
            warnings.push(Warning::IntervalAfterEarlyStop);
        }
        if estimate.method == Method::Normal {
            warnings.push(Warning::NormalApproximation {
                pairs: estimate.pairs,
            });
        }
    }
}

/// The effect, a logarithm, that a test at `level` finds with 80 % power:
/// (z₁₋α/₂ + z₀.₈) s_d / √(n − z²₁₋α/₂/2), which is 0.66 s_d at n = 20 and
/// α = 5 % (Guenther 1981 for the t-test; the signed-rank test is within a few
/// percent of it).
fn detectable(estimate: &Estimate, level: f64) -> Option<f64> {
    let z = normal::upper_quantile(level / 2.0);
    let room = estimate.pairs as f64 - 0.5 * z * z;
    (smallest_p(estimate.pairs) < level && room > 0.0)
        .then(|| (z + normal::upper_quantile(0.2)) * estimate.spread / room.sqrt())
}
