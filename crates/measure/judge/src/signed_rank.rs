//! The exact signed-rank distribution: p and the ranks of the confidence
//! limits.
//!
//! T is the sum of the ranks of |d| that belong to positive differences. If
//! the differences are symmetric about zero, each rank is in the sum or not
//! by the toss of a coin, and counting the 2ⁿ outcomes gives T's distribution
//! (Wilcoxon 1945). Ties and zeros:
//! - tied |d| share the mean of their ranks, and the distribution is that of
//!   the ranks at hand (conditional on the ties), so it stays exact;
//! - zeros are ranked with the others and then left out of the sum (Pratt
//!   1959): dropping them first, as Wilcoxon did, makes the result look more
//!   certain the more often nothing changed.
//!
//! Above [`EXACT_PAIRS`] the normal approximation is used, with its
//! continuity correction and the variance of the tied ranks. It must never fall
//! back to it silently: the result names the method.

use std::cmp::Ordering;
use std::sync::OnceLock;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::normal;

/// The number of pairs up to which the distribution is exact.
pub const EXACT_PAIRS: usize = 200;

/// Says how a p-value and its intervals were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Method {
    /// The exact signed-rank distribution.
    Exact,
    /// It comes from its normal approximation with continuity correction: more than
    /// [`EXACT_PAIRS`] pairs.
    Normal,
}

impl Method {
    pub(crate) fn for_pairs(n: usize) -> Self {
        if n <= EXACT_PAIRS {
            Self::Exact
        } else {
            Self::Normal
        }
    }
}

/// Returns P(T ≤ t) for t = 0, 1, …, where T sums those `ranks` for which a fair coin
/// falls heads.
fn cumulative(ranks: &[usize]) -> Vec<f64> {
    let mut p = vec![0.0; ranks.iter().sum::<usize>() + 1];
    p[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        reached += rank;
        // In descending order, so that p[t - rank] is still without this rank.
        // All terms are positive and halving is exact: no digits are lost.
        for t in (0..=reached).rev() {
            let without = p[t];
            let with = if t >= *rank { p[t - rank] } else { 0.0 };
            p[t] = 0.5 * (without + with);
        }
    }
    let mut sum = 0.0;
    for x in &mut p {
        sum += *x;
        *x = sum;
    }
    p
}

/// Returns P(T ≤ t) for the ranks 1, …, n, kept once computed.
fn untied(n: usize) -> &'static [f64] {
    static TABLES: [OnceLock<Vec<f64>>; EXACT_PAIRS + 1] =
        [const { OnceLock::new() }; EXACT_PAIRS + 1];
    TABLES[n].get_or_init(|| cumulative(&(1..=n).collect::<Vec<_>>()))
}

/// The signed ranks of a sample.
struct SignedRanks {
    /// Doubled, so that a mean rank is an integer; without those of zeros.
    ranks: Vec<usize>,
    /// The sum of those of positive differences.
    positive: usize,
    tied: bool,
}

impl SignedRanks {
    fn of(d: &[f64]) -> Self {
        let mut by_size = d.to_vec();
        by_size.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let mut ranks = Vec::with_capacity(d.len());
        let mut positive = 0;
        let mut tied = false;
        let mut first = 0;
        for group in by_size.chunk_by(|a, b| a.abs() == b.abs()) {
            let rank = (first + 1) + (first + group.len());
            first += group.len();
            tied |= group.len() > 1 || group[0] == 0.0;
            for x in group {
                match x.partial_cmp(&0.0) {
                    Some(Ordering::Greater) => positive += rank,
                    Some(Ordering::Less) => {}
                    _ => continue,
                }
                ranks.push(rank);
            }
        }
        Self {
            ranks,
            positive,
            tied,
        }
    }

    /// Returns P(T ≤ `sum`) for a sum of doubled ranks, of `n` differences; at most 1.
    fn at_most(&self, sum: usize, n: usize) -> f64 {
        match Method::for_pairs(n) {
            Method::Exact if self.tied => cumulative(&self.ranks)[sum],
            Method::Exact => untied(n)[sum / 2],
            Method::Normal => {
                let mean = 0.5 * self.total() as f64;
                let square = |r: &usize| 0.25 * (*r as f64) * (*r as f64);
                let variance: f64 = self.ranks.iter().map(square).sum();
                // Half a rank is 1 in doubled ranks.
                let z = (mean - sum as f64 - 1.0) / variance.sqrt();
                let tail = 0.5 * normal::two_sided_tail(z.abs());
                if z < 0.0 { 1.0 - tail } else { tail }
            }
        }
    }

    fn total(&self) -> usize {
        self.ranks.iter().sum()
    }
}

/// Returns the two-sided p-value of differences that are finite, in any order.
/// 1 where there are none, or all are zero.
pub(crate) fn p_two_sided(d: &[f64]) -> f64 {
    let signed = SignedRanks::of(d);
    if signed.ranks.is_empty() {
        return 1.0;
    }
    let smaller = signed.positive.min(signed.total() - signed.positive);
    (2.0 * signed.at_most(smaller, d.len())).min(1.0)
}

/// Returns the one-sided p-value of differences that are positive if there is an
/// effect. 1 where there are none, or all are zero.
pub(crate) fn p_positive(d: &[f64]) -> f64 {
    let signed = SignedRanks::of(d);
    if signed.ranks.is_empty() {
        return 1.0;
    }
    // T is symmetric: what is left over is as likely as what is there.
    signed.at_most(signed.total() - signed.positive, d.len())
}

/// Returns the rank k of the lower confidence limit among the sorted Walsh averages,
/// where each limit may miss with probability `tail`, and the probability
/// with which it does: the largest k with P(T ≤ k − 1) ≤ `tail`. The upper
/// limit has rank n(n+1)/2 + 1 − k. `None` where so few pairs cannot give
/// such an interval.
///
/// With tied differences the closed interval covers at least as often as
/// without ties.
pub(crate) fn limit_rank(n: usize, tail: f64) -> Option<(u64, f64)> {
    match Method::for_pairs(n) {
        Method::Exact => {
            let table = untied(n);
            let k = table.partition_point(|p| *p <= tail);
            (k > 0).then(|| (k as u64, table[k - 1]))
        }
        Method::Normal => {
            let n = n as f64;
            let mean = n * (n + 1.0) / 4.0;
            let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
            let t = (mean - 0.5 - normal::upper_quantile(tail) * sd).floor();
            let p = 0.5 * normal::two_sided_tail((mean - 0.5 - t) / sd);
            Some((t as u64 + 1, p))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn twenty_pairs_have_the_published_limits() {
        assert_eq!(limit_rank(20, 0.025).unwrap().0, 53);
        assert_eq!(limit_rank(20, 0.05).unwrap().0, 61);
        assert_eq!(crate::walsh::count(20) + 1 - 53, 158);
        assert_eq!(crate::walsh::count(20) + 1 - 61, 150);
    }

    /// The critical values T of Wilcoxon's two-sided 5 % test, as printed in
    /// statistics books: the largest T with P(T ≤ t) ≤ 0.025.
    #[test]
    fn critical_values_of_the_books() {
        assert_eq!(limit_rank(5, 0.025), None);
        for (n, t) in [
            (6, 0),
            (7, 2),
            (8, 3),
            (9, 5),
            (10, 8),
            (12, 13),
            (15, 25),
            (25, 89),
            (30, 137),
        ] {
            assert_eq!(limit_rank(n, 0.025).unwrap().0, t + 1, "n = {n}");
        }
    }

    #[test]
    fn the_distribution_sums_to_one_and_is_symmetric() {
        for n in [1, 2, 7, 20, 63, 199, 200] {
            let table = untied(n);
            let last = table.len() - 1;
            assert!((table[last] - 1.0).abs() < 1e-12, "n = {n}");
            for t in 0..last {
                let mirrored = 1.0 - table[last - t - 1];
                assert!((table[t] - mirrored).abs() < 1e-12, "n = {n}, t = {t}");
                assert!(table[t] <= table[t + 1]);
            }
            let only_way = 0.5_f64.powi(i32::try_from(n).unwrap());
            assert!((table[0] / only_way - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn where_the_normal_takes_over_it_agrees_with_the_exact() {
        let n = EXACT_PAIRS + 1;
        let exact = cumulative(&(1..=n).collect::<Vec<_>>());
        for shift in [50.3, 70.3, 88.3, 100.3] {
            let d: Vec<f64> = (1..=n).map(|i| i as f64 - shift).collect();
            let mut sizes = d.clone();
            sizes.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
            let negative: usize = (1..=n).filter(|r| sizes[r - 1] < 0.0).sum();
            let expected = 2.0 * exact[negative.min(n * (n + 1) / 2 - negative)];
            let p = p_two_sided(&d);
            let error = (p - expected).abs();
            assert!(error < 5e-4, "shift {shift}: {p}, not {expected}");
        }
        for tail in [0.025, 0.05] {
            let expected = exact.partition_point(|p| *p <= tail) as f64;
            let (k, p) = limit_rank(n, tail).unwrap();
            assert!((k as f64 - expected).abs() <= 5.0, "{k}, not {expected}");
            assert!(p <= tail && p > 0.98 * tail);
        }
    }

    /// Returns P by counting all 2ⁿ signs, with the rank sums formed the slow way.
    fn by_enumeration(d: &[f64]) -> f64 {
        let rank = |x: f64| {
            let below = d.iter().filter(|y| y.abs() < x.abs()).count();
            let equal = d.iter().filter(|y| y.abs() == x.abs()).count();
            below as f64 + (equal as f64 + 1.0) / 2.0
        };
        let ranks: Vec<f64> = d.iter().filter(|x| **x != 0.0).map(|x| rank(*x)).collect();
        let seen: f64 = d.iter().filter(|x| **x > 0.0).map(|x| rank(*x)).sum();
        let centre = ranks.iter().sum::<f64>() / 2.0;
        let outcomes = 1_u32 << ranks.len();
        let as_far = (0..outcomes)
            .filter(|signs| {
                let t: f64 = (0..ranks.len())
                    .filter(|i| signs >> i & 1 == 1)
                    .map(|i| ranks[i])
                    .sum();
                (t - centre).abs() >= (seen - centre).abs() - 1e-9
            })
            .count();
        as_far as f64 / f64::from(outcomes)
    }

    proptest! {
        #![proptest_config(crate::cases_for_tests())]

        #[test]
        fn p_is_exact_with_ties_and_zeros(d in prop::collection::vec(-4..=4_i32, 1..11)) {
            let d: Vec<f64> = d.into_iter().map(f64::from).collect();
            prop_assert!((p_two_sided(&d) - by_enumeration(&d)).abs() < 1e-12);
        }

        #[test]
        fn p_is_exact_without_ties(d in prop::collection::vec(-1.0..1.0_f64, 1..11)) {
            prop_assert!((p_two_sided(&d) - by_enumeration(&d)).abs() < 1e-12);
        }

        #[test]
        fn one_side_is_half_of_both_and_the_sides_share_one_outcome(
            d in prop::collection::vec(-1.0..1.0_f64, 1..40)
        ) {
            let mirrored: Vec<f64> = d.iter().map(|x| -x).collect();
            let (up, down) = (p_positive(&d), p_positive(&mirrored));
            let both = (2.0 * up.min(down)).min(1.0);
            prop_assert!((both - p_two_sided(&d)).abs() < 1e-12);
            prop_assert!(up + down >= 1.0 - 1e-12);
        }
    }
}
