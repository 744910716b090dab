//! From a recording to its program ([`Program::of`]): chooses the part that is run again,
//! a whole window, so that queues stay true, in which as many threads as ever take locks,
//! and reads it.

use crate::cpus::in_order_ahead;
use crate::fault::Fault;
use crate::parts::{PARTS, Parts};
use crate::program::Program;
use crate::reading::Reading;
use locklab_trace::{Event, Missing, Source, Trace};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Range;

impl Program {
    /// Returns the program of a recording, in a window where as many threads as ever
    /// take locks.
    ///
    /// # Errors
    /// A [`Fault`] if there is nothing to run again.
    pub fn of(trace: &Trace, limits: &Limits) -> Result<Self, Fault> {
        Self::of_parts(trace, || Parts::of(trace), limits)
    }

    /// Returns that program; `parts` returns what the parts of the recording have.
    pub(crate) fn of_parts<P: Borrow<Parts>>(
        trace: &Trace,
        parts: impl FnOnce() -> P,
        limits: &Limits,
    ) -> Result<Self, Fault> {
        if trace.threads.is_empty() {
            return Err(Fault::Empty);
        }
        if trace.missing != Missing::default() {
            return Err(Fault::NotWhole);
        }
        if trace.info.source == Source::KernelWaits {
            return Err(Fault::WaitsOnly);
        }
        let parts = parts();
        let window = window(trace, parts.borrow(), limits)?;
        program(trace, parts.borrow(), limits, window)
    }
}

/// Reads the window.
fn program(
    trace: &Trace,
    parts: &Parts,
    limits: &Limits,
    window: Window,
) -> Result<Program, Fault> {
    let recorder = parts.recorder;
    let part = if limits.with_recorder {
        0
    } else {
        recorder / 2
    };
    // 0 is of what was not timed, so that a known one is more.
    let free = parts.free.map(|ticks| match ticks {
        0 => 0,
        ticks => ticks.saturating_sub(part).max(1),
    });
    let mut reading = Reading::new(trace, window.from, part, free);
    reading.delays = limits.delays;
    let mut to = window.to;
    in_order_ahead(trace, |records| {
        let mut beyond = None;
        for (thread, tick, event) in &mut *records {
            if tick > to {
                beyond = Some((thread, tick, event));
                break;
            }
            reading.add(thread, trace.threads[thread].image, tick, &event);
            if reading.acquisitions >= window.acquisitions {
                to = tick;
                break;
            }
        }
        look_past_the_end(&mut reading, trace, beyond.into_iter().chain(records));
    });
    for thread in 0..reading.running.len() {
        reading.end(thread, to);
    }
    reading.channels.write(&mut reading.running);
    reading.finish(limits, to, recorder)
}

/// Finds of each thread that seems to compute when the window ends for how much of that
/// stretch it had a CPU: its next record says so, or nothing is known of it until the end.
fn look_past_the_end<'a>(
    reading: &mut Reading<'_>,
    trace: &Trace,
    records: impl Iterator<Item = (usize, u64, Event<'a>)>,
) {
    let tick_ns = trace.info.nanoseconds_per_tick;
    let threads = 0..trace.threads.len();
    let mut open: BTreeSet<usize> = threads.filter(|&thread| reading.computes(thread)).collect();
    for (thread, tick, event) in records {
        if open.is_empty() {
            return;
        }
        if !open.contains(&thread) || matches!(event, Event::Begin { .. }) {
            continue;
        }
        open.remove(&thread);
        let running = &mut reading.running[thread];
        if let Some(without) = running.cpu.add(tick, &event, tick_ns) {
            running.tail = Some((tick, without.ticks));
        }
    }
    let end = trace.info.ended;
    for thread in open {
        let running = &mut reading.running[thread];
        let without = running
            .cpu
            .unfinished(end, trace.threads[thread].ran, tick_ns);
        running.tail = (without > 0).then_some((end, without));
    }
}

/// Describes how much of a recording makes a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The most acquisitions of the window; up to ten times as many where more threads
    /// take locks than there are CPUs.
    pub acquisitions: usize,
    /// The most locks; what is done with others, the least contended, is work.
    pub locks: usize,
    /// Says whether steps take as long as they took with the recorder, as is needed to
    /// check a replay by the recording; otherwise its part is left out.
    pub with_recorder: bool,
    /// Says whether a program in which only one thread takes locks is a program too.
    pub one_thread: bool,
    /// Says whether waits for other threads take as long as they took, whatever the
    /// others do: of programs whose waits are not understood.
    pub delays: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            acquisitions: 30_000,
            locks: 256,
            with_recorder: false,
            one_thread: false,
            delays: false,
        }
    }
}

/// A part of a recording, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The most acquisitions in it.
    pub(crate) acquisitions: usize,
}

/// A recording of fewer acquisitions is run again as a whole.
const SHORT: u64 = 1000;

/// Says where more threads take locks than there are CPUs, how long the window should be,
/// in nanoseconds: each of a few threads for each CPU then has it ten times or so. In
/// less one thread that loses its CPU with a lock makes most of all waiting.
const CROWDED_NS: f64 = 250e6;
/// Says how many times as many acquisitions that may be.
const CROWDED: usize = 10;

/// Chooses the window.
fn window(trace: &Trace, parts: &Parts, limits: &Limits) -> Result<Window, Fault> {
    let (began, ended) = (trace.info.began, trace.info.ended);
    let start_of = |part: usize| Parts::start_of(&trace.info, part);
    let Parts {
        acquired,
        active,
        taking,
        ..
    } = parts;
    match *taking {
        0 => return Err(Fault::NoLock),
        1 if !limits.one_thread => return Err(Fault::OneThread),
        _ => {}
    }
    let all = Window {
        from: began,
        to: ended,
        acquisitions: limits.acquisitions,
    };
    if acquired.iter().sum::<u64>() < SHORT.min(limits.acquisitions as u64) {
        return Ok(all);
    }
    let most = active.iter().copied().max().unwrap_or(0);
    let busy = |part: usize| 2 * active[part] >= most;
    let mut best = (0, 0..PARTS);
    let mut from = 0;
    while from < PARTS {
        let to = (from..PARTS).find(|&part| !busy(part)).unwrap_or(PARTS);
        let sum: u64 = acquired[from..to].iter().sum();
        if sum > best.0 {
            best = (sum, from..to);
        }
        from = to.max(from + 1);
    }
    let (sum, run) = best;
    let mut acquisitions = limits.acquisitions;
    if trace.info.cpus().is_some_and(|cpus| most > cpus) {
        let run_ns = trace.nanoseconds(start_of(run.end).saturating_sub(start_of(run.start)));
        let wanted = sum as f64 * CROWDED_NS / run_ns.max(1.0);
        acquisitions = acquisitions.max((wanted as usize).min(CROWDED * acquisitions));
    }
    let first = typical(acquired, run.clone(), acquisitions as u64);
    Ok(Window {
        from: start_of(first),
        to: match run.end {
            PARTS => ended,
            end => start_of(end),
        },
        acquisitions,
    })
}

/// Returns where so many acquisitions come at the rate of the whole `run` of parts: the
/// rate of a program may change within it, as when the host moves the CPUs of a virtual
/// machine, and a window of another rate would stand for a program that ran at that rate.
/// Of several, the one nearest to the middle.
fn typical(acquired: &[u64], run: Range<usize>, acquisitions: u64) -> usize {
    let rate = |parts: Range<usize>| {
        let sum: u64 = acquired[parts.clone()].iter().sum();
        sum as f64 / parts.len().max(1) as f64
    };
    let whole = rate(run.clone());
    let mut best = (f64::INFINITY, 0, run.start);
    let (mut to, mut sum) = (run.start, 0);
    for from in run.clone() {
        while to < run.end && sum < acquisitions {
            sum += acquired[to];
            to += 1;
        }
        // At the end there are too few, but for a run that is shorter than a window.
        if sum < acquisitions && from > run.start {
            break;
        }
        let other = (rate(from..to).max(f64::MIN_POSITIVE) / whole).ln().abs();
        let off = (from + to).abs_diff(run.start + run.end);
        // A tenth of a per cent is no difference.
        let found = ((other * 1000.0).round(), off, from);
        if (found.0, found.1) < (best.0, best.1) {
            best = found;
        }
        sum -= acquired[from];
    }
    best.2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_where_the_rate_is_that_of_the_whole() {
        let mut acquired = [100_u64; 60];
        acquired[20..40].fill(300);
        // 166 a part on the whole: a window over the step from the one to the other.
        let from = typical(&acquired, 0..60, 1000);
        let within: u64 = acquired[from..from + 6].iter().sum();
        assert!((900..=1100).contains(&within), "{from}");
        // Without a change it is in the middle.
        assert_eq!(typical(&[100; 60], 0..60, 1000), 25);
        // What is shorter than a window is taken from its beginning.
        assert_eq!(typical(&acquired, 50..60, 100_000), 50);
        assert_eq!(typical(&[0; 4], 0..4, 10), 0);
    }
}
