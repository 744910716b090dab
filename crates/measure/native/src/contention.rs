//! What becomes of a cache line that two cores want: for `transfer.request_share`,
//! `transfer.snoop_share`, `directory.migrates` and `core.reads_ahead` of a machine file.
//!
//! Two CPUs add to one word, as often as they can. The value before each addition says
//! whether the other CPU has added meanwhile, so it divides a thread's additions into visits
//! of the line. What a thread computes between its additions is made longer step by step:
//! the share of visits in which a second addition is still done is the share in which the
//! core keeps the line for that long. The time from a visit to the next is the same
//! throughout, as long as what lies between additions is shorter than that.
//!
//! What a read of a line does that the other has written is measured in turns, in `turns`.
//!
//! It runs while no other thread of the process does, and knows nothing of locks.

mod both;
mod turns;

use self::both::{Line, on_both};
use crate::round_trip::median;
use crate::work::steps_from;
use locklab_host::{clock, topology};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of additions of each thread in a batch, and of the first ones that are not counted:
/// the other may not have begun.
const ADDITIONS: usize = 400;
const UNCOUNTED: usize = 50;
/// Number of batches of each length; the median counts, for a thread may lose its CPU.
const BATCHES: usize = 15;
/// Sets how often turns are tried: on a busy machine one of the two may wait for its CPU.
const TRIES: usize = 4;
/// Most steps between two additions.
const MOST: u64 = 250;
/// Share of visits with a second addition below which a line counts as gone.
const GONE: f64 = 0.05;

/// What two CPUs do with a line that both want, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// The mean time for which a core keeps the line when it has come.
    pub kept: f64,
    /// The time from the arrival at one core to the arrival at the other.
    pub visit: f64,
    /// The share of reads of a line written by the other core that take the only copy.
    pub migrates: f64,
    /// The share of reads behind a locked operation whose lines are asked for before it, while
    /// the core computes.
    pub ahead: f64,
}

impl Contention {
    /// Returns the parts of a transfer of `one_way` ns in which the request travels to the
    /// directory, and in which the snoop travels to the owner. A line that is asked for
    /// before it has come makes the first of these ways meanwhile, so a visit is shorter by
    /// it than a transfer; and a core keeps the line until the snoop has come.
    #[must_use]
    pub fn shares(self, one_way: f64) -> (f64, f64) {
        // What the format leaves for the data.
        const MOST: f64 = 0.95;
        let snoop = (self.kept / one_way).clamp(0.0, 0.9);
        let request = (1.0 - self.visit / one_way).clamp(0.0, MOST - snoop);
        (request, snoop)
    }

    /// Returns the figures of a machine file, where a transfer takes `one_way` ns.
    pub fn figures(self, one_way: f64) -> [(&'static str, f64); 4] {
        let (request, snoop) = self.shares(one_way);
        [
            ("core.reads_ahead", self.ahead),
            ("transfer.request_share", request),
            ("transfer.snoop_share", snoop),
            ("directory.migrates", self.migrates),
        ]
    }
}

/// Measures between two CPUs; `None` if the two were never on their CPUs together.
#[must_use]
pub fn measure(a: usize, b: usize) -> Option<Contention> {
    let mut points = Vec::new();
    let mut visits = Vec::new();
    let mut steps = 0;
    while steps <= MOST {
        let (alone, point) = (spacing(a, steps), batches(a, b, steps)?);
        if point.visit < alone {
            break;
        }
        points.push((alone, point.again));
        visits.push(point.visit);
        if point.again < GONE {
            break;
        }
        steps += 1 + steps / 4;
    }
    let shares = (0..TRIES).find_map(|_| turns::measure(a, b))?;
    Some(Contention {
        kept: kept(&points)?,
        visit: median(&visits),
        migrates: shares.migrates,
        ahead: shares.ahead,
    })
}

/// Returns the mean time for which a line is kept, from the shares of visits in which it is
/// kept for at least so long: the area below them, the first of which goes back to 0.
fn kept(points: &[(f64, f64)]) -> Option<f64> {
    let (first, share) = points.first()?;
    let rest = points.windows(2).map(|pair| {
        let [(from, high), (to, low)] = [pair[0], pair[1]];
        (to - from) * f64::midpoint(high, low)
    });
    Some(first * f64::midpoint(*share, 1.0) + rest.sum::<f64>())
}

/// A length between additions: the share of visits with a second one, and the time from one
/// visit to the next.
#[derive(Clone, Copy, Debug)]
struct Point {
    again: f64,
    visit: f64,
}

/// Adds to a word and computes, `times` times; passes the value before each addition to
/// `seen`.
#[inline(always)]
fn add(word: &AtomicUsize, steps: u64, times: usize, mut seen: impl FnMut(usize)) {
    let mut one = 1;
    for _ in 0..times {
        // R1: the word carries no data but itself.
        let before = word.fetch_add(one, Ordering::Relaxed);
        seen(before);
        // The next addition waits for what is computed from this one's result.
        one = 1 + (steps_from(before, steps) ^ before);
    }
}

/// Returns the time from one addition to the next where nobody else wants the line.
fn spacing(cpu: usize, steps: u64) -> f64 {
    std::thread::scope(|scope| {
        let alone = scope.spawn(|| {
            topology::pin_to(cpu);
            let word = Line::default();
            let mut least = f64::INFINITY;
            for _ in 0..BATCHES {
                let start = clock::now();
                add(&word.0, steps, ADDITIONS, |before| {
                    black_box(before);
                });
                least = least.min((clock::now() - start) as f64 / ADDITIONS as f64);
            }
            least
        });
        alone.join().unwrap_or(f64::INFINITY)
    })
}

/// Measures one length between additions.
fn batches(a: usize, b: usize, steps: u64) -> Option<Point> {
    // A word of its own for each batch: what a line takes depends on where its home is.
    let words: [Line; BATCHES] = std::array::from_fn(|_| Line::default());
    let arrived = Line::default();
    let run = || {
        let mut points = Vec::with_capacity(BATCHES);
        for (batch, word) in words.iter().enumerate() {
            // By spinning: a barrier's wake-up takes longer than a batch. It carries no data.
            arrived.0.fetch_add(1, Ordering::Relaxed);
            while arrived.0.load(Ordering::Relaxed) < 2 * (batch + 1) {
                spin_loop();
            }
            let mut values = [0; ADDITIONS];
            let mut at = 0;
            add(&word.0, steps, UNCOUNTED, |_| {});
            let start = clock::now();
            add(&word.0, steps, ADDITIONS, |before| {
                values[at] = before;
                at += 1;
            });
            let took = clock::now() - start;
            points.extend(of_values(&values, took as f64));
        }
        points
    };
    let points = on_both([a, b], |_| run());
    let of = |figure: fn(&Point) -> f64| median(&points.iter().map(figure).collect::<Vec<_>>());
    (!points.is_empty()).then(|| Point {
        again: of(|point| point.again),
        visit: of(|point| point.visit),
    })
}

/// Divides a thread's additions into visits of the line. `None` of a batch in which the
/// other thread did next to nothing.
fn of_values(values: &[usize], took: f64) -> Option<Point> {
    let lengths: Vec<usize> = values
        .chunk_by(|before, after| before + 1 == *after)
        .map(<[usize]>::len)
        .collect();
    if lengths.len() < values.len() / 20 {
        return None;
    }
    let visits = lengths.len() as f64;
    let again = lengths.iter().filter(|length| **length > 1).count() as f64;
    Some(Point {
        again: again / visits,
        // The two threads visit in turns.
        visit: took / visits / 2.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_are_divided_into_visits() {
        let values: Vec<usize> = [10, 11, 14, 17, 18, 19, 30].into();
        let point = of_values(&values, 400.0).unwrap();
        assert_eq!((point.again, point.visit), (0.5, 50.0));
        let alone: Vec<usize> = (0..100).collect();
        assert!(of_values(&alone, 1.0).is_none());
    }

    #[test]
    fn a_line_is_kept_for_the_mean_of_its_times() {
        // Kept for 10 to 20 ns, each length as likely as any other.
        let share = |ns: f64| ((20.0 - ns) / 10.0).clamp(0.0, 1.0);
        let points: Vec<(f64, f64)> = (4..12)
            .map(|n| f64::from(n) * 2.0)
            .map(|ns| (ns, share(ns)))
            .collect();
        assert!((kept(&points).unwrap() - 15.0).abs() < 0.1);
        assert_eq!(kept(&[]), None);
    }

    #[test]
    fn shares_leave_some_of_a_transfer_for_the_data() {
        let of = |kept, visit| {
            Contention {
                kept,
                visit,
                migrates: 0.0,
                ahead: 0.0,
            }
            .shares(60.0)
        };
        assert_eq!(of(15.0, 54.0), (1.0 - 54.0 / 60.0, 0.25));
        // Whoever keeps a line for all of a transfer.
        assert_eq!(of(90.0, 30.0), (0.95 - 0.9, 0.9));
        assert_eq!(of(15.0, 70.0), (0.0, 0.25));
    }
}
