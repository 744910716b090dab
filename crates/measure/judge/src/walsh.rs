//! Order statistics of the Walsh averages (d_i + d_j)/2, i ≤ j.
//!
//! The Hodges-Lehmann estimate is their median and its confidence limits are
//! two others of them (Hodges and Lehmann 1963; Hollander, Wolfe and Chicken,
//! *Nonparametric Statistical Methods*, section 3.3). It must never build the
//! list of n(n+1)/2 averages: ten thousand pairs would need half a gigabyte.

/// Returns the number of Walsh averages of `n` differences.
pub(crate) fn count(n: usize) -> u64 {
    let n = n as u64;
    n * (n + 1) / 2
}

/// Returns the `k`th smallest Walsh average, from 1, of differences sorted ascending.
///
/// Bisects over the bit patterns of the answer, so it is exact: it returns
/// the very number that sorting all averages would.
///
/// # Panics
/// If `sorted` is empty or `k` is not in `1..=count(n)`.
pub(crate) fn kth(sorted: &[f64], k: u64) -> f64 {
    assert!((1..=count(sorted.len())).contains(&k));
    let last = sorted[sorted.len() - 1];
    first(sorted[0], last, |x| at_most(sorted, x) >= k)
}

/// Returns the smallest number from `least` to `most` at which `reached` holds, which it
/// does from there on.
pub(crate) fn first(least: f64, most: f64, reached: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (key(least), key(most));
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(value(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    value(low) + 0.0
}

/// Returns the Hodges-Lehmann estimate of differences sorted ascending.
///
/// # Panics
/// If `sorted` is empty.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let m = count(sorted.len());
    if m % 2 == 1 {
        kth(sorted, m.div_ceil(2))
    } else {
        0.5 * (kth(sorted, m / 2) + kth(sorted, m / 2 + 1))
    }
}

/// Returns the number of Walsh averages that are at most `x`. For a larger d_i fewer
/// d_j qualify, so two indices that move towards one another cover them all.
pub(crate) fn at_most(sorted: &[f64], x: f64) -> u64 {
    let mut end = sorted.len();
    let mut total = 0;
    for (i, low) in sorted.iter().enumerate() {
        while end > i && 0.5 * (low + sorted[end - 1]) > x {
            end -= 1;
        }
        if end <= i {
            break;
        }
        total += (end - i) as u64;
    }
    total
}

/// Maps finite numbers to integers in the same order.
fn key(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

/// Returns the number whose [`key`] this is.
fn value(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 {
        key & !(1 << 63)
    } else {
        !key
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_sorted(d: &[f64]) -> Vec<f64> {
        let mut all: Vec<f64> = (0..d.len())
            .flat_map(|i| (i..d.len()).map(move |j| (i, j)))
            .map(|(i, j)| 0.5 * (d[i] + d[j]))
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    proptest! {
        #![proptest_config(crate::cases_for_tests())]

        #[test]
        fn bisection_agrees_with_sorting_every_average(
            d in prop::collection::vec(
                prop_oneof![-1.0..1.0_f64, Just(0.0), Just(0.25), -1e-300..1e-300],
                1..24,
            )
        ) {
            let mut sorted = d;
            sorted.sort_by(f64::total_cmp);
            for (i, expected) in all_sorted(&sorted).iter().enumerate() {
                prop_assert_eq!(kth(&sorted, i as u64 + 1), *expected);
            }
        }
    }

    #[test]
    fn the_median_of_an_even_number_of_averages_is_between_the_middle_two() {
        // 1, 2, 3 and 1.5, 2, 2.5: the middle two are both 2.
        assert_eq!(median(&[1.0, 2.0, 3.0]), 2.0);
        // 0, 0.5, 1, 2, 2.5, 4: between 1 and 2.
        assert_eq!(median(&[0.0, 1.0, 4.0]), 1.5);
    }
}
