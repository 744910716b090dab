//! Several comparisons at once: the expected number of wrong calls in a report.
//!
//! Must never look at anything but p-values: which comparisons make up a
//! family is decided before the run, and one that turned out invalid stays in
//! it with p = 1.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::alpha::ALPHA;

/// The meaning of 5 % for a family of m primary comparisons.
///
/// | | 5 % bounds | pairs for one cell of 126 to be called | use for |
/// | --- | --- | --- | --- |
/// | [`Holm`](Family::Holm) | the chance of any wrong call | 13, all agreeing | workloads: each verdict must stand alone |
/// | [`FalseDiscovery`](Family::FalseDiscovery) | the share of the calls that are wrong | 13; with 8 pairs, 20 cells together | the cells of a matrix: the map must be right |
/// | [`Each`](Family::Each) | each call by itself | 8 | exploration: of 126 equal cells, 6 will be called |
///
/// **Why a matrix is not a Holm family.** The smallest p that n pairs can give
/// is 2^(1−n), 0.0078 for n = 8, and Holm multiplies the smallest of m by m.
/// So 8 pairs in each of 126 cells can call nothing, were one lock twice as
/// fast in all of them. The false discovery rate (Benjamini and Hochberg
/// 1995) lets cells support one another: with k cells unanimous, p need be
/// no smaller than 0.05 k / m. That suits a matrix, where effects fill
/// regions. The cost: of the cells called better or worse, one in
/// twenty may be wrong, so a *single* cell of a matrix is a hint, and a
/// comparison of that cell alone is the proof. The guarantee that remains:
/// where baseline and experiment are the same, the chance that any cell is
/// called is 5 %, as with Holm.
///
/// In simulated matrices of 126 cells, of which 42 differ by 1.3 s_d (the test
/// suite repeats this):
///
/// | | pairs | of the 42 called | of the calls wrong |
/// | --- | --- | --- | --- |
/// | Holm | 8 | 0 % | – |
/// | FalseDiscovery | 8 | 35 % | 2 % |
/// | Holm | 13 | 30 % | 0.1 % |
/// | FalseDiscovery | 13 | 95 % | 3 % |
/// | Each | 13 | 99 % | 9 % |
///
/// The bound holds for independent cells, and for positively dependent ones;
/// each cell must have its own coins ([`fork_seed`](crate::fork_seed)), which
/// makes cells that were measured during the same noise independent. The
/// variant for any dependence (Benjamini and Yekutieli 2001) costs a factor of
/// 5.4 at m = 126, or two more pairs, and is not offered: the coins make it
/// unnecessary.
///
/// [`pairs_needed`] is the number of pairs that a family needs,
/// [`fewest_callable`] what a given number can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Family {
    /// Holm 1979: at most 5 % chance of any wrong call.
    #[default]
    Holm,
    /// Benjamini and Hochberg 1995: at most 5 % of the calls wrong, on
    /// average.
    FalseDiscovery,
    /// No correction: each call wrong with 5 % chance.
    Each,
}

impl Family {
    /// Returns the adjusted p-values, in the order given; a comparison may be called
    /// where its own is below 0.05. NaN counts as 1.
    #[must_use]
    pub fn adjust(self, p: &[f64]) -> Vec<f64> {
        let p: Vec<f64> = p
            .iter()
            .map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) })
            .collect();
        match self {
            Self::Holm => holm(&p),
            Self::FalseDiscovery => benjamini_hochberg(&p),
            Self::Each => p,
        }
    }

    /// Returns how many of `members` comparisons must together have this p, the smallest
    /// that their runs can give, before any of them can be called.
    pub(crate) fn callable_with(self, members: usize, p: f64) -> Option<usize> {
        if p < self.level(members) {
            return Some(1);
        }
        match self {
            Self::Holm | Self::Each => None,
            Self::FalseDiscovery => {
                (2..=members).find(|k| p < ALPHA * (*k as f64) / (members as f64))
            }
        }
    }

    /// Returns the p that a lone effect among `members` comparisons must be below.
    pub(crate) fn level(self, members: usize) -> f64 {
        match self {
            Self::Holm | Self::FalseDiscovery => ALPHA / members.max(1) as f64,
            Self::Each => ALPHA,
        }
    }
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}

fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (i, index) in ascending(p).into_iter().enumerate() {
        largest = largest.max((p.len() - i) as f64 * p[index]).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (i, index) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p.len() as f64 / (i + 1) as f64 * p[index]);
        adjusted[index] = smallest;
    }
    adjusted
}

/// Returns the smallest two-sided p that `pairs` pairs can give, which is when all of
/// them agree.
#[must_use]
pub fn smallest_p(pairs: usize) -> f64 {
    let pairs = i32::try_from(pairs).unwrap_or(i32::MAX);
    0.5_f64.powi(pairs.saturating_sub(1))
}

/// Returns the number of pairs that each of `members` comparisons needs before one of them
/// alone can be called better or worse, if all its pairs agree. That is the
/// bare minimum: a real effect among noise needs more.
///
/// ```
/// use locklab_judge::{Family, pairs_needed};
/// assert_eq!(pairs_needed(Family::Holm, 1), 6);
/// assert_eq!(pairs_needed(Family::FalseDiscovery, 126), 13);
/// ```
#[must_use]
pub fn pairs_needed(family: Family, members: usize) -> usize {
    (1..)
        .find(|n| smallest_p(*n) < family.level(members))
        .unwrap_or(usize::MAX)
}

/// Returns how many of `members` comparisons must be unanimous together before any
/// of them can be called with this many pairs each; `None` if even all of
/// them cannot.
///
/// ```
/// use locklab_judge::{Family, fewest_callable};
/// assert_eq!(fewest_callable(Family::Holm, 126, 8), None);
/// assert_eq!(fewest_callable(Family::FalseDiscovery, 126, 8), Some(20));
/// assert_eq!(fewest_callable(Family::FalseDiscovery, 126, 13), Some(1));
/// ```
#[must_use]
pub fn fewest_callable(family: Family, members: usize, pairs: usize) -> Option<usize> {
    family.callable_with(members, smallest_p(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn worked_by_hand() {
        let p = [0.01, 0.04, 0.03, 0.005];
        assert!(close(&Family::Holm.adjust(&p), &[0.03, 0.06, 0.06, 0.02]));
        assert!(close(
            &Family::FalseDiscovery.adjust(&p),
            &[0.02, 0.04, 0.04, 0.02]
        ));
        assert!(close(&Family::Each.adjust(&p), &p));
        assert!(Family::Holm.adjust(&[]).is_empty());
        assert!(close(&Family::Holm.adjust(&[f64::NAN, 0.02]), &[1.0, 0.04]));
    }

    #[test]
    fn eight_pairs_in_126_cells_call_nothing_under_holm() {
        let unanimous = vec![smallest_p(8); 126];
        assert!(Family::Holm.adjust(&unanimous).iter().all(|p| *p >= ALPHA));
        for k in [19, 20] {
            let mut p = vec![1.0; 126];
            p[..k].fill(smallest_p(8));
            let called = Family::FalseDiscovery.adjust(&p);
            assert_eq!(called.iter().filter(|p| **p < ALPHA).count(), k / 20 * k);
        }
    }

    proptest! {
        #![proptest_config(crate::cases_for_tests())]

        #[test]
        fn adjusting_keeps_the_order_and_never_lowers_p(
            p in prop::collection::vec(0.0..=1.0_f64, 0..40)
        ) {
            let holm = Family::Holm.adjust(&p);
            let bh = Family::FalseDiscovery.adjust(&p);
            for i in 0..p.len() {
                prop_assert!(p[i] <= bh[i] + 1e-15 && bh[i] <= holm[i] + 1e-15);
                prop_assert!(holm[i] <= 1.0);
                for j in 0..p.len() {
                    if p[i] < p[j] {
                        prop_assert!(holm[i] <= holm[j] && bh[i] <= bh[j]);
                    }
                }
            }
        }

        #[test]
        fn the_pairs_needed_suffice_and_one_less_does_not(members in 1..400_usize) {
            for family in [Family::Holm, Family::FalseDiscovery, Family::Each] {
                let n = pairs_needed(family, members);
                prop_assert_eq!(fewest_callable(family, members, n), Some(1));
                prop_assert_ne!(fewest_callable(family, members, n - 1), Some(1));
            }
        }
    }
}
