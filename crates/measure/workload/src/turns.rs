//! The turns of one thread, drawn before it runs.
//!
//! A thread repeats a list of [`TURNS`] turns. Each share and each length has
//! exactly its part of the list, in an order of its own: no thread reads more
//! than asked by chance, and the mean of the lengths is the length. Seeds change
//! the orders only.

use crate::mix::{Choice, Distribution, Mix};
use locklab_judge::fork_seed;

/// The turns of a list: as many as keep it within 8 KiB, so that reading it
/// disturbs a small cache little, and each percent of them is a whole number.
pub const TURNS: usize = 1000;

/// Says what a lock is acquired for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// To read what the lock protects.
    Read,
    /// To write it.
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
    pub first: u8,
    /// The lock to take within it; the same one if there is none.
    pub second: u8,
    /// Says whether it shares the lock as a reader.
    pub reads: bool,
}

impl Turn {
    /// A turn on the first lock alone, and then so many units outside.
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

    /// The lock within the first one, if there is one.
    #[must_use]
    #[inline(always)]
    pub fn nested(&self) -> Option<u8> {
        (self.second != self.first).then_some(self.second)
    }
}

/// The draws of one thread that have an order of their own each.
mod stream {
    pub(super) const OUTSIDE: u64 = 1;
    pub(super) const READS: u64 = 2;
    pub(super) const FIRST: u64 = 3;
    pub(super) const SECOND: u64 = 4;
}

/// The turns of a thread of `mix` with `locks` locks, whose mean time outside is
/// `outside` units. Each thread has a seed of its own.
#[must_use]
pub fn turns(mix: &Mix, locks: u32, outside: u64, seed: u64) -> Vec<Turn> {
    let outside = lengths(mix.distribution, outside, fork_seed(seed, stream::OUTSIDE));
    let read = shuffled(fork_seed(seed, stream::READS));
    let first = shuffled(fork_seed(seed, stream::FIRST));
    let second = shuffled(fork_seed(seed, stream::SECOND));
    let weights = weights(mix.choice, locks);
    let reads = mix.reads as usize * TURNS / 100;
    (0..TURNS)
        .map(|at| {
            let a = chosen(&weights, middle(first[at]));
            let b = if mix.nested {
                let mut others = weights.clone();
                others[a] = 0.0;
                chosen(&others, middle(second[at]))
            } else {
                a
            };
            Turn {
                outside: outside[at],
                first: a.min(b) as u8,
                second: a.max(b) as u8,
                reads: read[at] < reads,
            }
        })
        .collect()
}

/// The longest time outside that a distribution draws, as a multiple of its
/// mean.
#[must_use]
pub fn longest(distribution: Distribution) -> f64 {
    let last = middle(TURNS - 1);
    quantile(distribution, last) / mean(distribution)
}

/// The numbers of the turns in an order drawn by `seed`.
fn shuffled(seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..TURNS).collect();
    order.sort_by_key(|i| fork_seed(seed, *i as u64));
    order
}

/// The middle of the nth of as many equal parts as there are turns.
fn middle(n: usize) -> f64 {
    (n as f64 + 0.5) / TURNS as f64
}

/// The share of bursty turns that are followed by a short time, how long that
/// is, and the mean of the others', as multiples of the mean.
const BURST: (f64, f64, f64) = (7.0 / 8.0, 0.1, 7.3);

/// The quantile of a distribution whose mean is 1.
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

/// The mean of the quantiles of a list: they end before the distribution does.
fn mean(distribution: Distribution) -> f64 {
    let sum: f64 = (0..TURNS).map(|n| quantile(distribution, middle(n))).sum();
    sum / TURNS as f64
}

/// The times outside of a list, in units; their sum is that of constant ones.
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

/// The weight of each lock.
fn weights(choice: Choice, locks: u32) -> Vec<f64> {
    /// The exponent of YCSB's Zipfian distribution.
    const EXPONENT: f64 = 0.99;
    (1..=locks.max(1))
        .map(|k| match choice {
            Choice::Uniform => 1.0,
            Choice::Zipf => f64::from(k).powf(-EXPONENT),
        })
        .collect()
}

/// The lock in whose part of all weights `at`, from 0 to 1, lies.
fn chosen(weights: &[f64], at: f64) -> usize {
    let mut left = at * weights.iter().sum::<f64>();
    let own = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    // Rounding may leave a trace beyond the last.
    own.unwrap_or_else(|| weights.iter().rposition(|w| *w > 0.0).unwrap_or(0))
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
        assert_eq!(size_of::<Turn>(), 8);
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
        let count = |lock: u8| all.iter().filter(|t| t.first == lock).count();
        assert!((195..=225).contains(&count(0)), "{}", count(0));
        assert!(count(0) > count(1) && count(1) > count(7) && count(63) >= 2);
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
            assert!(all.iter().all(|t| u32::from(t.second) < locks));
        }
    }
}
