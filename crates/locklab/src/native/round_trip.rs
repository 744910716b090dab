//! How far apart the CPUs in use are: the round trip of a cache line.
//!
//! A virtual machine's CPUs move on their host within a minute, and contended
//! results move with them by 4 to 10 times. So the distance is measured
//! before and after each run, in about 2 ms, and pairs are only compared
//! within one placement class. Runs when nothing else of ours does.

use crate::matrix::{Invalid, RoundTrip, Run};
use locklab_host::{clock, topology};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Up to this many ns a round trip is `near`: SMT siblings answer in 15 to
/// 30 ns, cores that share a last-level cache in 50 to 110. The bounds are
/// the geometric means of the gaps.
pub const NEAR: f64 = 40.0;
/// Up to this many ns it is `mid`; other sockets, and cores of another cache
/// of the same chip, answer in 190 to 400.
pub const MID: f64 = 145.0;
/// Two figures of one class bound's two sides still count as one placement
/// if they differ by less than this factor.
const SLACK: f64 = 1.5;
/// Links measured at most, so that the measurement stays short.
const MOST_LINKS: usize = 8;

/// Times round trips between two CPUs and gives the lower quartile of short
/// batches, in ns: preemption can only add. `None` if the two did not meet
/// within 20 ms, three times.
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
                    // Rarely: it shares no line with the ball, but is read.
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

/// The links whose round trips stand for the placement of `cpus`: neighbours
/// in pin order, and the first with the last.
#[must_use]
pub fn links(cpus: &[usize]) -> Vec<(usize, usize)> {
    let mut links: Vec<(usize, usize)> = cpus.windows(2).map(|w| (w[0], w[1])).collect();
    if let [first, _, .., last] = cpus {
        links.push((*first, *last));
    }
    let stride = links.len().div_ceil(MOST_LINKS).max(1);
    links.into_iter().step_by(stride).collect()
}

/// Round trips of some links around one run, in ns, link by link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// Before the run.
    pub before: Vec<f64>,
    /// After it.
    pub after: Vec<f64>,
}

/// Measures `links`; empty if one of them could not be measured.
#[must_use]
pub fn measure_all(links: &[(usize, usize)]) -> Vec<f64> {
    links
        .iter()
        .map(|(a, b)| measure(*a, *b))
        .collect::<Option<Vec<f64>>>()
        .unwrap_or_default()
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

/// Whether round trips of one link are all of one placement.
fn steady(ns: &[f64]) -> bool {
    let (low, high) = ns.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), x| {
        (low.min(*x), high.max(*x))
    });
    high / low < SLACK || class_of(low) == class_of(high)
}

fn geometric_mean(ns: &[f64]) -> f64 {
    (ns.iter().map(|x| x.ln()).sum::<f64>() / ns.len() as f64).exp()
}

fn median(ns: &[f64]) -> f64 {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The class of links whose round trips these are: one word if all agree.
fn class(links: &[f64]) -> String {
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

/// Writes into the two runs of a pair where they were placed, and says
/// whether both were placed alike and did not move meanwhile. If not, both
/// are marked invalid.
pub fn settle(runs: [(&mut Run, &Around); 2]) -> bool {
    let [(_, a), (_, b)] = &runs;
    let all = [&a.before, &a.after, &b.before, &b.after];
    let count = a.before.len();
    if count == 0 && all.iter().all(|ns| ns.is_empty()) {
        // One CPU, or one thread: nothing to be apart.
        return true;
    }
    if all.iter().any(|ns| ns.len() != count) {
        for (run, _) in runs {
            run.invalid.get_or_insert_with(|| {
                Invalid::PlacementMoved("the CPUs in use were too busy to measure it".into())
            });
        }
        return false;
    }
    let link = |i: usize, of: &[&Vec<f64>]| of.iter().map(|ns| ns[i]).collect::<Vec<f64>>();
    let moved = (0..count).find(|i| !steady(&link(*i, &all)));
    let together: Vec<f64> = (0..count).map(|i| geometric_mean(&link(i, &all))).collect();
    let detail = moved.map(|i| {
        let [a, b, c, d] = all.map(|ns| ns[i]);
        format!("a cache line took {a:.0} and {b:.0} ns around one run, {c:.0} and {d:.0} ns around the other")
    });
    for (run, around) in runs {
        let own: Vec<f64> = (0..count)
            .map(|i| geometric_mean(&[around.before[i], around.after[i]]))
            .collect();
        run.round_trip = Some(RoundTrip {
            before: median(&around.before),
            after: median(&around.after),
            class: class(if moved.is_some() { &own } else { &together }),
        });
        if let Some(detail) = &detail {
            run.invalid
                .get_or_insert_with(|| Invalid::PlacementMoved(detail.clone()));
        }
    }
    moved.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::test_run;

    fn around(before: &[f64], after: &[f64]) -> Around {
        Around {
            before: before.to_vec(),
            after: after.to_vec(),
        }
    }

    fn settled(a: Around, b: Around) -> (bool, Run, Run) {
        let (mut x, mut y) = (test_run(), test_run());
        let steady = settle([(&mut x, &a), (&mut y, &b)]);
        (steady, x, y)
    }

    #[test]
    fn steady_pairs_share_a_class() {
        let (steady, x, y) = settled(around(&[64.0], &[66.0]), around(&[63.0], &[70.0]));
        assert!(steady && x.invalid.is_none() && y.invalid.is_none());
        assert_eq!(x.round_trip.unwrap().class, "mid");
        assert_eq!(y.round_trip.unwrap().class, "mid");
        // Across a bound by a hair is not a move.
        let (steady, x, y) = settled(around(&[140.0], &[150.0]), around(&[148.0], &[143.0]));
        assert!(steady);
        assert_eq!(x.round_trip.unwrap().class, y.round_trip.unwrap().class);
    }

    #[test]
    fn a_move_within_or_between_runs_is_seen() {
        for (a, b) in [
            (around(&[64.0], &[325.0]), around(&[325.0], &[325.0])),
            (around(&[27.0], &[27.0]), around(&[64.0], &[64.0])),
            (
                around(&[64.0, 64.0], &[64.0, 64.0]),
                around(&[64.0, 325.0], &[64.0, 325.0]),
            ),
        ] {
            let (steady, x, y) = settled(a, b);
            assert!(!steady);
            for run in [x, y] {
                assert!(matches!(run.invalid, Some(Invalid::PlacementMoved(_))));
            }
        }
    }

    #[test]
    fn many_links_are_sampled_and_mixed_classes_named() {
        assert_eq!(links(&[3]), []);
        assert_eq!(links(&[3, 1]), [(3, 1)]);
        assert_eq!(links(&[0, 1, 2]), [(0, 1), (1, 2), (0, 2)]);
        let cpus: Vec<usize> = (0..288).collect();
        assert_eq!(links(&cpus).len(), 8);
        assert_eq!(class(&[27.0, 64.0, 60.0]), "1 near + 2 mid");
        assert_eq!(class(&[300.0]), "far");
    }

    #[test]
    fn one_cpu_or_a_busy_machine_is_no_crash() {
        let (steady, x, _) = settled(Around::default(), Around::default());
        assert!(steady && x.round_trip.is_none());
        let (steady, x, _) = settled(around(&[64.0], &[]), around(&[64.0], &[64.0]));
        assert!(!steady && x.invalid.is_some());
    }
}
