//! Many subjects in complete blocks: which of them may be the best, and how
//! far behind each is.
//!
//! Every block gives one value of each subject. The answer is a *set that
//! contains the best*: a subject leaves it if some other one is better by the
//! exact one-sided signed-rank test at 5 % / (k − 1). The best is compared
//! with k − 1 others, so it stays with 95 %, whatever k and whatever the others
//! are. Two subjects are the case k = 2.
//!
//! That bound holds for the best one alone: of eight equal subjects some other
//! one would leave in every fourth run. So nothing leaves unless a test
//! of all subjects together finds a difference: their aligned ranks (J. L.
//! Hodges and E. L. Lehmann 1962), under permutations within each block. Of
//! equal subjects none leaves in 95 of 100 runs. The test can only keep
//! subjects in the set.
//!
//! It must never drop a subject for want of data: what was not shown to be
//! behind stays.

use crate::alpha::ALPHA;
use crate::estimate::Shown;
use crate::pair::{Direction, fork_seed};
use crate::settings::MIN_PAIRS;
use crate::{signed_rank, walsh};

#[cfg(feature = "serde")]
use serde::Serialize;

/// The part of the 5 % that all interim looks share.
const INTERIM_SHARE: f64 = 0.2;

/// Permutations of the test of all subjects together.
const PERMUTATIONS: u32 = 1999;

/// A value of zero has no logarithm, and is behind every other one.
const LEAST: f64 = f64::MIN_POSITIVE;

/// The numbers of blocks after which subjects may leave, fixed before the first
/// block; the 5 % is divided among them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Looks {
    interim: Vec<usize>,
}

impl Looks {
    /// Returns one look, at the end.
    #[must_use]
    pub fn at_the_end() -> Self {
        Self {
            interim: Vec::new(),
        }
    }

    /// Looks for `subjects` subjects in at most `blocks` blocks: after half of
    /// them and after three quarters, where so few blocks can show anything.
    /// Interim looks have a fifth of the 5 % together.
    #[must_use]
    pub fn planned(blocks: usize, subjects: usize) -> Self {
        let mut interim = vec![blocks / 2, blocks * 3 / 4];
        interim.dedup();
        while let Some(first) = interim.first() {
            let level = ALPHA * INTERIM_SHARE / interim.len() as f64 / others(subjects);
            if 0.5_f64.powi(i32::try_from(*first).unwrap_or(i32::MAX)) <= level {
                break;
            }
            interim.remove(0);
        }
        interim.retain(|look| *look < blocks);
        Self { interim }
    }

    /// Returns the interim looks: after these numbers of blocks a subject may leave.
    #[must_use]
    pub fn interim(&self) -> &[usize] {
        &self.interim
    }

    /// Returns the part of the 5 % of each interim look.
    fn share(&self) -> f64 {
        INTERIM_SHARE / self.interim.len().max(1) as f64
    }

    /// Returns the interim looks that these blocks have reached, each with its part of
    /// the 5 %.
    fn reached(&self, blocks: usize) -> Vec<(usize, f64)> {
        let reached = self.interim.iter().filter(|look| **look <= blocks);
        reached.map(|look| (*look, self.share())).collect()
    }

    /// Returns all looks of a measurement that ended after these blocks.
    fn all(&self, blocks: usize) -> Vec<(usize, f64)> {
        let mut all = self.reached(blocks.saturating_sub(1));
        all.push((blocks, 1.0 - self.share() * self.interim.len() as f64));
        all
    }
}

/// Holds what was shown of one subject.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct Standing {
    /// Number of blocks in which it has a value.
    pub blocks: usize,
    /// Is true if it may be the best. True as well of a subject with too few
    /// blocks: nothing was shown of it.
    pub may_be_best: bool,
    /// The subject that is shown to be better with the least p, if it left.
    pub beaten_by: Option<usize>,
    /// The number of blocks after which it left, if that was before the end.
    pub left: Option<usize>,
    /// The subject over the best one, in the metric's own direction: 0.9 of the
    /// rate, 1.2 of the latency. `value` is an estimate; each limit holds for
    /// all subjects together in 95 of 100 runs. `None` with too few blocks.
    pub of_best: Option<Shown>,
    /// Shown within δ of the best: the limit that is farther from the best is
    /// within it.
    pub within_delta: bool,
}

fn others(subjects: usize) -> f64 {
    subjects.saturating_sub(1).max(1) as f64
}

/// Returns the number of blocks after which one of `subjects` can leave the set, if all
/// blocks agree: with fewer, every subject may be the best.
///
/// ```
/// assert_eq!(locklab_judge::blocks_needed(30), 10);
/// ```
#[must_use]
pub fn blocks_needed(subjects: usize) -> usize {
    let level = ALPHA / others(subjects);
    let needed = (1..64).find(|n| 0.5_f64.powi(*n) <= level).unwrap_or(64);
    usize::try_from(needed).unwrap_or(usize::MAX).max(MIN_PAIRS)
}

/// Judges each subject by the blocks.
///
/// `values[i][b]` is the value of subject i in block b, not a number where it
/// has none; a shorter list ends early. Zero is an outcome, the worst; a
/// negative value counts as none. `delta` is the margin that does not matter,
/// as a fraction.
///
/// ```
/// use locklab_judge::{Direction, Looks, best};
/// let noise = |b: u32| f64::from(b * 7 % 12) / 1000.0;
/// let rates = [1.0, 0.999, 0.8].map(|rate| {
///     (0..12).map(|b| rate + noise(b)).collect::<Vec<f64>>()
/// });
/// let shown = best(&rates, Direction::HigherIsBetter, &Looks::at_the_end(), 0.01);
/// assert!(!shown[2].may_be_best && shown[1].within_delta);
/// assert_eq!(shown[2].beaten_by, Some(0));
/// ```
#[must_use]
pub fn best(values: &[Vec<f64>], direction: Direction, looks: &Looks, delta: f64) -> Vec<Standing> {
    let field = Field::new(values, direction);
    let left = field.leave(&looks.all(field.blocks()));
    let stays = |i: usize| left[i].is_none();
    let behind = field.behind(&stays);
    let blocks = field.blocks();
    (0..values.len())
        .map(|i| {
            let of_best = behind[i].map(|b| b.ratio(direction));
            Standing {
                blocks: field.count(i),
                may_be_best: stays(i),
                beaten_by: left[i].map(|l| l.by),
                left: left[i].map(|l| l.after).filter(|after| *after < blocks),
                within_delta: behind[i].is_some_and(|b| -b.high >= (1.0 - delta).ln()),
                of_best,
            }
        })
        .collect()
}

/// Returns for each subject whether it has left at one of the interim looks so far, and need
/// not be measured again.
#[must_use]
pub fn have_left(values: &[Vec<f64>], direction: Direction, looks: &Looks) -> Vec<bool> {
    let field = Field::new(values, direction);
    let left = field.leave(&looks.reached(field.blocks()));
    left.iter().map(Option::is_some).collect()
}

/// Logarithms by subject and block, with the sign with which more is better.
struct Field {
    logs: Vec<Vec<Option<f64>>>,
}

/// Says when and by whom a subject was shown not to be the best.
#[derive(Clone, Copy)]
struct Left {
    after: usize,
    by: usize,
}

/// Holds the distance of a subject from the best, as a logarithm.
#[derive(Clone, Copy)]
struct Behind {
    value: f64,
    low: f64,
    high: f64,
}

impl Behind {
    fn ratio(self, direction: Direction) -> Shown {
        let sign = -direction.sign();
        let [value, low, high] = [self.value, self.low, self.high].map(|x| (sign * x).exp());
        Shown {
            value,
            low: low.min(high),
            high: low.max(high),
        }
    }
}

impl Field {
    fn new(values: &[Vec<f64>], direction: Direction) -> Self {
        let log = |x: &f64| {
            (x.is_finite() && *x >= 0.0).then(|| direction.sign() * x.max(LEAST).ln() + 0.0)
        };
        Self {
            logs: values.iter().map(|v| v.iter().map(log).collect()).collect(),
        }
    }

    fn blocks(&self) -> usize {
        self.logs.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn count(&self, i: usize) -> usize {
        self.logs[i].iter().flatten().count()
    }

    /// Returns whether a subject has enough blocks for its limits.
    fn is_ranked(&self, i: usize) -> bool {
        let needed = blocks_needed(self.logs.len());
        self.count(i) >= needed.min(self.blocks()).max(1)
    }

    /// Returns d of the first `blocks` blocks in which both have a value; positive
    /// where j is better.
    fn differences(&self, i: usize, j: usize, blocks: usize) -> Vec<f64> {
        let both = self.logs[i].iter().zip(&self.logs[j]).take(blocks);
        both.filter_map(|(i, j)| Some((*j)? - (*i)? + 0.0))
            .collect()
    }

    /// Returns the subjects that were shown not to be the best, look by look.
    fn leave(&self, looks: &[(usize, f64)]) -> Vec<Option<Left>> {
        let k = self.logs.len();
        let mut left: Vec<Option<Left>> = vec![None; k];
        for &(after, share) in looks {
            // One that ended before, for whatever reason, is not compared: its
            // number of blocks may depend on its values.
            let there = |i: usize| left[i].is_none() && self.logs[i].len() >= after;
            let there: Vec<usize> = (0..k).filter(|i| there(*i)).collect();
            let level = share * ALPHA;
            if !self.differ(&there, after, level) {
                continue;
            }
            for i in &there {
                let others_of_i = there.iter().filter(|j| *j != i);
                let p = |j: &usize| signed_rank::p_positive(&self.differences(*i, *j, after));
                let least = others_of_i
                    .map(|j| (p(j), *j))
                    .min_by(|a, b| a.0.total_cmp(&b.0));
                if let Some((p, by)) = least
                    && p <= level / others(k)
                {
                    left[*i] = Some(Left { after, by });
                }
            }
        }
        left
    }

    /// Returns whether these subjects are not all equal: the range of their sums of
    /// aligned ranks, against permutations within each block.
    fn differ(&self, there: &[usize], blocks: usize, level: f64) -> bool {
        // A subject that failed now and then would cost all others a block.
        let whole = |i: &usize| self.logs[*i][..blocks].iter().all(Option::is_some);
        let mut there: Vec<usize> = there.to_vec();
        if there.iter().filter(|i| whole(i)).count() > 1 {
            there.retain(whole);
        }
        let mut aligned: Vec<Vec<f64>> = Vec::new();
        for block in 0..blocks {
            let values: Option<Vec<f64>> = there
                .iter()
                .map(|i| self.logs[*i].get(block).copied().flatten())
                .collect();
            let Some(values) = values else { continue };
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let Some(last) = sorted.len().checked_sub(1) else {
                return false;
            };
            let centre = 0.5 * (sorted[last / 2] + sorted[last - last / 2]);
            aligned.push(values.iter().map(|x| x - centre).collect());
        }
        let ranks = ranks_of(&aligned);
        let range = |sums: &[u64]| {
            let most = sums.iter().max().copied().unwrap_or(0);
            most - sums.iter().min().copied().unwrap_or(0)
        };
        let mut sums = vec![0; there.len()];
        for block in &ranks {
            for (sum, rank) in sums.iter_mut().zip(block) {
                *sum += rank;
            }
        }
        let seen = range(&sums);
        let allowed = (level * f64::from(PERMUTATIONS + 1)) as u32;
        // The arrangement that was seen is one of those that are possible.
        let mut as_far = 1;
        let mut shuffled = ranks;
        for permutation in 0..PERMUTATIONS {
            if as_far > allowed {
                return false;
            }
            sums.fill(0);
            for (number, block) in shuffled.iter_mut().enumerate() {
                shuffle(block, (u64::from(permutation) << 32) | number as u64);
                for (sum, rank) in sums.iter_mut().zip(block.iter()) {
                    *sum += *rank;
                }
            }
            as_far += u32::from(range(&sums) >= seen);
        }
        as_far <= allowed
    }

    /// Returns the distance of each subject from the best.
    fn behind(&self, stays: &dyn Fn(usize) -> bool) -> Vec<Option<Behind>> {
        let k = self.logs.len();
        let level = ALPHA / others(k);
        let ranked: Vec<usize> = (0..k).filter(|i| self.is_ranked(*i)).collect();
        // By how much the second is better than the first: least, typical, most.
        let mut by: Vec<Vec<[f64; 3]>> = vec![vec![[0.0; 3]; k]; k];
        for (at, &i) in ranked.iter().enumerate() {
            for &j in &ranked[at + 1..] {
                let mut d = self.differences(i, j, usize::MAX);
                d.sort_by(f64::total_cmp);
                let [low, middle, high] = location(&d, level);
                by[i][j] = [low, middle, high];
                by[j][i] = [-high, -middle, -low];
            }
        }
        // The one whose worst comparison is best: it beats every other one,
        // unless they beat each other in a circle.
        let worst = |i: usize| {
            let others = ranked.iter().filter(|j| **j != i).map(|j| by[i][*j][1]);
            others.fold(f64::NEG_INFINITY, f64::max)
        };
        let first = ranked
            .iter()
            .copied()
            .min_by(|a, b| worst(*a).total_cmp(&worst(*b)));
        (0..k)
            .map(|i| {
                let first = first.filter(|_| ranked.contains(&i))?;
                let others = || ranked.iter().copied().filter(|j| *j != i);
                // The best is in the set, so it is ahead of i by at least the
                // least of these; and by at most the most of all.
                let low = others().filter(|j| stays(*j)).map(|j| by[i][j][0]);
                let low = low.fold(f64::INFINITY, f64::min);
                let high = others().map(|j| by[i][j][2]).fold(0.0, f64::max);
                let low = if stays(i) || low == f64::INFINITY {
                    0.0
                } else {
                    low.max(0.0)
                };
                let value = by[i][first][1].clamp(low, high);
                Some(Behind { value, low, high })
            })
            .collect()
    }
}

/// Hodges and Lehmann's estimate of sorted differences, between the limits that
/// each miss with probability `tail`.
fn location(sorted: &[f64], tail: f64) -> [f64; 3] {
    if sorted.is_empty() {
        return [f64::NEG_INFINITY, 0.0, f64::INFINITY];
    }
    let (low, high) = match signed_rank::limit_rank(sorted.len(), tail) {
        Some((k, _)) => {
            let last = walsh::count(sorted.len()) + 1 - k;
            (walsh::kth(sorted, k), walsh::kth(sorted, last))
        }
        None => (f64::NEG_INFINITY, f64::INFINITY),
    };
    [low, walsh::median(sorted), high]
}

/// Returns the ranks of all values of all blocks together, doubled, so that a mean
/// rank is an integer.
fn ranks_of(aligned: &[Vec<f64>]) -> Vec<Vec<u64>> {
    let mut order: Vec<(usize, usize)> = aligned
        .iter()
        .enumerate()
        .flat_map(|(b, block)| (0..block.len()).map(move |i| (b, i)))
        .collect();
    order.sort_by(|a, b| aligned[a.0][a.1].total_cmp(&aligned[b.0][b.1]));
    let mut ranks: Vec<Vec<u64>> = aligned.iter().map(|b| vec![0; b.len()]).collect();
    let mut first = 0;
    for group in order.chunk_by(|a, b| aligned[a.0][a.1] == aligned[b.0][b.1]) {
        let rank = (2 * first + group.len() + 1) as u64;
        first += group.len();
        for (b, i) in group {
            ranks[*b][*i] = rank;
        }
    }
    ranks
}

/// Permutes `values`, in the same way for the same number (Fisher and Yates).
fn shuffle(values: &mut [u64], number: u64) {
    let mut state = fork_seed(0x616c_6967_6e65_6421, number);
    for at in (1..values.len()).rev() {
        // A linear congruential step suffices between two hashed seeds; its
        // high bits are the good ones.
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let other = ((u128::from(state) * (at as u128 + 1)) >> 64) as usize;
        values.swap(at, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_where_something_can_be_shown() {
        // 30 subjects and 12 blocks: half of 12 can show nothing at a tenth
        // of 0.00172, nor can nine.
        assert!(Looks::planned(12, 30).interim().is_empty());
        assert_eq!(Looks::planned(32, 30).interim(), [16, 24]);
        assert_eq!(Looks::planned(20, 5).interim(), [10, 15]);
        assert_eq!(Looks::planned(24, 37).interim(), [18]);
        for looks in [Looks::planned(12, 30), Looks::planned(32, 30)] {
            let sum: f64 = looks.all(32).iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn permutations_reach_every_order_about_equally_often() {
        let mut counts = std::collections::HashMap::new();
        for number in 0..6000 {
            let mut values = [0, 1, 2];
            shuffle(&mut values, number);
            *counts.entry(values).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|n| (880..1120).contains(n)),
            "{counts:?}"
        );
    }
}
