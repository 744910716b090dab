//! From a recording to its program ([`Program::of`]): chooses the part that is run again,
//! a whole window, so that queues stay true, in which as many threads as ever take locks,
//! and reads it.

use crate::fault::Fault;
use crate::program::Program;
use crate::reading::{Reading, median};
use locklab_trace::{Event, Missing, Source, Trace};
use std::collections::BTreeSet;
use std::ops::Range;

impl Program {
    /// Returns the program of a recording, in a window where as many threads as ever
    /// take locks.
    ///
    /// # Errors
    /// A [`Fault`] if there is nothing to run again.
    pub fn of(trace: &Trace, limits: &Limits) -> Result<Self, Fault> {
        if trace.threads.is_empty() {
            return Err(Fault::Empty);
        }
        if trace.missing != Missing::default() {
            return Err(Fault::NotWhole);
        }
        if trace.info.source == Source::KernelWaits {
            return Err(Fault::WaitsOnly);
        }
        let window = window(trace, limits)?;
        program(trace, limits, window)
    }
}

/// Reads the window.
fn program(trace: &Trace, limits: &Limits, window: Window) -> Result<Program, Fault> {
    let timed = Timed::of(trace);
    let recorder = timed.recorder;
    let part = if limits.with_recorder {
        0
    } else {
        recorder / 2
    };
    // 0 is of what was not timed, so that a known one is more.
    let free = timed.free.map(|ticks| match ticks {
        0 => 0,
        ticks => ticks.saturating_sub(part).max(1),
    });
    let mut reading = Reading::new(trace, window.from, part, free);
    reading.delays = limits.delays;
    let mut to = window.to;
    let mut records = trace.in_order();
    let mut beyond = None;
    for (thread, tick, event) in records.by_ref() {
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

/// Describes what the operations say that the recorder timed, in ticks.
struct Timed {
    /// Holds what the recorder takes of an operation.
    recorder: u64,
    /// Holds what an acquisition takes that does not wait, and what such a release.
    free: [u64; 2],
}

impl Timed {
    fn of(trace: &Trace) -> Self {
        let (mut costs, mut free) = (Vec::new(), [Vec::new(), Vec::new()]);
        for thread in &trace.threads {
            // When an operation began, and how long the last one took.
            let (mut since, mut last) = (0, None);
            for (tick, event) in trace.events(thread) {
                let took = tick - since;
                match event {
                    Event::Request { .. } | Event::Release { .. } => since = tick,
                    Event::Acquired => last = Some((0, took)),
                    Event::Released => last = Some((1, took)),
                    Event::Cost { ticks } => {
                        costs.push(ticks);
                        if let Some((which, took)) = last.take() {
                            free[which].push(took);
                        }
                    }
                    _ => last = None,
                }
            }
        }
        Self {
            // Some were interrupted.
            recorder: median(&mut costs),
            // Some of them waited.
            free: free.map(|mut ticks| match ticks.len() / 4 {
                0 => 0,
                place => *ticks.select_nth_unstable(place).1,
            }),
        }
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

/// Parts in which a recording is looked at.
const PARTS: usize = 256;

/// A recording of fewer acquisitions is run again as a whole.
const SHORT: u64 = 1000;

/// Says where more threads take locks than there are CPUs, how long the window should be,
/// in nanoseconds: each of a few threads for each CPU then has it ten times or so. In
/// less one thread that loses its CPU with a lock makes most of all waiting.
const CROWDED_NS: f64 = 250e6;
/// Says how many times as many acquisitions that may be.
const CROWDED: usize = 10;

/// Chooses the window.
pub(crate) fn window(trace: &Trace, limits: &Limits) -> Result<Window, Fault> {
    let (began, ended) = (trace.info.began, trace.info.ended);
    let length = ended.saturating_sub(began).max(1);
    let part_of = |tick: u64| {
        let at = u128::from(tick.saturating_sub(began)) * PARTS as u128 / u128::from(length);
        (at as usize).min(PARTS - 1)
    };
    let start_of = |part: usize| {
        let at = u128::from(length) * part as u128 / PARTS as u128;
        began.saturating_add(at as u64)
    };
    let mut acquired = [0_u64; PARTS];
    let mut active = [0_usize; PARTS];
    let mut taking = 0;
    for thread in &trace.threads {
        // A thread that takes a lock only now and then is there all the time.
        let mut there: Option<(usize, usize)> = None;
        for (tick, event) in trace.events(thread) {
            if let Event::Acquired = event {
                let part = part_of(tick);
                acquired[part] += 1;
                there = Some((there.map_or(part, |(first, _)| first.min(part)), part));
            }
        }
        if let Some((first, last)) = there {
            taking += 1;
            for count in &mut active[first..=last.max(first)] {
                *count += 1;
            }
        }
    }
    match taking {
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
    let first = typical(&acquired, run.clone(), acquisitions as u64);
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
