//! The turns of one thread, drawn before it runs.
//!
//! A thread repeats a list of [`TURNS`] turns. Each share and each length has
//! exactly its part of the list, in an order of its own: no thread reads more
//! than asked by chance, and the mean of the lengths is the length. Seeds change
//! the orders only.

use crate::mix::{Choice, Distribution, Mix};
use locklab_judge::fork_seed;

/// The turns of a list: as many as keep it within 16 KiB, so that reading it
/// disturbs a small cache little, and each percent of them is a whole number. With more
/// locks than that it has as many times so many turns as it takes to name each.
pub const TURNS: usize = 1000;

/// Says what a lock is acquired for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reads what the lock protects.
    Read,
    /// It writes it.
    Write,
}

impl Use {
    /// Both, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::Read, Self::Write];
}

/// Says how often each thread could have acquired the lock, on average, in a wait that is
/// starved. In order of arrival each could once.
pub const STARVED: u64 = 10;

/// Returns the least length of a wait that is starved, where `threads` threads made
/// `acquisitions` in `time`, in the unit of `time`.
#[must_use]
pub fn starving(threads: usize, acquisitions: u64, time: u64) -> u64 {
    let in_a_wait = u128::from(STARVED) * threads as u128;
    let least = in_a_wait * u128::from(time) / u128::from(acquisitions.max(1));
    u64::try_from(least).unwrap_or(u64::MAX).max(1)
}

/// One turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Turn {
    /// Units outside, after it.
    pub outside: u32,
    /// The lock to take, by its number in the order of addresses.
    pub first: u32,
    /// The lock to take within it; the same one if there is none.
    pub second: u32,
    /// Says whether it shares the lock as a reader.
    pub reads: bool,
}

impl Turn {
    /// Returns a turn on the first lock alone, and then so many units outside.
    #[must_use]
    pub fn usual(outside: u64) -> Self {
        Self {
            outside: u32::try_from(outside).unwrap_or(u32::MAX),
            ..Self::default()
        }
    }

    /// Returns what its locks are acquired for.
    #[must_use]
    #[inline(always)]
    pub fn purpose(&self) -> Use {
        if self.reads { Use::Read } else { Use::Write }
    }

    /// Returns the lock within the first one, if there is one.
    #[must_use]
    #[inline(always)]
    pub fn nested(&self) -> Option<u32> {
        (self.second != self.first).then_some(self.second)
    }
}

/// The draws of one thread that have an order of their own each.
mod stream {
    pub(super) const OUTSIDE: u64 = 1;
    pub(super) const READS: u64 = 2;
    pub(super) const FIRST: u64 = 3;
    pub(super) const SECOND: u64 = 4;
    /// The number of the first list after the first one.
    pub(super) const LISTS: u64 = 100;
}

/// Returns the turns of a thread of `mix` with `locks` locks, whose mean time outside is
/// `outside` units. Each thread has a seed of its own.
#[must_use]
pub fn turns(mix: &Mix, locks: u32, outside: u64, seed: u64) -> Vec<Turn> {
    let table = Table::new(mix.choice, locks);
    let lists = (locks as usize).div_ceil(TURNS).max(1);
    let of_list = |list: usize| {
        let seed = match list {
            0 => seed,
            _ => fork_seed(seed, stream::LISTS + list as u64),
        };
        let within = (list as f64 + 0.5) / lists as f64;
        turns_of_list(mix, &table, outside, (seed, within))
    };
    (0..lists).flat_map(of_list).collect()
}

/// Returns one list, which takes of each of its parts of the locks the one at `within`.
fn turns_of_list(
    mix: &Mix,
    table: &Table,
    outside: u64,
    (seed, within): (u64, f64),
) -> impl Iterator<Item = Turn> {
    let outside = lengths(mix.distribution, outside, fork_seed(seed, stream::OUTSIDE));
    let read = shuffled(fork_seed(seed, stream::READS));
    let first = shuffled(fork_seed(seed, stream::FIRST));
    let second = shuffled(fork_seed(seed, stream::SECOND));
    let reads = mix.reads as usize * TURNS / 100;
    let part = move |n: usize| (n as f64 + within) / TURNS as f64;
    let turn = move |at: usize| {
        let a = table.chosen(part(first[at]));
        let b = match mix.nested {
            true => table.chosen_but(a, part(second[at])),
            false => a,
        };
        Turn {
            outside: outside[at],
            first: a.min(b) as u32,
            second: a.max(b) as u32,
            reads: read[at] < reads,
        }
    };
    (0..TURNS).map(turn).collect::<Vec<_>>().into_iter()
}

/// Returns the longest time outside that a distribution draws, as a multiple of its
/// mean.
#[must_use]
pub fn longest(distribution: Distribution) -> f64 {
    let last = middle(TURNS - 1);
    quantile(distribution, last) / mean(distribution)
}

/// Returns the numbers of the turns in an order drawn by `seed`.
fn shuffled(seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..TURNS).collect();
    order.sort_by_key(|i| fork_seed(seed, *i as u64));
    order
}

/// Returns the middle of the nth of as many equal parts as there are turns.
fn middle(n: usize) -> f64 {
    (n as f64 + 0.5) / TURNS as f64
}

/// The share of bursty turns that are followed by a short time, how long that
/// is, and the mean of the others', as multiples of the mean.
const BURST: (f64, f64, f64) = (7.0 / 8.0, 0.1, 7.3);

/// Returns the quantile of a distribution whose mean is 1.
fn quantile(distribution: Distribution, at: f64) -> f64 {
    let exponential = |at: f64| -(1.0 - at).ln();
    match distribution {
        Distribution::Fixed => 1.0,
        Distribution::Uniform => 2.0 * at,
        Distribution::Exponential => exponential(at),
        Distribution::Bursty => {
            let (share, short, long) = BURST;
            match at < share {
                true => short,
                false => long * exponential((at - share) / (1.0 - share)),
            }
        }
    }
}

/// Returns the mean of the quantiles of a list: they end before the distribution does.
fn mean(distribution: Distribution) -> f64 {
    let sum: f64 = (0..TURNS).map(|n| quantile(distribution, middle(n))).sum();
    sum / TURNS as f64
}

/// Returns the times outside of a list, in units; their sum is that of constant ones.
fn lengths(distribution: Distribution, outside: u64, seed: u64) -> Vec<u32> {
    if distribution == Distribution::Fixed {
        return vec![Turn::usual(outside).outside; TURNS];
    }
    let scale = outside as f64 / mean(distribution);
    // What rounding leaves goes to the next one, so that short times do not
    // vanish.
    let (mut sum, mut given) = (0.0, 0.0);
    shuffled(seed)
        .into_iter()
        .map(|n| {
            sum += scale * quantile(distribution, middle(n));
            let units = (f64::round(sum) - given).clamp(0.0, f64::from(u32::MAX));
            given += units;
            units as u32
        })
        .collect()
}

/// The sums of the weights of the locks up to each, itself included.
struct Table(Vec<f64>);

impl Table {
    fn new(choice: Choice, locks: u32) -> Self {
        /// The exponent of YCSB's Zipfian distribution.
        const EXPONENT: f64 = 0.99;
        let weights = (1..=locks.max(1)).map(|k| match choice {
            Choice::Uniform => 1.0,
            Choice::Zipf => f64::from(k).powf(-EXPONENT),
        });
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self(sums.collect())
    }

    fn sum(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// Returns the first lock whose sum is above `target`; rounding may leave a trace
    /// beyond the last.
    fn at(&self, target: f64) -> usize {
        let lock = self.0.partition_point(|sum| *sum <= target);
        lock.min(self.0.len() - 1)
    }

    /// Returns the lock in whose part of all weights `at`, from 0 to 1, lies.
    fn chosen(&self, at: f64) -> usize {
        self.at(at * self.sum())
    }

    /// Returns the same among all but one.
    fn chosen_but(&self, but: usize, at: f64) -> usize {
        let before = but.checked_sub(1).map_or(0.0, |lock| self.0[lock]);
        let weight = self.0[but] - before;
        let target = at * (self.sum() - weight);
        let lock = match target < before {
            true => self.at(target),
            false => self.at(target + weight),
        };
        match lock == but {
            // This happens by rounding only.
            true => (lock + 1) % self.0.len(),
            false => lock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(mix: Mix, locks: u32, outside: u64) -> Vec<Turn> {
        turns(&mix, locks, outside, 7)
    }

    #[test]
    fn the_usual_turns_are_all_alike() {
        let all = list(Mix::default(), 1, 33);
        assert_eq!(all, vec![Turn::usual(33); TURNS]);
        assert_eq!(size_of::<Turn>(), 16);
    }

    #[test]
    fn shares_are_exact_and_orders_differ_by_thread() {
        let mix = Mix {
            reads: 95,
            ..Mix::default()
        };
        let one = turns(&mix, 4, 10, 1);
        let two = turns(&mix, 4, 10, 2);
        assert_eq!(one.iter().filter(|t| t.reads).count(), 950);
        assert_ne!(one, two);
        for lock in 0..4 {
            assert_eq!(one.iter().filter(|t| t.first == lock).count(), 250);
        }
        assert!(one.iter().all(|t| t.nested().is_none()));
        // Which turns read does not depend on the lock.
        let both = one.iter().filter(|t| t.first == 0 && !t.reads).count();
        assert!((4..=21).contains(&both), "{both}");
    }

    #[test]
    fn every_distribution_keeps_the_mean() {
        for (name, distribution) in Distribution::WORDS {
            let mix = Mix {
                distribution,
                ..Mix::default()
            };
            for outside in [1, 2, 33, 1000] {
                let all = list(mix, 1, outside);
                let sum: u64 = all.iter().map(|t| u64::from(t.outside)).sum();
                assert_eq!(sum, outside * TURNS as u64, "{name} {outside}");
                let most = all.iter().map(|t| t.outside).max().unwrap();
                let bound = longest(distribution) * outside as f64 + 1.0;
                assert!(f64::from(most) <= bound, "{name}: {most}");
            }
        }
        // The square of the coefficient of variation is 1/3, 1 and above.
        let squared = |distribution| {
            let mix = Mix {
                distribution,
                ..Mix::default()
            };
            let all = list(mix, 1, 1000);
            let square = |t: &Turn| (f64::from(t.outside) / 1000.0 - 1.0).powi(2);
            all.iter().map(square).sum::<f64>() / TURNS as f64
        };
        assert!((squared(Distribution::Uniform) - 1.0 / 3.0).abs() < 0.01);
        assert!((squared(Distribution::Exponential) - 1.0).abs() < 0.03);
        assert!(squared(Distribution::Bursty) > 10.0);
    }

    #[test]
    fn zipf_prefers_the_first_and_reaches_the_last() {
        let mix = Mix {
            choice: Choice::Zipf,
            ..Mix::default()
        };
        let all = list(mix, 64, 0);
        let count = |lock: u32| all.iter().filter(|t| t.first == lock).count();
        assert!((195..=225).contains(&count(0)), "{}", count(0));
        assert!(count(0) > count(1) && count(1) > count(7) && count(63) >= 2);
    }

    #[test]
    fn a_list_names_each_of_many_locks() {
        let mut seen = vec![0; 3000];
        for turn in list(Mix::default(), 3000, 5) {
            seen[turn.first as usize] += 1;
        }
        assert!(seen.iter().all(|times| *times == 1));
        assert_eq!(list(Mix::default(), 100_000, 5).len(), 100_000);
        let zipf = Mix {
            choice: Choice::Zipf,
            nested: true,
            ..Mix::default()
        };
        let all = list(zipf, 100_000, 5);
        assert!(all.iter().all(|turn| turn.first < turn.second));
        let most = all.iter().map(|turn| turn.second).max();
        assert!(most > Some(99_000), "{most:?}");
    }

    #[test]
    fn a_pair_is_two_locks_in_the_order_of_addresses() {
        let mix = Mix {
            nested: true,
            ..Mix::default()
        };
        for locks in [2, 5, 256] {
            let all = list(mix, locks, 3);
            assert!(all.iter().all(|t| t.first < t.second));
            assert!(all.iter().all(|t| t.second < locks));
        }
    }
}
