//! The size of a difference, and its confidence limits.
//!
//! θ is the Hodges-Lehmann estimate of d = s · ln(E / B), so it is positive
//! where the experiment is better, whichever way the metric improves. What
//! people read is in the metric's own direction: [`Estimate::ratio`] and
//! [`Estimate::delta_percent`]. Must never decide anything: that is the
//! verdict's.

#[cfg(feature = "serde")]
use serde::Serialize;

use crate::alpha::ALPHA;
use crate::pair::{Direction, Pair, Side};
use crate::rank_sum::{self, Differences};
use crate::samples::{Independent, Samples, Sampling};
use crate::signed_rank::{self, Method};
use crate::{series, walsh};

/// A confidence interval of θ, both limits included.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Interval {
    /// Lower limit; −∞ where so few pairs give none.
    pub low: f64,
    /// Upper limit; +∞ where so few pairs give none.
    pub high: f64,
    /// Says how often such an interval covers θ: at least what its name says, and
    /// a little more for few pairs, since ranks are whole numbers.
    pub coverage: f64,
}

impl Interval {
    fn of_walsh_averages(sorted: &[f64], tail: f64) -> Self {
        match signed_rank::limit_rank(sorted.len(), tail) {
            Some((k, missed)) => Self {
                low: walsh::kth(sorted, k),
                high: walsh::kth(sorted, walsh::count(sorted.len()) + 1 - k),
                coverage: 1.0 - 2.0 * missed,
            },
            None => Self::UNBOUNDED,
        }
    }

    fn of_differences(differences: &Differences, tail: f64) -> Self {
        let (m, n) = (differences.baseline.len(), differences.experiment.len());
        match rank_sum::limit_rank(m, n, tail) {
            Some((k, missed)) => Self {
                low: differences.kth(k),
                high: differences.kth(differences.count() + 1 - k),
                coverage: 1.0 - 2.0 * missed,
            },
            None => Self::UNBOUNDED,
        }
    }

    /// The interval of so few runs that they have none.
    const UNBOUNDED: Self = Self {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        coverage: 1.0,
    };

    /// Returns whether the interval lies within (−`margin`, +`margin`).
    #[must_use]
    pub fn within(&self, margin: f64) -> bool {
        -margin < self.low && self.high < margin
    }

    /// Returns whether zero lies outside the interval.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// A figure with its 95 % limits, in the unit of a report: `low ≤ value ≤ high`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Shown {
    /// The most likely value.
    pub value: f64,
    /// Lower 95 % limit.
    pub low: f64,
    /// Upper 95 % limit.
    pub high: f64,
}

/// The estimate from the usable runs of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Estimate {
    /// Says which way the metric improves.
    pub direction: Direction,
    /// Says how many pairs were used; of independent samples, how many the side with
    /// fewer has.
    pub pairs: usize,
    /// Says how the runs were taken, and how many of them were used.
    pub sampling: Sampling,
    /// Median of the baseline's values, in the metric's unit. The ratio of
    /// the medians is not [`Estimate::ratio`], which is over the pairs, or over
    /// all differences between the sides.
    pub baseline: f64,
    /// Median of the experiment's values, in the metric's unit.
    pub experiment: f64,
    /// The Hodges-Lehmann estimate, a natural logarithm; positive is better.
    pub theta: f64,
    /// The 95 % interval of θ, over all looks ([`Settings::looks`](crate::Settings::looks)).
    pub ci95: Interval,
    /// The 90 % interval of θ: two one-sided tests at 5 %.
    pub ci90: Interval,
    /// Two-sided p of the signed-rank test, or of the rank-sum test where nothing
    /// pairs the runs, for this comparison alone.
    pub p: f64,
    /// The method by which p and the intervals were found.
    pub method: Method,
    /// Standard deviation of d, s_d; 0 for a single pair. Of independent samples,
    /// that of the logarithms within a side.
    pub spread: f64,
    /// Says how many differences are exactly zero; 0 of independent samples.
    pub zeros: usize,
    /// Lag-1 autocorrelation of the runs in time, each less the mean of its
    /// side. For information only: pairing removes its effect.
    pub autocorrelation_runs: Option<f64>,
    /// Lag-1 autocorrelation of d, or of the runs within each side where nothing
    /// pairs them, which the test assumes to be zero.
    pub autocorrelation: Option<f64>,
}

impl Estimate {
    /// Returns experiment / baseline with its 95 % limits, whichever way the metric
    /// improves.
    #[must_use]
    pub fn ratio(&self) -> Shown {
        self.shown(f64::exp)
    }

    /// Returns by how many percent the experiment's metric is larger than the
    /// baseline's: −5 for a latency that fell by a twentieth, which is better.
    #[must_use]
    pub fn delta_percent(&self) -> Shown {
        self.shown(|x| 100.0 * x.exp_m1())
    }

    fn shown(&self, scale: fn(f64) -> f64) -> Shown {
        let s = self.direction.sign();
        let (a, b) = (scale(s * self.ci95.low), scale(s * self.ci95.high));
        Shown {
            value: scale(s * self.theta),
            low: a.min(b),
            high: a.max(b),
        }
    }
}

/// Returns the estimate from all pairs that can be used; `None` if there are none.
///
/// The order of `pairs` is the order in which they were measured; it matters
/// to the autocorrelations only. One pair is enough, but with fewer than six
/// there is no 95 % interval, and the limits are infinite.
///
/// ```
/// use locklab_judge::{Direction, Order, Pair, estimate};
/// let pairs: Vec<Pair> = (0..20)
///     .map(|i| {
///         let noise = f64::from(i * 7 % 20) / 1000.0;
///         Pair::new(100.0, 95.0 + noise, Order::BaselineFirst)
///     })
///     .collect();
/// let latency = estimate(&pairs, Direction::LowerIsBetter).unwrap();
/// assert!(latency.theta > 0.0);
/// assert!((latency.delta_percent().value + 5.0).abs() < 0.1);
/// assert!((latency.ratio().value - 0.95).abs() < 0.001);
/// ```
#[must_use]
pub fn estimate(pairs: &[Pair], direction: Direction) -> Option<Estimate> {
    of_pairs(pairs, direction, ALPHA)
}

/// Returns the estimate from pairs, whose interval of 95 % errs at this rate.
fn of_pairs(pairs: &[Pair], direction: Direction, alpha: f64) -> Option<Estimate> {
    let (used, d): (Vec<&Pair>, Vec<f64>) = pairs
        .iter()
        .filter_map(|pair| Some((pair, pair.difference(direction)?)))
        .unzip();
    if d.is_empty() {
        return None;
    }
    let mut sorted = d.clone();
    sorted.sort_by(f64::total_cmp);
    Some(Estimate {
        direction,
        pairs: d.len(),
        sampling: Sampling::Pairs(d.len()),
        baseline: median(used.iter().map(|p| p.baseline)),
        experiment: median(used.iter().map(|p| p.experiment)),
        theta: walsh::median(&sorted),
        ci95: Interval::of_walsh_averages(&sorted, alpha / 2.0),
        ci90: Interval::of_walsh_averages(&sorted, alpha),
        p: signed_rank::p_two_sided(&d),
        method: Method::for_pairs(d.len()),
        spread: standard_deviation(&d),
        zeros: d.iter().filter(|x| **x == 0.0).count(),
        autocorrelation_runs: series::lag1(&series::residual_runs(&used)),
        autocorrelation: series::lag1(&d),
    })
}

/// Returns the estimate from all values that can be used of two samples that nothing
/// pairs; `None` if a side has none.
///
/// The order of the values matters to the autocorrelation only. With fewer than
/// four of each side there is no 95 % interval, and the limits are infinite.
///
/// ```
/// use locklab_judge::{Direction, Independent, estimate_independent};
/// let times = Independent {
///     baseline: vec![10.0, 10.1, 10.2, 9.9, 10.3],
///     experiment: vec![5.0, 5.1, 4.9, 5.2, 5.05],
/// };
/// let shift = estimate_independent(&times, Direction::LowerIsBetter).unwrap();
/// assert!((shift.ratio().value - 0.5).abs() < 0.01);
/// assert!(shift.ratio().high < 0.53 && shift.p < 0.01);
/// ```
#[must_use]
pub fn estimate_independent(samples: &Independent, direction: Direction) -> Option<Estimate> {
    of_independent(samples, direction, ALPHA)
}

/// Returns the estimate from two samples, whose interval of 95 % errs at this rate.
fn of_independent(samples: &Independent, direction: Direction, alpha: f64) -> Option<Estimate> {
    let sides = Side::BOTH.map(|side| samples.logarithms(side, direction));
    let [m, n] = [sides[0].len(), sides[1].len()];
    if m == 0 || n == 0 {
        return None;
    }
    let [baseline, experiment] = sides.clone().map(|mut side| {
        side.sort_by(f64::total_cmp);
        side
    });
    let differences = Differences {
        baseline: &baseline,
        experiment: &experiment,
    };
    let of = |log: f64| (direction.sign() * log).exp();
    Some(Estimate {
        direction,
        pairs: m.min(n),
        sampling: Sampling::Independent {
            baseline: m,
            experiment: n,
        },
        baseline: of(median(baseline.iter().copied())),
        experiment: of(median(experiment.iter().copied())),
        theta: differences.median(),
        ci95: Interval::of_differences(&differences, alpha / 2.0),
        ci90: Interval::of_differences(&differences, alpha),
        p: rank_sum::p_two_sided(&baseline, &experiment),
        method: rank_sum::method(m, n),
        spread: pooled(&baseline, &experiment),
        zeros: 0,
        autocorrelation_runs: None,
        autocorrelation: series::lag1_within([&sides[0], &sides[1]]),
    })
}

/// Returns the estimate from whatever runs there are, at one of so many looks. Its
/// intervals cover at all of them together as often as their names say.
pub(crate) fn estimate_any(
    samples: &Samples,
    direction: Direction,
    looks: u32,
) -> Option<Estimate> {
    let alpha = ALPHA / f64::from(looks);
    match samples {
        Samples::Pairs(pairs) => of_pairs(pairs, direction, alpha),
        Samples::Independent(samples) => of_independent(samples, direction, alpha),
    }
}

/// Returns the two-sided p of a shift between two samples that is within ± `band`, a
/// logarithm, where `theta` estimates it: that of the end that is nearest.
pub(crate) fn p_exceeds(samples: &Independent, direction: Direction, theta: f64, band: f64) -> f64 {
    if theta.abs() <= band && band > 0.0 {
        return 1.0;
    }
    let baseline = samples.logarithms(Side::Baseline, direction);
    let mut experiment = samples.logarithms(Side::Experiment, direction);
    for value in &mut experiment {
        *value -= band.copysign(theta);
    }
    rank_sum::p_two_sided(&baseline, &experiment)
}

/// Returns the standard deviation within two samples.
fn pooled(a: &[f64], b: &[f64]) -> f64 {
    let free = |x: &[f64]| (x.len() - 1) as f64;
    let square = |x: &[f64]| standard_deviation(x).powi(2) * free(x);
    match free(a) + free(b) {
        0.0 => 0.0,
        all => ((square(a) + square(b)) / all).sqrt(),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    low + 0.5 * (high - low)
}

fn standard_deviation(values: &[f64]) -> f64 {
    // Identical values must give exactly zero, which a rounded mean does not.
    if values.iter().all(|x| *x == values[0]) {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (square / (values.len() - 1) as f64).sqrt()
}
