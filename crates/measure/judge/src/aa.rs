//! Baseline against baseline: the bias of the harness itself.
//!
//! There are two uses, which must never be mixed: [`bias_band`] measures how
//! far from zero the harness may be, to judge *other* pairs with;
//! [`aa_check`] tests whether the judge makes false calls. Judging A/A pairs
//! with the band from the same pairs is a check that cannot fail.

#[cfg(feature = "serde")]
use serde::Serialize;

use crate::alpha::ALPHA;
use crate::estimate::estimate;
use crate::family::Family;
use crate::pair::{Direction, Pair};
use crate::role::Role;
use crate::settings::MIN_PAIRS;
use crate::verdict::{Judged, Verdict};

/// Returns the bias band b: the outer bound of the 95 % interval of A/A pairs, as a
/// fraction (0.004 is 0.4 %). A bias larger than b would have shown.
///
/// The band holds for the workload, metric and machine on which the A/A pairs
/// were measured. It shrinks with the number of pairs, and is roughly 0.47 s_d
/// at 20 of them: it includes what the pairs could not rule out as well as what
/// they found.
///
/// `None` where the pairs say nothing about the bias: with fewer than
/// [`MIN_PAIRS`] usable pairs, and where they neither found a bias nor ruled out
/// one of `delta`, the margin for flat, as a fraction. With such a band
/// nothing could be flat in any later session, for the only reason that this
/// one was short; a set-up whose bias is not known is reported as one.
#[must_use]
pub fn bias_band(aa_pairs: &[Pair], delta: f64) -> Option<f64> {
    let aa = estimate(aa_pairs, Direction::HigherIsBetter)?;
    let outer = aa.ci95.low.abs().max(aa.ci95.high.abs());
    let tells = aa.ci95.excludes_zero() || outer < delta.ln_1p();
    (aa.pairs >= MIN_PAIRS && tells).then(|| outer.exp_m1())
}

/// Counts the calls in comparisons of a subject with itself, beside those that 5 % allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct AaCheck {
    /// Counts the primary comparisons that were judged and not invalid.
    pub judged: usize,
    /// Counts those that were called better or worse.
    pub called: usize,
    /// Counts the calls that 5 % allow: none for [`Family::Holm`] and
    /// [`Family::FalseDiscovery`], which call one in at most 5 % of such
    /// sessions.
    pub calls_allowed: usize,
    /// Counts those with p < 0.05 before any correction: the sharper test, since
    /// few pairs in many cells call nothing in any case.
    pub below_alpha: usize,
    /// The most that may: exceeded by chance in at most 5 % of sessions, if
    /// the comparisons are independent.
    pub below_alpha_allowed: usize,
}

impl AaCheck {
    /// Returns whether both counts are within what is allowed. A sound laboratory
    /// passes at least nine times in ten; one that fails twice, with two
    /// seeds, has a bias. It does not pass if nothing was judged.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.judged > 0
            && self.called <= self.calls_allowed
            && self.below_alpha <= self.below_alpha_allowed
    }
}

/// Counts the calls among judged A/A comparisons. They must have been
/// judged with the bias band of another session, or none.
#[must_use]
pub fn aa_check(judged: &[Judged], family: Family) -> AaCheck {
    let sound: Vec<&Judged> = judged
        .iter()
        .filter(|j| j.role == Role::Primary && j.was_judged())
        .collect();
    let allowed = most_by_chance(sound.len());
    AaCheck {
        judged: sound.len(),
        called: sound
            .iter()
            .filter(|j| matches!(j.verdict, Verdict::Better | Verdict::Worse))
            .count(),
        calls_allowed: if family == Family::Each { allowed } else { 0 },
        below_alpha: sound.iter().filter(|j| j.p < ALPHA).count(),
        below_alpha_allowed: allowed,
    }
}

/// Returns the smallest c with P(Binomial(m, 0.05) > c) ≤ 0.05.
fn most_by_chance(m: usize) -> usize {
    let mut term = (1.0 - ALPHA).powf(m as f64);
    let mut sum = term;
    let mut c = 0;
    // Beyond 14,000 members the first term underflows and c ends at m.
    while sum < 1.0 - ALPHA && c < m {
        term *= (m - c) as f64 / (c + 1) as f64 * ALPHA / (1.0 - ALPHA);
        c += 1;
        sum += term;
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Order;

    #[test]
    fn chance_allows_what_the_binomial_tables_say() {
        assert_eq!(most_by_chance(0), 0);
        assert_eq!(most_by_chance(1), 0);
        assert_eq!(most_by_chance(20), 3);
        assert_eq!(most_by_chance(100), 9);
        assert_eq!(most_by_chance(126), 11);
    }

    #[test]
    fn the_band_is_the_outer_limit_and_takes_no_side() {
        let pair = |i: i32| {
            let d = 0.002 + f64::from(i * 13 % 20 - 10) / 5000.0;
            Pair::new(100.0, 100.0 * d.exp(), Order::BaselineFirst)
        };
        let pairs: Vec<Pair> = (0..20).map(pair).collect();
        let swapped: Vec<Pair> = pairs
            .iter()
            .map(|p| Pair::new(p.experiment, p.baseline, p.order))
            .collect();
        let band = bias_band(&pairs, 0.01).unwrap();
        assert!(band > 0.002 && band < 0.004, "{band}");
        assert_eq!(bias_band(&swapped, 0.01), Some(band));
        assert_eq!(bias_band(&pairs[..7], 0.01), None);
    }

    /// A short A/A run once made all later runs of its set-up unclear.
    #[test]
    fn pairs_that_say_nothing_about_the_bias_give_no_band() {
        let pairs = |bias: f64, noise: f64| -> Vec<Pair> {
            (0..20)
                .map(|i| bias + noise * f64::from(i * 13 % 20 - 10) / 10.0)
                .map(|d| Pair::new(100.0, 100.0 * d.exp(), Order::BaselineFirst))
                .collect()
        };
        assert_eq!(bias_band(&pairs(0.0, 0.05), 0.01), None);
        // A bias that was found counts however wide its interval is.
        assert!(bias_band(&pairs(0.05, 0.05), 0.01).unwrap() > 0.05);
        assert!(bias_band(&pairs(0.0, 0.005), 0.01).unwrap() < 0.01);
    }
}
