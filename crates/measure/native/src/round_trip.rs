//! Measures how far apart the CPUs in use are: the round trip of a cache line.
//!
//! A virtual machine's CPUs migrate on their host within a minute, and
//! contended results change with them by a factor of 4 to 10. So the workers of
//! a cell measure it themselves before each pair of slices, in some 10 µs, for
//! the report, which asks whether the ratio depends on it. It runs while no
//! other thread of the process does.

use locklab_host::{clock, topology};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The most links that are measured, so that the measurement stays short.
const MOST_LINKS: usize = 8;

/// Says how the ball is passed.
#[derive(Clone, Copy)]
enum By {
    /// Whoever waits reads, and stores when it is there: a read of a line that the other
    /// has written, and a write of one that both have.
    Store,
    /// Whoever waits tries a compare-and-swap: a line that the other owns, each time.
    Swap,
}

impl By {
    fn pass(self, ball: &AtomicU64, from: u64) -> bool {
        // R1: the ball carries no data but itself.
        match self {
            Self::Store if ball.load(Ordering::Relaxed) == from => {
                ball.store(from + 1, Ordering::Relaxed);
                true
            }
            Self::Store => {
                std::hint::spin_loop();
                false
            }
            Self::Swap => ball
                .compare_exchange(from, from + 1, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok(),
        }
    }
}

/// Sets how often two CPUs are tried before they count as not to be measured.
const TRIES: usize = 8;

/// Times round trips between two CPUs and returns the median of short batches, in ns. `None`
/// if the two did not meet in eight tries, each of 20 ms of CPU time: however busy the machine
/// is, the two threads get that much of it, and most of it at the same time.
#[must_use]
pub fn measure(a: usize, b: usize) -> Option<f64> {
    (0..TRIES).find_map(|_| try_measure(a, b, By::Store))
}

/// Returns the same by alternating compare-and-swaps: twice what one transfer of a line
/// takes, as published tables of machines have it. Where CPUs are far apart the round
/// trip of [`measure`] is longer than this, for a line that both have read is fetched and
/// then owned.
#[must_use]
pub fn alternating(a: usize, b: usize) -> Option<f64> {
    (0..TRIES).find_map(|_| try_measure(a, b, By::Swap))
}

/// Returns twice what one transfer of a line takes: the lesser of the two round trips. A pass by
/// stores takes two transfers where a read leaves the writer its copy, and one where it takes
/// the only copy; a pass by compare-and-swap takes one, and as long as a core keeps a line that
/// it tries on (35 ns of 40 on two near CPUs of Zen 4, where a pass by stores takes 19).
#[must_use]
pub fn transfers(a: usize, b: usize) -> Option<f64> {
    let trips = [alternating(a, b), measure(a, b)];
    trips.into_iter().flatten().reduce(f64::min)
}

/// Returns [`alternating`] between the first two CPUs that this process may use; `None` if there
/// is one.
#[must_use]
pub fn here() -> Option<f64> {
    match topology::Topology::read().order[..] {
        [a, b, ..] => alternating(a, b),
        _ => None,
    }
}

fn try_measure(a: usize, b: usize, by: By) -> Option<f64> {
    const BATCHES: usize = 24;
    const TRIPS: u64 = 50;
    const LIMIT: u64 = 20_000_000;
    #[repr(align(128))]
    #[derive(Default)]
    struct Ball(AtomicU64);
    // One for each batch, on a line of its own: where a line has its home makes a difference of
    // a third. Each begins with the value that the ball before it ends with.
    let balls: [Ball; BATCHES] = std::array::from_fn(|at| Ball((at as u64 * 2 * TRIPS).into()));
    let ball = |at: u64| &balls[((at / (2 * TRIPS)) as usize).min(BATCHES - 1)].0;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            topology::pin_to(b);
            let (mut at, mut spins) = (1, 0_u32);
            loop {
                if by.pass(ball(at), at) {
                    at += 2;
                    spins = 0;
                } else {
                    spins += 1;
                    // It is read rarely: it shares no line with the ball.
                    if spins.is_multiple_of(256) && over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        });
        let thrower = scope.spawn(|| {
            topology::pin_to(a);
            // Time while another program has the CPU is not counted.
            let started = clock::thread_cpu_time();
            let mut batches = Vec::with_capacity(BATCHES);
            let mut at = 0;
            'batches: while batches.len() < BATCHES {
                let start = clock::now();
                for _ in 0..TRIPS {
                    let mut spins = 0_u32;
                    while !by.pass(ball(at), at) {
                        spins += 1;
                        let check = spins.is_multiple_of(1024);
                        if check && clock::thread_cpu_time() - started > LIMIT {
                            break 'batches;
                        }
                    }
                    at += 2;
                }
                batches.push((clock::now() - start) as f64 / TRIPS as f64);
            }
            over.store(true, Ordering::Relaxed);
            batches
        });
        let mut batches = thrower.join().unwrap_or_default();
        over.store(true, Ordering::Relaxed);
        batches.sort_by(f64::total_cmp);
        (batches.len() >= BATCHES / 3).then(|| batches[batches.len() / 2])
    })
}

/// Returns the links whose round trips represent the placement of `workers` workers on
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
                let check = spins.is_multiple_of(64);
                // The other worker may have ended.
                if check && (self.over.load(Ordering::Relaxed) || clock::now() - started > LOST) {
                    return;
                }
                std::hint::spin_loop();
            }
        }
    }
}

pub(crate) fn median(ns: &[f64]) -> f64 {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_links_are_sampled() {
        assert_eq!(links(1), []);
        assert_eq!(links(2), [(0, 1)]);
        assert_eq!(links(3), [(0, 1), (1, 2), (0, 2)]);
        assert_eq!(links(288).len(), 8);
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
