//! Measures what sleeping and waking threads cost on this machine: the figures of the
//! simulated operating system.
//!
//! Each is the median of many, because preemption can only add. It runs while no
//! other thread of the process does.

use locklab_host::{clock, topology};
use locklab_locks::NativePlatform;
use locklab_locks::platform::Platform;
use nix::sys::resource::{UsageWho, getrusage};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Sets how often each is measured.
const ROUNDS: u32 = 500;
/// The number of calls that are timed together: the clock takes a part of one.
const ROW: u32 = 10;
/// The times for which the waker lets the sleeper sleep, at least and at most, ns. How long a
/// wake-up takes depends on it, because an idle CPU sleeps deeper with time; waits for
/// locks are of these lengths.
const ASLEEP: [f64; 2] = [10_000.0, 100_000.0];
/// The number of lengths in between.
const LENGTHS: u32 = 10;
/// The time for which two threads share a CPU, to see how long each keeps it, ns.
const SHARED: u64 = 60_000_000;
/// The least time between two looks at the clock in which the other had the CPU, ns; interrupts
/// take less.
const AWAY: u64 = 300_000;
/// The fewest such times that say what they last.
const FEWEST: usize = 4;

/// The costs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduling {
    /// The time for which a thread keeps a CPU that another wants; [`None`] where they hardly
    /// ever changed. Linux may end a slice only at a tick of its clock, so it is longer than
    /// what the system says of itself.
    pub slice: Option<f64>,
    /// A wait that returns at once, because the word has changed.
    pub call: f64,
    /// A call that finds nobody to wake.
    pub wake_nobody: f64,
    /// A `sched_yield` while no other thread is ready; [`None`] where one always was.
    pub yields: Option<f64>,
    /// A call that wakes a thread on an idle CPU.
    pub wake_call: f64,
    /// The time from the end of that call until the woken thread runs.
    pub wake: f64,
    /// Says how many times as long the slowest tenth of these takes as the quickest
    /// tenth.
    pub wake_spread: f64,
}

impl Scheduling {
    /// Returns the figures of a machine file, in their units.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let slice = self.slice.map(|ns| ("scheduler.slice_us", ns / 1e3));
        let yields = self.yields.map(|ns| ("scheduler.yield_us", ns / 1e3));
        let others = [
            ("scheduler.wake_call_us", self.wake_call / 1e3),
            ("scheduler.wake_us", self.wake / 1e3),
            ("scheduler.wake_spread", self.wake_spread.clamp(1.0, 100.0)),
        ];
        let calls = [
            ("scheduler.call_us", self.call / 1e3),
            ("scheduler.wake_nobody_us", self.wake_nobody / 1e3),
        ];
        slice.into_iter().chain(calls).chain(yields).chain(others)
    }

    /// Returns the table of a machine file. What cannot be measured so has the format's
    /// default.
    #[must_use]
    pub fn table(&self) -> String {
        let lines = self.figures().map(|(key, value)| {
            let key = key.trim_start_matches("scheduler.");
            let calls = match key {
                "slice_us" => "two threads on one CPU",
                "yield_us" => "calls of sched_yield",
                _ => "futex calls",
            };
            format!("{key} = {{ value = {value:.2}, source = \"measured: {calls}\" }}\n")
        });
        format!("\n[scheduler]\n{}", lines.collect::<String>())
    }
}

/// Measures between two CPUs; `None` if the clock went backwards between them.
#[must_use]
pub fn measure(a: usize, b: usize) -> Option<Scheduling> {
    let (word, ran) = (AtomicU32::new(0), AtomicU64::new(0));
    let mut wakes = Vec::new();
    let (mut calls, mut wakes_of_nobody, mut yields) = (Vec::new(), Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            topology::pin_to(b);
            for round in 0..ROUNDS {
                while word.load(Ordering::Relaxed) == round {
                    NativePlatform::wait(&word, round);
                }
                ran.store(clock::now(), Ordering::Relaxed);
            }
        });
        let waker = scope.spawn(|| {
            topology::pin_to(a);
            let never = AtomicU32::new(1);
            let calls = in_a_row(|| NativePlatform::wait(&never, 0));
            let wakes_of_nobody = in_a_row(|| NativePlatform::wake(&never));
            let yields = kept_cpu(NativePlatform::yield_cpu);
            let mut wakes = Vec::new();
            let mut before = 0;
            for round in 0..ROUNDS {
                let start = clock::now();
                while clock::now() - start < asleep(round) {
                    std::hint::spin_loop();
                }
                let start = clock::now();
                word.store(round + 1, Ordering::Relaxed);
                NativePlatform::wake(&word);
                let called = clock::now();
                let mut now = ran.load(Ordering::Relaxed);
                while now == before {
                    std::hint::spin_loop();
                    now = ran.load(Ordering::Relaxed);
                }
                before = now;
                wakes.push((called.saturating_sub(start), now.saturating_sub(called)));
            }
            (wakes, calls, wakes_of_nobody, yields)
        });
        (wakes, calls, wakes_of_nobody, yields) = waker.join().unwrap_or_default();
    });
    let mut wake_calls: Vec<f64> = wakes.iter().map(|(call, _)| *call as f64).collect();
    let mut wakes: Vec<f64> = wakes.iter().map(|(_, wake)| *wake as f64).collect();
    let quick = quantile(&mut wakes, 0.1)?;
    Some(Scheduling {
        slice: slice(b),
        call: quantile(&mut calls, 0.5)?,
        wake_nobody: quantile(&mut wakes_of_nobody, 0.5)?,
        yields: quantile(&mut yields, 0.5),
        wake_call: quantile(&mut wake_calls, 0.5)?,
        wake: quantile(&mut wakes, 0.5)?,
        wake_spread: quantile(&mut wakes, 0.9)? / quick.max(1.0),
    })
}

/// Returns how long each of two threads that compute on one CPU has it at a time, ns. Another
/// program there makes them wait longer, and leaves that as it is.
fn slice(cpu: usize) -> Option<f64> {
    let turns = move || {
        topology::pin_to(cpu);
        turns(clock::now)
    };
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(turns));
        let times = both.into_iter().filter_map(|one| one.join().ok());
        times.flatten().collect()
    });
    (times.len() >= FEWEST).then(|| quantile(&mut times, 0.5))?
}

/// Looks at the clock for a while; returns how long it had a CPU each time, ns, without the
/// first time, which may have begun before.
fn turns(mut now: impl FnMut() -> u64) -> Vec<f64> {
    let start = now();
    let (mut last, mut begun, mut turns) = (start, None, Vec::new());
    while last.saturating_sub(start) < SHARED {
        let now = now();
        if now.saturating_sub(last) > AWAY {
            turns.extend(begun.map(|begun| last.saturating_sub(begun) as f64));
            begun = Some(now);
        }
        last = now;
    }
    turns
}

/// Returns what calls take that return at once, ns, one after the other: so do those of
/// threads that hand a lock to and fro. The first after a sleep takes three times as long,
/// because it finds nothing in the caches.
fn in_a_row(call: impl Fn()) -> Vec<f64> {
    (0..ROUNDS / ROW).map(|_| row(&call)).collect()
}

/// Returns the same of those rows in which the thread kept its CPU: one that yields to another
/// program gets it back a slice later.
fn kept_cpu(call: impl Fn()) -> Vec<f64> {
    let kept = |_| {
        let before = switches();
        let took = row(&call);
        (switches() == before).then_some(took)
    };
    (0..ROUNDS / ROW).filter_map(kept).collect()
}

/// Returns what a call takes, ns, as the mean of a row.
fn row(call: &impl Fn()) -> f64 {
    let start = clock::now();
    for _ in 0..ROW {
        call();
    }
    (clock::now() - start) as f64 / f64::from(ROW)
}

/// Returns how often this thread has lost its CPU; `None` where the system does not say it.
fn switches() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    Some(usage.voluntary_context_switches() + usage.involuntary_context_switches())
}

/// Returns for how long the sleeper sleeps in a round, ns: each length as often, in
/// proportion.
fn asleep(round: u32) -> u64 {
    let part = f64::from(round % LENGTHS) / f64::from(LENGTHS - 1);
    (ASLEEP[0] * (ASLEEP[1] / ASLEEP[0]).powf(part)) as u64
}

fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * part) as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_one_of_a_machine_file() {
        let found = Scheduling {
            slice: Some(4_000_000.0),
            call: 200.0,
            wake_nobody: 150.0,
            yields: Some(360.0),
            wake_call: 7100.0,
            wake: 6600.0,
            wake_spread: 2.5,
        };
        assert_eq!(
            found.table(),
            "\n[scheduler]\n\
             slice_us = { value = 4000.00, source = \"measured: two threads on one CPU\" }\n\
             call_us = { value = 0.20, source = \"measured: futex calls\" }\n\
             wake_nobody_us = { value = 0.15, source = \"measured: futex calls\" }\n\
             yield_us = { value = 0.36, source = \"measured: calls of sched_yield\" }\n\
             wake_call_us = { value = 7.10, source = \"measured: futex calls\" }\n\
             wake_us = { value = 6.60, source = \"measured: futex calls\" }\n\
             wake_spread = { value = 2.50, source = \"measured: futex calls\" }\n"
        );
    }

    /// Beside a program that takes each CPU that is yielded, every row loses its own.
    #[test]
    fn what_was_not_measured_is_no_figure() {
        let found = Scheduling {
            slice: None,
            call: 200.0,
            wake_nobody: 150.0,
            yields: None,
            wake_call: 7100.0,
            wake: 6600.0,
            wake_spread: 2.5,
        };
        assert!(!found.table().contains("yield_us") && !found.table().contains("slice_us"));
        let all = kept_cpu(|| std::thread::sleep(std::time::Duration::from_micros(1)));
        assert!(all.is_empty(), "{all:?}");
    }

    #[test]
    fn a_turn_lasts_from_one_absence_to_the_next() {
        // It has the CPU for 4 ms, then two others have it; an interrupt is no absence.
        let mut looks = 0;
        let now = || {
            looks += 1;
            let turn = looks / 100;
            turn * 12_000_000 + looks % 100 * 40_000 + u64::from(looks % 100 > 50) * 100_000
        };
        let turns = turns(now);
        assert!(turns.len() >= FEWEST, "{turns:?}");
        assert!(turns.iter().all(|&ns| ns == 4_060_000.0), "{turns:?}");
    }

    #[test]
    fn calls_are_timed_in_rows() {
        let count = std::cell::Cell::new(0);
        let rows = in_a_row(|| count.set(count.get() + 1));
        assert_eq!(
            (rows.len() as u32, count.get()),
            (ROUNDS / ROW, ROUNDS),
            "each row is as long"
        );
        assert!(rows.iter().all(|row| *row >= 0.0));
    }

    #[test]
    fn sleepers_sleep_as_long_as_waits_for_locks_last() {
        let lengths: Vec<u64> = (0..LENGTHS).map(asleep).collect();
        assert_eq!((lengths[0], lengths[9]), (10_000, 100_000));
        assert!(lengths.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(asleep(LENGTHS), lengths[0]);
        let mut values = [3.0, 1.0, 2.0, 4.0];
        assert_eq!(quantile(&mut values, 0.5), Some(3.0));
        assert_eq!(quantile(&mut values, 0.1), Some(1.0));
        assert_eq!(quantile(&mut [], 0.5), None);
    }
}
