//! [`Program::of`]: from a recording to its program.

use crate::fault::Fault;
use crate::program::Program;
use crate::reading::{Reading, median};
use crate::window::{Limits, Window, window};
use locklab_trace::{Event, Missing, Source, Trace};
use std::collections::BTreeSet;

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
            // Some waited.
            free: free.map(|mut ticks| match ticks.len() / 4 {
                0 => 0,
                place => *ticks.select_nth_unstable(place).1,
            }),
        }
    }
}
