//! The exact rank-sum distribution, and the shift between two samples.
//!
//! W is the sum of the ranks of one side among all values. If both sides are the
//! same, every choice of so many ranks is equally likely, and counting the
//! choices gives W's distribution (Wilcoxon 1945; Mann and Whitney 1947). Tied
//! values share the mean of their ranks, and the distribution is that of the
//! ranks at hand, so it stays exact. The shift is the median of all differences
//! between a value of one side and one of the other, and its confidence limits
//! are two others of them (Hodges and Lehmann 1963; Hollander, Wolfe and
//! Chicken, *Nonparametric Statistical Methods*, chapter 4).
//!
//! Above [`EXACT_SAMPLES`] the normal approximation is used, with its continuity
//! correction and the variance of the tied ranks. It must never fall back to it
//! silently: the result names the method.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::normal;
use crate::signed_rank::Method;
use crate::walsh::first;

/// The number of values of both sides together up to which the distribution is exact.
pub const EXACT_SAMPLES: usize = 100;

/// Returns the method for so many values.
pub(crate) fn method(m: usize, n: usize) -> Method {
    if m + n <= EXACT_SAMPLES {
        Method::Exact
    } else {
        Method::Normal
    }
}

/// Returns the smallest two-sided p of two samples of these sizes, which is when they do
/// not overlap.
pub(crate) fn smallest_p(m: usize, n: usize) -> f64 {
    let (few, all) = (m.min(n), m + n);
    // 1 over the number of choices; it underflows to 0 where there are many.
    let one = (0..few).fold(1.0, |p, i| p * (few - i) as f64 / (all - i) as f64);
    (2.0 * one).min(1.0)
}

/// Returns P(sum ≤ s) for s = 0, 1, … above the least possible sum, where `few` of these
/// ranks are chosen, ascending and each choice equally likely.
fn cumulative(ranks: &[usize], few: usize) -> Vec<f64> {
    let least: usize = ranks[..few].iter().sum();
    let most: usize = ranks[ranks.len() - few..].iter().sum();
    let zero = ranks[0];
    let width = most - few * zero + 1;
    // The number of choices of `j` ranks with each sum; ranks count from the
    // smallest. All terms are positive: no digits are lost.
    let mut ways = vec![vec![0.0; width]; few + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in ranks.iter().map(|rank| rank - zero).enumerate() {
        // In descending order, so that a rank is chosen once.
        for j in (1..=few.min(seen + 1)).rev() {
            let (without, with) = ways.split_at_mut(j);
            let (from, to) = (&without[j - 1], &mut with[0]);
            for (to, from) in to[rank..].iter_mut().zip(from) {
                *to += from;
            }
        }
    }
    let counts = &ways[few][least - few * zero..];
    let all: f64 = counts.iter().sum();
    let mut sum = 0.0;
    counts
        .iter()
        .map(|count| {
            sum += count;
            sum / all
        })
        .collect()
}

/// Returns P(U ≤ u) for u = 0, 1, … of two samples without ties, kept once computed.
fn untied(m: usize, n: usize) -> Arc<Vec<f64>> {
    type Tables = Mutex<HashMap<(usize, usize), Arc<Vec<f64>>>>;
    static TABLES: OnceLock<Tables> = OnceLock::new();
    let sizes = (m.min(n), m.max(n));
    let tables = TABLES.get_or_init(Tables::default);
    let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
    let table = tables.entry(sizes).or_insert_with(|| {
        let ranks: Vec<usize> = (0..m + n).collect();
        Arc::new(cumulative(&ranks, sizes.0))
    });
    Arc::clone(table)
}

/// Returns the two-sided p-value of two samples of finite values, in any order. 1 where a
/// side has none, or all values are equal.
pub(crate) fn p_two_sided(baseline: &[f64], experiment: &[f64]) -> f64 {
    let (m, n) = (baseline.len(), experiment.len());
    if m == 0 || n == 0 {
        return 1.0;
    }
    let mut all: Vec<(f64, bool)> = baseline.iter().map(|x| (*x, m <= n)).collect();
    all.extend(experiment.iter().map(|x| (*x, m > n)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Doubled, so that a mean rank is an integer.
    let mut ranks = Vec::with_capacity(all.len());
    let mut sum = 0;
    let mut ties = 0.0;
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let rank = 2 * ranks.len() + group.len() + 1;
        let size = group.len() as f64;
        ties += size * (size * size - 1.0);
        ranks.extend(std::iter::repeat_n(rank, group.len()));
        sum += rank * group.iter().filter(|(_, counts)| *counts).count();
    }
    if ranks[0] == ranks[ranks.len() - 1] {
        return 1.0;
    }
    let few = m.min(n);
    let tail = match method(m, n) {
        Method::Exact if ties == 0.0 => {
            let u = (sum - few * (few + 1)) / 2;
            untied(m, n)[u.min(m * n - u)]
        }
        Method::Exact => {
            let table = cumulative(&ranks, few);
            let at = sum - ranks[..few].iter().sum::<usize>();
            let above = at.checked_sub(1).map_or(0.0, |below| table[below]);
            table[at].min(1.0 - above)
        }
        Method::Normal => {
            let (m, n) = (m as f64, n as f64);
            let all = m + n;
            let few = few as f64;
            let variance = m * n / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
            let apart = (0.5 * sum as f64 - 0.5 * few * (all + 1.0)).abs() - 0.5;
            0.5 * normal::two_sided_tail(apart.max(0.0) / variance.sqrt())
        }
    };
    (2.0 * tail).min(1.0)
}

/// Returns the rank k of the lower confidence limit among the sorted differences, where
/// each limit may miss with probability `tail`, and the probability with which
/// it does. The upper limit has rank mn + 1 − k. `None` where so few samples
/// cannot give such an interval. With ties it covers at least as often.
pub(crate) fn limit_rank(m: usize, n: usize, tail: f64) -> Option<(u64, f64)> {
    if m == 0 || n == 0 {
        return None;
    }
    match method(m, n) {
        Method::Exact => {
            let table = untied(m, n);
            let k = table.partition_point(|p| *p <= tail);
            (k > 0).then(|| (k as u64, table[k - 1]))
        }
        Method::Normal => {
            let (m, n) = (m as f64, n as f64);
            let mean = 0.5 * m * n;
            let sd = (m * n * (m + n + 1.0) / 12.0).sqrt();
            let u = (mean - 0.5 - normal::upper_quantile(tail) * sd).floor();
            let p = 0.5 * normal::two_sided_tail((mean - 0.5 - u) / sd);
            (u >= 0.0).then_some((u as u64 + 1, p))
        }
    }
}

/// All differences between a value of the experiment and one of the baseline,
/// which are never built: a thousand samples of each side have a million.
pub(crate) struct Differences<'a> {
    /// The baseline's values, ascending and not empty.
    pub(crate) baseline: &'a [f64],
    /// The experiment's values, ascending and not empty.
    pub(crate) experiment: &'a [f64],
}

impl Differences<'_> {
    pub(crate) fn count(&self) -> u64 {
        self.baseline.len() as u64 * self.experiment.len() as u64
    }

    /// Returns the `k`th smallest, from 1: the very number that sorting all of them
    /// would give.
    pub(crate) fn kth(&self, k: u64) -> f64 {
        let (b, e) = (self.baseline, self.experiment);
        let least = e[0] - b[b.len() - 1];
        let most = e[e.len() - 1] - b[0];
        first(least, most, |x| self.at_most(x) >= k)
    }

    /// Returns the median: the Hodges-Lehmann shift.
    pub(crate) fn median(&self) -> f64 {
        let count = self.count();
        match count % 2 {
            1 => self.kth(count.div_ceil(2)),
            _ => 0.5 * (self.kth(count / 2) + self.kth(count / 2 + 1)),
        }
    }

    /// Returns the number of differences that are at most `x`. For a larger value of the
    /// baseline more of the experiment's qualify.
    fn at_most(&self, x: f64) -> u64 {
        let mut end = 0;
        let mut total = 0;
        for b in self.baseline {
            while end < self.experiment.len() && self.experiment[end] - b <= x {
                end += 1;
            }
            total += end as u64;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the critical values U of the two-sided 5 % test, as printed in statistics
    /// books: the largest U with P(U ≤ u) ≤ 0.025.
    #[test]
    fn critical_values_of_the_books() {
        assert_eq!(limit_rank(3, 3, 0.025), None);
        for (m, n, u) in [
            (4, 4, 0),
            (5, 5, 2),
            (5, 8, 6),
            (8, 8, 13),
            (10, 10, 23),
            (10, 15, 39),
            (20, 20, 127),
        ] {
            assert_eq!(limit_rank(m, n, 0.025).unwrap().0, u + 1, "{m}, {n}");
            assert_eq!(limit_rank(n, m, 0.025).unwrap().0, u + 1, "{n}, {m}");
        }
    }

    #[test]
    fn the_smallest_p_is_that_of_samples_that_do_not_overlap() {
        for (m, n) in [(1, 1), (2, 3), (4, 4), (7, 3), (20, 20), (50, 50)] {
            let low: Vec<f64> = (0..m).map(|i| i as f64).collect();
            let high: Vec<f64> = (0..n).map(|i| 1000.0 + i as f64).collect();
            let p = p_two_sided(&low, &high);
            assert!((p / smallest_p(m, n) - 1.0).abs() < 1e-9, "{m}, {n}: {p}");
        }
        assert!((smallest_p(4, 4) - 2.0 / 70.0).abs() < 1e-15);
        assert_eq!(smallest_p(0, 9), 1.0);
    }

    #[test]
    fn the_normal_approximation_is_close_where_it_takes_over() {
        let half = EXACT_SAMPLES / 2;
        for shift in [3, 9, 12, 20] {
            let b: Vec<f64> = (0..half).map(|i| (2 * i) as f64).collect();
            let e: Vec<f64> = (0..half).map(|i| (2 * i + 2 * shift + 1) as f64).collect();
            let exact = p_two_sided(&b, &e);
            let mut more = b.clone();
            more.push(half as f64 + shift as f64);
            let approximate = p_two_sided(&more, &e);
            assert!(
                (exact - approximate).abs() < 0.15 * exact + 1e-3,
                "{shift}: {exact}, {approximate}"
            );
        }
        for tail in [0.025, 0.05] {
            let (k, _) = limit_rank(half, half, tail).unwrap();
            let (beyond, p) = limit_rank(half, half + 1, tail).unwrap();
            assert!(k < beyond && beyond < k + 40, "{k}, {beyond}");
            assert!(p <= tail && p > 0.97 * tail);
        }
    }

    /// Returns P by counting all choices, with the rank sums formed the slow way.
    fn by_enumeration(b: &[f64], e: &[f64]) -> f64 {
        let all: Vec<f64> = b.iter().chain(e).copied().collect();
        let rank = |x: f64| {
            let below = all.iter().filter(|y| **y < x).count();
            let equal = all.iter().filter(|y| **y == x).count();
            below as f64 + (equal as f64 + 1.0) / 2.0
        };
        let ranks: Vec<f64> = all.iter().map(|x| rank(*x)).collect();
        let seen: f64 = ranks[b.len()..].iter().sum();
        let (mut low, mut high, mut choices) = (0, 0, 0);
        for chosen in 0_u32..1 << all.len() {
            if chosen.count_ones() as usize == e.len() {
                let of = |i: &usize| chosen >> i & 1 == 1;
                let sum: f64 = (0..all.len()).filter(of).map(|i| ranks[i]).sum();
                choices += 1;
                low += u32::from(sum <= seen + 1e-9);
                high += u32::from(sum >= seen - 1e-9);
            }
        }
        (2.0 * f64::from(low.min(high)) / f64::from(choices)).min(1.0)
    }

    proptest! {
        #![proptest_config(crate::cases_for_tests())]

        #[test]
        fn p_is_exact_with_ties(
            b in prop::collection::vec(0..5_i32, 1..7),
            e in prop::collection::vec(0..5_i32, 1..7),
        ) {
            let of = |x: Vec<i32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
            let (b, e) = (of(b), of(e));
            prop_assert!((p_two_sided(&b, &e) - by_enumeration(&b, &e)).abs() < 1e-12);
        }

        #[test]
        fn p_is_exact_without_ties_and_takes_no_side(
            b in prop::collection::vec(-1.0..1.0_f64, 1..7),
            e in prop::collection::vec(-1.0..1.0_f64, 1..7),
        ) {
            let p = p_two_sided(&b, &e);
            prop_assert!((p - by_enumeration(&b, &e)).abs() < 1e-12);
            prop_assert!((p - p_two_sided(&e, &b)).abs() < 1e-12);
        }

        #[test]
        fn bisection_agrees_with_sorting_every_difference(
            b in prop::collection::vec(prop_oneof![-1.0..1.0_f64, Just(0.25)], 1..12),
            e in prop::collection::vec(prop_oneof![-1.0..1.0_f64, Just(0.25)], 1..12),
        ) {
            let (mut b, mut e) = (b, e);
            b.sort_by(f64::total_cmp);
            e.sort_by(f64::total_cmp);
            let mut all: Vec<f64> = e.iter().flat_map(|e| b.iter().map(move |b| e - b)).collect();
            all.sort_by(f64::total_cmp);
            let differences = Differences { baseline: &b, experiment: &e };
            for (i, expected) in all.iter().enumerate() {
                prop_assert_eq!(differences.kth(i as u64 + 1), *expected);
            }
        }
    }
}
