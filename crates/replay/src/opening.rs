//! [`Program::of`]: from a recording to its program.

use crate::fault::Fault;
use crate::program::Program;
use crate::reading::{Reading, median};
use crate::window::{Limits, Window, window};
use locklab_trace::{Event, Missing, Trace};

impl Program {
    /// The program of a recording, in a window where as many threads as ever
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
        let window = window(trace, limits)?;
        program(trace, limits, window)
    }
}

/// Reads the window.
fn program(trace: &Trace, limits: &Limits, window: Window) -> Result<Program, Fault> {
    let recorder = recorder_ticks(trace);
    let part = if limits.with_recorder {
        0
    } else {
        recorder / 2
    };
    let mut reading = Reading::new(trace, window.from, part);
    let mut to = window.to;
    for (thread, tick, event) in trace.in_order() {
        if tick > to {
            break;
        }
        reading.add(thread, trace.threads[thread].image, tick, &event);
        if reading.acquisitions >= limits.acquisitions {
            to = tick;
            break;
        }
    }
    for thread in 0..reading.running.len() {
        reading.end(thread, to);
    }
    reading.channels.write(&mut reading.running);
    reading.finish(limits, to, recorder)
}

/// What the recorder takes of an operation, in ticks: the median, because some
/// were interrupted.
fn recorder_ticks(trace: &Trace) -> u64 {
    let of_thread = |thread| trace.events(thread);
    let mut costs: Vec<u64> = trace
        .threads
        .iter()
        .flat_map(of_thread)
        .filter_map(|(_, event)| match event {
            Event::Cost { ticks } => Some(ticks),
            _ => None,
        })
        .collect();
    median(&mut costs)
}
