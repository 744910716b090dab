//! How far apart the CPUs in use are: the round trip of a cache line.
//!
//! A virtual machine's CPUs migrate on their host within a minute, and
//! contended results change with them by a factor of 4 to 10. So the workers of
//! a cell measure it themselves before each pair of slices, in some 10 µs, and
//! only samples of one placement are compared. It runs while no other thread of
//! the process does.

use locklab_host::{clock, topology};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Up to this many ns a round trip is `near`: SMT siblings answer in 15 to
/// 30 ns, cores that share a last-level cache in 50 to 110. The bounds are
/// the geometric means of the gaps.
pub const NEAR: f64 = 40.0;
/// Up to this many ns it is `mid`; other sockets, and cores of another cache
/// of the same chip, answer in 190 to 400.
pub const MID: f64 = 145.0;
/// Two figures on either side of a class bound still count as one placement if
/// they differ by less than this factor.
const SLACK: f64 = 1.5;
/// The most links that are measured, so that the measurement stays short.
const MOST_LINKS: usize = 8;

/// Times round trips between two CPUs and returns the lower quartile of short
/// batches, in ns, because preemption can only add. `None` if the two did not
/// meet within 20 ms, three times.
#[must_use]
pub fn measure(a: usize, b: usize) -> Option<f64> {
    (0..3).find_map(|_| try_measure(a, b))
}

fn try_measure(a: usize, b: usize) -> Option<f64> {
    const BATCHES: usize = 24;
    const TRIPS: u64 = 50;
    const LIMIT: u64 = 20_000_000;
    #[repr(align(128))]
    #[derive(Default)]
    struct Ball(AtomicU64);
    let (ball, over) = (Ball::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            topology::pin_to(b);
            let mut spins = 0_u32;
            loop {
                // R1: the ball carries no data but itself.
                let at = ball.0.load(Ordering::Relaxed);
                if at % 2 == 1 {
                    ball.0.store(at + 1, Ordering::Relaxed);
                    spins = 0;
                } else {
                    spins += 1;
                    // It is read rarely: it shares no line with the ball.
                    if spins.is_multiple_of(256) && over.load(Ordering::Relaxed) {
                        return;
                    }
                    std::hint::spin_loop();
                }
            }
        });
        let thrower = scope.spawn(|| {
            topology::pin_to(a);
            let started = clock::now();
            let mut batches = Vec::with_capacity(BATCHES);
            let mut at = 0;
            'batches: while batches.len() < BATCHES {
                let start = clock::now();
                for _ in 0..TRIPS {
                    ball.0.store(at + 1, Ordering::Relaxed);
                    at += 2;
                    let mut spins = 0_u32;
                    while ball.0.load(Ordering::Relaxed) != at {
                        spins += 1;
                        if spins.is_multiple_of(1024) && clock::now() - started > LIMIT {
                            break 'batches;
                        }
                        std::hint::spin_loop();
                    }
                }
                batches.push((clock::now() - start) as f64 / TRIPS as f64);
            }
            over.store(true, Ordering::Relaxed);
            batches
        });
        let mut batches = thrower.join().unwrap_or_default();
        over.store(true, Ordering::Relaxed);
        batches.sort_by(f64::total_cmp);
        (batches.len() >= BATCHES / 3).then(|| batches[batches.len() / 4])
    })
}

/// The links whose round trips represent the placement of `workers` workers on
/// CPUs of their own: neighbours in pin order, and the first with the last.
#[must_use]
pub(crate) fn links(workers: usize) -> Vec<(usize, usize)> {
    let mut links: Vec<(usize, usize)> = (1..workers).map(|w| (w - 1, w)).collect();
    if workers > 2 {
        links.push((0, workers - 1));
    }
    let stride = links.len().div_ceil(MOST_LINKS).max(1);
    links.into_iter().step_by(stride).collect()
}

/// The word that two workers pass to one another between slices, on a line of
/// its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Ball {
    at: AtomicU64,
    /// A flag on the same line, written once: it costs no thread a miss.
    over: AtomicBool,
}

/// The longest duration of a measurement, in ns.
const GAME: u64 = 300_000;
/// A worker that waits for longer than this, in ns, gives up on the other.
const LOST: u64 = 100 * GAME;

impl Ball {
    /// Resets it for another measurement, while no thread takes part.
    pub(crate) fn reset(&self) {
        self.at.store(0, Ordering::Relaxed);
        self.over.store(false, Ordering::Relaxed);
    }

    /// Passes the ball, and returns the shortest round trip of a few short
    /// batches, in ns: preemption can only add. `None` if the other does not
    /// answer.
    pub(crate) fn throw(&self) -> Option<f64> {
        const BATCHES: usize = 6;
        const TRIPS: u64 = 16;
        let started = clock::now();
        let mut least: Option<f64> = None;
        let mut at = 0;
        'batches: for _ in 0..BATCHES {
            let start = clock::now();
            for _ in 0..TRIPS {
                // R1: the ball carries no data but itself.
                self.at.store(at + 1, Ordering::Relaxed);
                at += 2;
                let mut spins = 0_u32;
                while self.at.load(Ordering::Relaxed) != at {
                    spins += 1;
                    if spins.is_multiple_of(1024) && clock::now() - started > GAME {
                        break 'batches;
                    }
                    std::hint::spin_loop();
                }
            }
            let trip = (clock::now() - start) as f64 / TRIPS as f64;
            least = Some(least.map_or(trip, |least| least.min(trip)));
        }
        self.over.store(true, Ordering::Relaxed);
        least
    }

    /// Passes the ball back until the measurement is over.
    pub(crate) fn throw_back(&self) {
        let started = clock::now();
        let mut spins = 0_u32;
        loop {
            let at = self.at.load(Ordering::Relaxed);
            if at % 2 == 1 {
                self.at.store(at + 1, Ordering::Relaxed);
                spins = 0;
            } else {
                spins += 1;
                let look = spins.is_multiple_of(64);
                // The other worker may have ended.
                if look && (self.over.load(Ordering::Relaxed) || clock::now() - started > LOST) {
                    return;
                }
                std::hint::spin_loop();
            }
        }
    }
}

fn class_of(ns: f64) -> &'static str {
    if ns <= NEAR {
        "near"
    } else if ns <= MID {
        "mid"
    } else {
        "far"
    }
}

/// Whether all round trips of one link belong to one placement.
pub(crate) fn steady(ns: &[f64]) -> bool {
    let (low, high) = ns.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), x| {
        (low.min(*x), high.max(*x))
    });
    high / low < SLACK || class_of(low) == class_of(high)
}

pub(crate) fn median(ns: &[f64]) -> f64 {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The class of links whose round trips these are: one word if all agree.
pub(crate) fn class(links: &[f64]) -> String {
    let classes: Vec<&str> = links.iter().map(|ns| class_of(*ns)).collect();
    let counted: Vec<String> = ["near", "mid", "far"]
        .iter()
        .filter_map(|class| {
            let count = classes.iter().filter(|c| *c == class).count();
            match count {
                0 => None,
                _ if count == classes.len() => Some((*class).to_owned()),
                _ => Some(format!("{count} {class}")),
            }
        })
        .collect();
    counted.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_told_from_a_hair() {
        assert!(steady(&[64.0, 66.0, 63.0, 70.0]));
        // Across a bound by a hair is not a move.
        assert!(steady(&[140.0, 150.0, 148.0, 143.0]));
        assert!(!steady(&[64.0, 325.0]));
        assert!(!steady(&[27.0, 64.0]));
    }

    #[test]
    fn many_links_are_sampled_and_mixed_classes_named() {
        assert_eq!(links(1), []);
        assert_eq!(links(2), [(0, 1)]);
        assert_eq!(links(3), [(0, 1), (1, 2), (0, 2)]);
        assert_eq!(links(288).len(), 8);
        assert_eq!(class(&[27.0, 64.0, 60.0]), "1 near + 2 mid");
        assert_eq!(class(&[300.0]), "far");
    }

    #[test]
    fn a_game_ends_with_a_figure_and_without_a_partner_with_none() {
        let ball = Ball::default();
        assert_eq!(ball.throw(), None);
        ball.reset();
        std::thread::scope(|scope| {
            scope.spawn(|| ball.throw_back());
            // On one CPU, or a busy one, the partner may never answer.
            assert!(ball.throw().is_none_or(|ns| ns > 0.0));
        });
    }
}
