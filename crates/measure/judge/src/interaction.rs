//! Tests whether a difference depends on the circumstances in which it was measured:
//! a test of interaction over all comparisons of a session.
//!
//! Pairs of one comparison that were measured in two circumstances (the host
//! moved a virtual machine's CPUs) are pooled, because both sides of a pair
//! share them. That is right unless the difference itself depends on them, which
//! this test decides once for a session, and then for each comparison. It must
//! never decide what belongs to a circumstance, nor be asked again until it agrees.

use crate::alpha::ALPHA;
use crate::family::Family;
use crate::pair::fork_seed;
use crate::signed_rank::p_two_sided;

/// Below this p the differences depend on the circumstances. One in a hundred
/// sessions in which they do not is split for nothing, which costs width and no
/// wrong call.
pub const INTERACTION: f64 = 0.01;

/// Holds the number of times that the signs are tossed anew.
const TOSSES: u64 = 999;

/// The fewest matched pairs of a comparison: fewer could not show anything.
const LEAST: usize = 3;

/// Holds what the pairs of a session say of the circumstances in which they ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// p of the hypothesis that in no comparison the differences depend on the
    /// circumstance of their pair.
    pub p: f64,
    /// The comparisons whose differences do: where p is below [`INTERACTION`],
    /// those found by a test of their own at a false discovery rate of 5 %.
    pub depends: Vec<bool>,
}

/// Tests whether differences depend on circumstances. Each comparison lists its pairs
/// as difference and whether it was measured in the second circumstance. `None`
/// if no comparison has at least three pairs in each.
///
/// Each pair of the rarer circumstance is matched with some of the other, by lot,
/// and their mean subtracted. If both circumstances have one centre, the result
/// is as probable as its opposite, whatever the noise in either: so p, from tossing
/// the signs anew, is exact (up to the number of tosses) although noise mostly
/// does depend on the circumstances. (A test that deals out the circumstances
/// anew, as Kruskal's and Wallis's, takes that for an interaction.) The statistic
/// is the sum of the squares of the comparisons' signed-rank statistics, so that
/// an interaction counts in whichever direction it goes in each. The test of one
/// comparison is the signed-rank test of its matched differences.
#[must_use]
pub fn interaction(comparisons: &[Vec<(f64, bool)>], seed: u64) -> Option<Interaction> {
    let matched: Vec<Vec<f64>> = comparisons
        .iter()
        .enumerate()
        .map(|(at, pairs)| matched(pairs, fork_seed(seed, at as u64)))
        .collect();
    let strata: Vec<Vec<f64>> = matched.iter().filter_map(|d| signed_ranks(d)).collect();
    if strata.is_empty() {
        return None;
    }
    let statistic = |tossed: &dyn Fn(usize, usize) -> bool| -> f64 {
        let squares = strata.iter().enumerate().map(|(at, ranks)| {
            let (mut sum, mut variance) = (0.0, 0.0);
            for (i, rank) in ranks.iter().enumerate() {
                sum += if tossed(at, i) { -rank } else { *rank };
                variance += rank * rank;
            }
            sum * sum / variance
        });
        squares.sum()
    };
    let seen = statistic(&|_, _| false);
    let as_far = (0..TOSSES)
        .filter(|toss| {
            let seed = fork_seed(seed ^ 0x5169_6e73, *toss);
            let tossed =
                |at: usize, i: usize| fork_seed(fork_seed(seed, at as u64), i as u64) & 1 == 1;
            // Sums of the same numbers in another order.
            statistic(&tossed) >= seen * (1.0 - 1e-9)
        })
        .count();
    let p = (1.0 + as_far as f64) / (1.0 + TOSSES as f64);
    let each: Vec<f64> = matched.iter().map(|d| p_two_sided(d)).collect();
    let adjusted = Family::FalseDiscovery.adjust(&each);
    Some(Interaction {
        p,
        depends: adjusted
            .iter()
            .map(|each| p < INTERACTION && *each < ALPHA)
            .collect(),
    })
}

/// Returns the differences in the rarer circumstance, each less the mean of as many of
/// the other as there are for each.
fn matched(pairs: &[(f64, bool)], seed: u64) -> Vec<f64> {
    let mut by_lot: Vec<(u64, f64, bool)> = pairs
        .iter()
        .zip(0..)
        .filter(|((d, _), _)| d.is_finite())
        .map(|((d, second), i)| (fork_seed(seed, i), *d, *second))
        .collect();
    by_lot.sort_by_key(|(lot, ..)| *lot);
    let of = |wanted: bool| -> Vec<f64> {
        let of = by_lot.iter().filter(|(.., second)| *second == wanted);
        of.map(|(_, d, _)| *d).collect()
    };
    let (mut rarer, mut other) = (of(true), of(false));
    if rarer.len() > other.len() {
        std::mem::swap(&mut rarer, &mut other);
    }
    let each = other.len() / rarer.len().max(1);
    if each == 0 {
        return Vec::new();
    }
    let means = other
        .chunks_exact(each)
        .map(|chunk| chunk.iter().sum::<f64>() / each as f64);
    rarer.iter().zip(means).map(|(d, mean)| d - mean).collect()
}

/// Returns the ranks of the sizes, with their signs; `None` if there are too few.
fn signed_ranks(differences: &[f64]) -> Option<Vec<f64>> {
    let mut differences = differences.to_vec();
    differences.retain(|d| *d != 0.0);
    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = differences.iter().zip(1_u32..);
    let ranks: Vec<f64> = ranks
        .map(|(d, rank)| f64::from(rank).copysign(*d))
        .collect();
    (ranks.len() >= LEAST).then_some(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(seed: u64, i: u64) -> f64 {
        (fork_seed(seed, i) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns 12 comparisons of 16 pairs, of which 5 are in another circumstance,
    /// worth `effect` of the width of the noise, with noise of another width; its
    /// sign alternates.
    fn session(seed: u64, effect: f64, width: f64) -> Vec<Vec<(f64, bool)>> {
        (0..12)
            .map(|c| {
                let seed = fork_seed(seed, c);
                let sign = if c % 2 == 0 { 1.0 } else { -1.0 };
                (0..16)
                    .map(|i| {
                        let second = i >= 11;
                        let noise = uniform(seed, i) - 0.5;
                        if second {
                            (width * noise + sign * effect, second)
                        } else {
                            (noise, second)
                        }
                    })
                    .collect()
            })
            .collect()
    }

    fn found(session: &[Vec<(f64, bool)>]) -> Interaction {
        interaction(session, 7).unwrap()
    }

    #[test]
    fn comparisons_that_depend_are_told_from_those_that_do_not() {
        // The first three of twelve depend on their circumstance.
        let (mut right, mut wrong, sessions) = (0, 0, 200);
        for seed in 0..sessions {
            let mut mixed = session(seed, 0.0, 1.0);
            for (at, pairs) in mixed.iter_mut().take(3).enumerate() {
                for i in 0..40 {
                    let second = i % 2 == 1;
                    let noise = uniform(fork_seed(seed, 99 + at as u64), i) - 0.5;
                    pairs.push((noise + f64::from(u8::from(second)), second));
                }
            }
            let depends = found(&mixed).depends;
            right += depends[..3].iter().filter(|d| **d).count();
            wrong += depends[3..].iter().filter(|d| **d).count();
        }
        let all = 3 * usize::try_from(sessions).unwrap();
        assert!(right * 10 > all * 9, "{right} of {all} found");
        assert!(wrong * 20 < right + wrong, "{wrong} wrong, {right} right");
    }

    #[test]
    fn one_session_in_a_hundred_is_split_for_nothing_and_a_real_dependence_is_found() {
        let split = |effect: f64, width: f64| {
            (0..400)
                .filter(|s| found(&session(*s, effect, width)).p < INTERACTION)
                .count()
        };
        // More noise in a circumstance is no dependence.
        for width in [1.0, 3.0, 0.3] {
            let false_alarms = split(0.0, width);
            println!("{width}: {false_alarms} of 400 split for nothing");
            assert!(
                (0..=9).contains(&false_alarms),
                "{width}: {false_alarms} of 400"
            );
        }
        let found = split(0.6, 1.0);
        assert!(found > 380, "{found} of 400");
    }

    #[test]
    fn what_cannot_be_tested_is_not() {
        assert_eq!(interaction(&[], 1), None);
        assert_eq!(interaction(&[vec![(0.1, false); 9]], 1), None);
        let mut few = vec![(0.1, false), (0.2, false), (0.3, false), (0.4, true)];
        few.extend([(0.5, true), (f64::NAN, true)]);
        assert_eq!(interaction(&[few.clone()], 1), None);
        few.push((0.6, true));
        assert!(interaction(&[few], 1).is_some());
    }
}
