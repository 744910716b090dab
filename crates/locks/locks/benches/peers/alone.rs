//! One thread on a lock: back to back, and with a program's work between.
//!
//! Back to back, a lock instruction waits for the store of the release just
//! before it, which on some processors takes longer if the two are of different
//! widths; a program that does some work between sees nothing of it. So each
//! figure is made at several distances, in nanoseconds, of work whose length is
//! found on the machine.

use crate::contention::preemptions;
use crate::{DISTANCES, both};
use core::hint::black_box;
use locklab_judge::{Pair, Side, coin};
use locklab_peers::{Contestant, multiply};
use std::time::Instant;

/// Pairs of slices in a block.
pub(crate) const SLICES: u64 = 8;

/// Says how much work lies between lock and unlock, and between unlock and lock.
pub(crate) struct Distance {
    /// Steps of work.
    steps: u64,
    /// The time that they take, in nanoseconds.
    pub(crate) ns: f64,
    /// Lock and unlock pairs in one slice: some 100 µs.
    pub(crate) pairs: u64,
}

/// Returns three distances: none, about 10 ns, and about 30 ns.
pub(crate) fn distances() -> [Distance; DISTANCES] {
    // For so long (20 ms) that a CPU which was idle has come to its full speed.
    let step = (0..200).map(|_| step()).fold(f64::INFINITY, f64::min);
    [(0.0, 10_000), (10.0, 4_000), (30.0, 1_500)].map(|(wanted, pairs)| {
        let steps = (wanted / step).round();
        Distance {
            steps: steps as u64,
            ns: steps * step,
            pairs,
        }
    })
}

/// Returns the nanoseconds of one step of work.
fn step() -> f64 {
    const STEPS: u64 = 100_000;
    let begin = Instant::now();
    black_box(multiply(black_box(1), black_box(STEPS)));
    begin.elapsed().as_nanos() as f64 / STEPS as f64
}

/// Returns the nanoseconds a pair of the peer (baseline) and of ours, over one block.
/// A pair of slices in which another program had the CPU is measured again;
/// `None` if that does not help.
pub(crate) fn alone(
    peer: &dyn Contestant,
    ours: &dyn Contestant,
    at: &Distance,
    seed: u64,
) -> Option<Pair> {
    let run = |contestant: &dyn Contestant, pairs: u64| match at.steps {
        0 => contestant.uncontended(black_box(pairs)),
        steps => {
            black_box(contestant.apart(black_box(pairs), black_box(steps)));
        }
    };
    let mut sums = [0.0; 2];
    let mut kept = 0;
    for slice in 0..8 * SLICES {
        let before = preemptions();
        let times = both(coin(seed, slice), |side| {
            let contestant = if side == Side::Baseline { peer } else { ours };
            // The start of a slice, in which caches warm, is left out.
            run(contestant, at.pairs / 10);
            let begin = Instant::now();
            run(contestant, at.pairs);
            Some(begin.elapsed().as_nanos() as f64 / at.pairs as f64)
        });
        if preemptions() != before {
            continue;
        }
        for (sum, time) in sums.iter_mut().zip(times.into_iter().flatten()) {
            *sum += time / SLICES as f64;
        }
        kept += 1;
        if kept == SLICES {
            return Some(Pair::new(sums[0], sums[1], coin(seed, 0)));
        }
    }
    None
}
