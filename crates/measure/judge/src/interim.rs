//! Decides whether a comparison may end before the others: an interim analysis that
//! costs the verdict a negligible amount.
//!
//! Pairs that decide nothing more could be spent on another
//! comparison. There are three reasons to end or to have fewer pairs from then on,
//! none of which makes a wrong call more likely:
//! - **Flat beyond doubt**: the 99.9 % interval lies within the margin, at
//!   one of a few interim analyses fixed before the run. Such an extreme
//!   boundary leaves the 5 % of the last analysis unchanged (J. L. Haybittle
//!   1971; R. Peto et al. 1976): with [`LOOKS`] of them at 0.05 % each the two
//!   one-sided tests at 5 % become 5.5 % at the most. A comparison that ends
//!   this way is flat, and cannot be called better or worse.
//! - **Different beyond doubt, in either direction**: decided by the sizes of
//!   the differences alone, never by their signs. If there is no difference,
//!   each sign is a coin toss whatever the sizes are, and the signed-rank test
//!   depends only on the signs given the sizes; so its p holds exactly, however
//!   the sizes determined the end.
//! - **Beyond hope**: even [`MORE`] times as many pairs with the same centre and
//!   scatter would decide nothing. Such a comparison is unclear,
//!   and ending there can only take calls away (stopping for futility, a
//!   non-binding lower boundary: K. K. G. Lan, R. Simon and M. Halperin 1982).
//!
//! It must never use a sign to find a difference; a test checks that.

use crate::pair::{Direction, Pair};
use crate::signed_rank::limit_rank;
use crate::walsh;

/// The greatest number of interim analyses of one comparison.
pub const LOOKS: u32 = 10;

/// The multiple of the present pairs that might still be measured: after the first
/// of these analyses, about as many as a minute has room for in one cell.
pub const MORE: u32 = 29;

/// The state of a comparison at an interim analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interim {
    /// More pairs may decide it.
    Open,
    /// Its verdict is beyond doubt, and more pairs would narrow its interval.
    Wide,
    /// Its verdict is beyond doubt, and its interval is narrow compared with
    /// the margin or with the effect.
    Decided,
    /// It is unclear, and would remain so with [`MORE`] times as many pairs.
    Hopeless,
}

impl Interim {
    /// Returns whether the verdict is beyond doubt.
    #[must_use]
    pub fn is_beyond_doubt(self) -> bool {
        matches!(self, Self::Wide | Self::Decided)
    }
}

/// Probability of each tail of the 99.9 % interval.
const TAIL: f64 = 0.0005;

/// Returns whether there is an interim analysis after this many usable pairs: at
/// `first` of them, and whenever their number has grown by half, [`LOOKS`]
/// times.
#[must_use]
pub fn is_look(pairs: usize, first: usize) -> bool {
    let mut look = first.max(1);
    for _ in 0..LOOKS {
        if look >= pairs {
            return look == pairs;
        }
        look += look.div_ceil(2);
    }
    false
}

/// Returns the state of these pairs at an interim analysis.
///
/// `delta` and `band` are the margin for flat and the bias band, as fractions.
#[must_use]
pub fn interim(pairs: &[Pair], direction: Direction, delta: f64, band: f64) -> Interim {
    let (delta, band) = (delta.ln_1p(), band.ln_1p());
    let mut sorted: Vec<f64> = pairs
        .iter()
        .filter_map(|pair| pair.difference(direction))
        .collect();
    sorted.sort_by(f64::total_cmp);
    let found = [flat(&sorted, delta, band), different(&sorted, delta, band)];
    if found.contains(&Some(Precision::Narrow)) {
        Interim::Decided
    } else if found.contains(&Some(Precision::Wide)) {
        Interim::Wide
    } else if is_hopeless(&sorted, delta, band) {
        Interim::Hopeless
    } else {
        Interim::Open
    }
}

/// Returns whether an interval about the same centre, narrowed as by [`MORE`] times the
/// pairs, would still neither exclude all negligible differences nor lie within
/// the margin.
fn is_hopeless(sorted: &[f64], delta: f64, band: f64) -> bool {
    let narrowed = |tail: f64| {
        let (low, high) = interval(sorted, tail)?;
        Some((
            (low + high).abs() / 2.0,
            (high - low) / 2.0 / f64::from(MORE).sqrt(),
        ))
    };
    let (Some((centre, half)), Some((_, half_of_flat))) = (narrowed(0.025), narrowed(0.05)) else {
        return false;
    };
    centre - half <= band && (centre + half_of_flat >= delta || band >= delta)
}

/// Says how well a difference is known that is beyond doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    Wide,
    Narrow,
}

impl Precision {
    /// Returns the precision of an interval of `width`, where one of `narrow` is narrow.
    fn of(width: Option<f64>, narrow: f64) -> Self {
        match width {
            Some(width) if width <= narrow => Self::Narrow,
            _ => Self::Wide,
        }
    }
}

/// Returns the width of the 95 % interval of these differences, if so few have one.
fn width(sorted: &[f64]) -> Option<f64> {
    interval(sorted, 0.025).map(|(low, high)| high - low)
}

fn flat(sorted: &[f64], delta: f64, band: f64) -> Option<Precision> {
    let within = interval(sorted, TAIL).is_some_and(|(low, high)| -delta < low && high < delta);
    (within && band < delta).then(|| Precision::of(width(sorted), delta / 4.0))
}

/// Returns how well these differences are known, if they would be called with equal signs.
/// With mixed signs such sizes are not an effect but bimodal noise; then the
/// comparison ends unclear, which is correct.
fn different(sorted: &[f64], delta: f64, band: f64) -> Option<Precision> {
    let mut sizes: Vec<f64> = sorted.iter().map(|d| d.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let called = interval(&sizes, TAIL).is_some_and(|(low, _)| low > band.max(delta));
    let smallest = *sizes.first()?;
    if !called {
        return None;
    }
    let width = width(&sizes);
    let typical = sizes[sizes.len() / 2];
    (Precision::of(width, smallest.max(delta) / 3.0) == Precision::Narrow)
        .then(|| Precision::of(width, (delta / 4.0).max(typical / 100.0)))
}

/// Returns the interval of the location of `sorted` with probability `tail` in each
/// tail, if so few differences give one.
fn interval(sorted: &[f64], tail: f64) -> Option<(f64, f64)> {
    let (k, _) = limit_rank(sorted.len(), tail)?;
    let last = walsh::count(sorted.len()) + 1 - k;
    Some((walsh::kth(sorted, k), walsh::kth(sorted, last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{Order, coin};
    use crate::verdict::Verdict;
    use crate::{Comparison, Settings, judge};
    use proptest::prelude::*;

    fn pair(d: f64) -> Pair {
        Pair::new(1.0, d.exp(), Order::BaselineFirst)
    }

    fn at(d: &[f64]) -> Interim {
        let pairs: Vec<Pair> = d.iter().map(|d| pair(*d)).collect();
        interim(&pairs, Direction::HigherIsBetter, 0.01, 0.0)
    }

    #[test]
    fn looks_are_few_and_fixed() {
        let looks: Vec<usize> = (0..1000).filter(|n| is_look(*n, 14)).collect();
        assert_eq!(looks, [14, 21, 32, 48, 72, 108, 162, 243, 365, 548]);
    }

    #[test]
    fn clear_cases_end_and_doubtful_ones_do_not() {
        let spread = |centre: f64, width: f64| -> Vec<f64> {
            (0..14)
                .map(|i| centre + width * ((f64::from(i * 5 % 14) + 0.5) / 14.0 - 0.5))
                .collect()
        };
        for decided in [spread(0.0, 0.002), spread(0.2, 0.004), spread(-0.2, 0.004)] {
            assert_eq!(at(&decided), Interim::Decided);
        }
        for wide in [spread(0.0, 0.012), spread(0.2, 0.02), spread(-0.2, 0.1)] {
            assert_eq!(at(&wide), Interim::Wide);
        }
        for open in [spread(0.0, 0.05), spread(0.012, 0.01), spread(0.2, 0.4)] {
            assert_eq!(at(&open), Interim::Open);
        }
        for hopeless in [spread(0.0, 0.9), spread(0.02, 0.9), spread(0.0, 0.6)] {
            assert_eq!(at(&hopeless), Interim::Hopeless);
        }
        assert_eq!(at(&[0.0; 5]), Interim::Open);
    }

    proptest! {
        #![proptest_config(crate::cases_for_tests())]

        #[test]
        fn signs_are_never_looked_at(
            sizes in prop::collection::vec(0.0..0.3_f64, 8..40),
            seed: u64,
            scale in prop::sample::select(vec![0.01, 0.1, 1.0]),
        ) {
            let scaled: Vec<f64> = sizes.iter().map(|d| d * scale).collect();
            let signed: Vec<f64> = scaled
                .iter()
                .enumerate()
                .map(|(i, d)| match coin(seed, i as u64) {
                    Order::BaselineFirst => *d,
                    Order::ExperimentFirst => -*d,
                })
                .collect();
            let different = |d: &[f64]| {
                let mut d = d.to_vec();
                d.sort_by(f64::total_cmp);
                super::different(&d, 0.01, 0.0)
            };
            prop_assert_eq!(different(&scaled), different(&signed));
        }
    }

    /// Returns a number uniform in (0, 1), from the judge's own generator.
    fn uniform(seed: u64, i: u64) -> f64 {
        let bits = crate::fork_seed(seed, i) >> 11;
        (bits as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(seed: u64, i: u64) -> f64 {
        let (u, v) = (uniform(seed, 2 * i), uniform(seed, 2 * i + 1));
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Returns the verdict of a session that may end at each interim analysis, of at
    /// most 72 pairs, and its state at the end.
    fn session(seed: u64, theta: f64, sigma: f64) -> (Verdict, Interim) {
        let mut pairs = Vec::new();
        let mut standing = Interim::Open;
        while pairs.len() < 72 && matches!(standing, Interim::Open | Interim::Wide) {
            pairs.push(pair(theta + sigma * normal(seed, pairs.len() as u64)));
            if is_look(pairs.len(), 14) {
                standing = interim(&pairs, Direction::HigherIsBetter, 0.01, 0.0);
            }
        }
        let comparison = Comparison::primary(pairs, Direction::HigherIsBetter);
        let judged = judge(&[comparison], &Settings::default())
            .unwrap()
            .remove(0);
        (judged.verdict, standing)
    }

    #[test]
    fn ending_early_makes_no_wrong_calls() {
        const SESSIONS: u64 = 600;
        let share = |theta: f64, sigma: f64, wrong: fn(&Verdict) -> bool| {
            let calls = (0..SESSIONS).filter(|s| wrong(&session(*s, theta, sigma).0));
            calls.count() as f64 / SESSIONS as f64
        };
        let called = |v: &Verdict| matches!(v, Verdict::Better | Verdict::Worse);
        let is_flat = |v: &Verdict| matches!(v, Verdict::Flat { .. });
        for sigma in [0.003, 0.01, 0.03, 0.2] {
            let calls = share(0.0, sigma, called);
            assert!(calls < 0.075, "{calls} of equal ones called, sigma {sigma}");
            // On the margin itself, where flat is wrong by a hair.
            let flats = share(0.01_f64.ln_1p(), sigma, is_flat);
            assert!(flats < 0.075, "{flats} wrongly flat, sigma {sigma}");
        }
        // And it ends: a clear effect is called.
        assert!(share(0.1, 0.02, called) > 0.999);
    }

    #[test]
    fn what_ends_beyond_hope_is_unclear() {
        let mut hopeless = 0;
        for sigma in [0.003, 0.02, 0.2] {
            for theta in [0.0, 0.004, 0.05] {
                for seed in 0..100 {
                    let (verdict, standing) = session(seed, theta, sigma);
                    if standing == Interim::Hopeless {
                        assert!(matches!(verdict, Verdict::Unclear { .. }), "{verdict:?}");
                        hopeless += 1;
                    }
                }
            }
        }
        assert!(hopeless > 100, "{hopeless}");
    }
}
