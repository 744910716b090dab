//! Turns comparisons into verdicts: excludes unusable pairs, corrects p for the
//! family, and then decides flat, better or worse, unclear, in this order.
//!
//! Must never widen δ to fit the noise, nor use one comparison to decide
//! what belongs to the family of another.

use crate::alpha::ALPHA;
use crate::estimate::{Estimate, estimate_any, p_exceeds};
use crate::family::Family;
use crate::normal;
use crate::pair::{Direction, Fault, FaultKind, Pair, Side};
use crate::role::Role;
use crate::samples::{Independent, MIN_SAMPLES, Samples, Sampling};
use crate::settings::{BadSetting, Settings};
use crate::signed_rank::Method;
use crate::verdict::{Judged, Reason, Verdict};
use crate::warning::Warning;

/// One metric of one workload (or one cell of a matrix), to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Every run that was measured, in order, including unusable ones.
    pub samples: Samples,
    /// Says which way the metric improves.
    pub direction: Direction,
    /// Says whether it decides or explains.
    pub role: Role,
    /// b of this metric, workload and machine, as
    /// [`bias_band`](crate::bias_band) gave it: a fraction. `None` where no
    /// A/A run was made; the verdict then carries a warning.
    pub bias_band: Option<f64>,
    /// δ of this comparison where it has its own, decided before the run, instead
    /// of that of the settings: a fraction.
    pub delta: Option<f64>,
}

impl Comparison {
    /// Returns a primary comparison without a bias band, of a fixed number of pairs.
    #[must_use]
    pub fn primary(pairs: Vec<Pair>, direction: Direction) -> Self {
        Self {
            samples: Samples::Pairs(pairs),
            direction,
            role: Role::Primary,
            bias_band: None,
            delta: None,
        }
    }

    /// Returns a primary comparison of two samples that nothing pairs.
    #[must_use]
    pub fn independent(samples: Independent, direction: Direction) -> Self {
        Self {
            samples: Samples::Independent(samples),
            ..Self::primary(Vec::new(), direction)
        }
    }

    /// Returns a screening comparison, otherwise the same.
    #[must_use]
    pub fn screening(pairs: Vec<Pair>, direction: Direction) -> Self {
        Self {
            role: Role::Screening,
            ..Self::primary(pairs, direction)
        }
    }
}

/// Judges all comparisons of a session: estimates, correction for the
/// family, verdicts. The results are in the order of the comparisons.
///
/// Primary comparisons form one family and screening ones another. An invalid
/// comparison stays in its family with p = 1, since the family was decided
/// before the run.
///
/// # Errors
/// [`BadSetting`] if a setting, a bias band or an expected σ_d makes no sense.
/// Samples are never an error: those that cannot be used make a comparison
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
        if let Some(delta) = self.delta.filter(|x| !(*x > 0.0 && x.is_finite())) {
            return Err(BadSetting::Delta(delta));
        }
        Ok(())
    }

    /// Finds everything that does not depend on the other comparisons. A verdict
    /// that is not invalid is left for [`Comparison::decide`].
    fn examine(&self, settings: &Settings) -> Judged {
        let set_aside = self.samples.faults();
        let estimate = estimate_any(&self.samples, self.direction, settings.looks);
        let reasons = self.reasons(&set_aside, settings);
        let mut warnings = Vec::new();
        if let (Some((_, fault)), Samples::Pairs(_)) = (set_aside.first(), &self.samples) {
            warnings.push(Warning::PairsSetAside {
                count: set_aside.len(),
                of: self.samples.count(),
                first: fault.to_string(),
            });
        }
        Judged {
            role: self.role,
            p: match &estimate {
                Some(estimate) if reasons.is_empty() && estimate.pairs >= self.fewest(settings) => {
                    (self.p(estimate) * f64::from(settings.looks)).min(1.0)
                }
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
            let (at, fault) = (*pair, fault.clone());
            reasons.push(match self.samples {
                Samples::Pairs(_) => Reason::Fatal { pair: at, fault },
                Samples::Independent(_) => Reason::FatalSample { sample: at, fault },
            });
        }
        // A disturbed pair must be repeated; it says nothing about the
        // subjects, so it is not among those that could fail.
        let disturbed = |f: &Fault| f.kind == FaultKind::Disturbed;
        let failed: Vec<&Fault> = set_aside
            .iter()
            .map(|(_, f)| f)
            .filter(|f| matches!(f.kind, FaultKind::RunFailed | FaultKind::CounterPartial))
            .collect();
        let of = self.samples.count() - set_aside.iter().filter(|(_, f)| disturbed(f)).count();
        if failed.len() as f64 > settings.tolerated_failures * of as f64 {
            reasons.push(Reason::TooManyFailures {
                failed: failed.len(),
                of,
                first: failed[0].clone(),
            });
        }
        if self.samples.is_empty() {
            reasons.push(Reason::NotMeasured);
        }
        reasons
    }

    fn p(&self, estimate: &Estimate) -> f64 {
        match &self.samples {
            // Of two samples the band is a drift that may have been as large: all of
            // a family are shifted alike, so its interval must be tested and not
            // only zero.
            Samples::Independent(samples) => {
                let band = self.bias_band.unwrap_or(0.0).ln_1p();
                p_exceeds(samples, self.direction, estimate.theta, band)
            }
            Samples::Pairs(_) => estimate.p,
        }
    }

    /// Returns the fewest usable pairs that are judged, or samples of each side.
    fn fewest(&self, settings: &Settings) -> usize {
        match self.samples {
            Samples::Pairs(_) => settings.min_pairs,
            Samples::Independent(_) => MIN_SAMPLES,
        }
    }

    /// Returns the warning that there are too few runs to be judged.
    fn too_few(&self, set_aside: usize, settings: &Settings) -> Warning {
        match &self.samples {
            Samples::Pairs(pairs) => Warning::TooFewPairs {
                usable: pairs.len() - set_aside,
                needed: settings.min_pairs,
            },
            Samples::Independent(samples) => {
                let has = |side: Side| samples.logarithms(side, self.direction).len();
                let (b, e) = (has(Side::Baseline), has(Side::Experiment));
                Warning::TooFewSamples {
                    side: if b <= e {
                        Side::Baseline
                    } else {
                        Side::Experiment
                    },
                    usable: b.min(e),
                }
            }
        }
    }

    /// Returns the verdict on a comparison that has been examined and whose p has
    /// been adjusted.
    fn decide(&self, judged: &mut Judged, family: Family, settings: &Settings) {
        if matches!(&judged.verdict, Verdict::Invalid(reasons) if !reasons.is_empty()) {
            return;
        }
        let fewest = self.fewest(settings);
        let Some(estimate) = judged.estimate.filter(|e| e.pairs >= fewest) else {
            // What there is was measured rightly, and shows nothing.
            judged.verdict = Verdict::Unclear {
                detectable: None,
                pairs_for_flat: None,
            };
            let few = self.too_few(judged.set_aside.len(), settings);
            judged.warnings.push(few);
            return;
        };
        // This is the only place where fractions become logarithms.
        let delta = self.delta.unwrap_or(settings.delta).ln_1p();
        let band = self.bias_band.unwrap_or(0.0).ln_1p();
        let warnings = &mut judged.warnings;
        let significant = judged.p_adjusted < ALPHA;
        let independent = matches!(self.samples, Samples::Independent(_));

        judged.verdict = if estimate.ci90.within(delta) && band < delta {
            Verdict::Flat {
                nonzero: estimate.ci95.excludes_zero(),
            }
        } else if significant && estimate.ci95.low > band {
            Verdict::Better
        } else if significant && estimate.ci95.high < -band {
            Verdict::Worse
        } else {
            let looks = f64::from(settings.looks);
            let differs = significant || independent && looks * estimate.p < ALPHA;
            if differs && estimate.ci95.excludes_zero() {
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
            let sampling = estimate.sampling;
            let together = family.callable_with(judged.members, looks * sampling.smallest_p());
            if together != Some(1) {
                warnings.push(Warning::TooFewForFamily {
                    family,
                    members: judged.members,
                    sampling,
                    needed: sampling.needed(family, judged.members, settings.looks),
                    together,
                });
            }
            Verdict::Unclear {
                detectable: detectable(&estimate, family.level(judged.members) / looks)
                    .map(|effect| (effect + band).exp_m1()),
                pairs_for_flat: (band < delta).then(|| {
                    let ratio = estimate.spread / delta;
                    let z = |looks: f64| {
                        normal::upper_quantile(ALPHA / looks) + normal::upper_quantile(0.1)
                    };
                    let cost = 9.4 * (z(looks) / z(1.0)).powi(2);
                    let pairs = (cost * sampling.per_pair() * ratio.powi(2)).ceil();
                    (pairs as u64).max(fewest as u64)
                }),
            }
        };

        if band >= delta {
            warnings.push(Warning::BandTooWide {
                band: band.exp_m1(),
                delta: delta.exp_m1(),
            });
        }
        if self.bias_band.is_none() && !matches!(judged.verdict, Verdict::Unclear { .. }) {
            warnings.push(Warning::BandUnknown);
        }
        let limit = 2.0 / (estimate.sampling.runs() as f64).sqrt();
        match estimate.autocorrelation {
            Some(rho) if rho.abs() > limit => warnings.push(match independent {
                false => Warning::Autocorrelated { rho, limit },
                true => Warning::SamplesAutocorrelated { rho, limit },
            }),
            _ => {}
        }
        if estimate.spread == 0.0 {
            warnings.push(match independent {
                false => Warning::NoVariation,
                true => Warning::NoVariationWithin,
            });
        }
        if independent {
            warnings.push(Warning::DriftNotControlled);
        }
        if estimate.method == Method::Normal {
            warnings.push(match estimate.sampling {
                Sampling::Pairs(pairs) => Warning::NormalApproximation { pairs },
                Sampling::Independent {
                    baseline,
                    experiment,
                } => Warning::NormalApproximationOfSamples {
                    samples: baseline + experiment,
                },
            });
        }
    }
}

/// Returns the effect, a logarithm, that a test at `level` finds with 80 % power:
/// (z₁₋α/₂ + z₀.₈) s_d / √(n − z²₁₋α/₂/2), which is 0.66 s_d at n = 20 and
/// α = 5 % (Guenther 1981 for the t-test; the rank tests are within a few
/// percent of it). Of independent samples, mn/(m + n) and z²/8 stand for n and
/// z²/2.
fn detectable(estimate: &Estimate, level: f64) -> Option<f64> {
    let z = normal::upper_quantile(level / 2.0);
    let room = estimate.sampling.room(z);
    (estimate.sampling.smallest_p() < level && room > 0.0)
        .then(|| (z + normal::upper_quantile(0.2)) * estimate.spread / room.sqrt())
}
