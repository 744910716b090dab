//! A recording that was read, and the records of its threads, as they were recorded or seen
//! otherwise.
//!
//! Must never change what the header says.

use super::info::{Info, Missing};
use super::windows::{Windows, WithoutGaps};
use crate::bytes::{Bytes, Part};
use crate::decode::Position;
use crate::event::Event;
use crate::without_cpu::SWITCH_NS;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// A thread of a recording.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its number in the recording.
    pub number: u64,
    /// The number of its program image.
    pub image: u64,
    /// The time at which its image ended, and the nanoseconds for which it had had a
    /// CPU then, if it had not ended itself.
    pub ran: Option<(u64, u64)>,
    /// Says where its records are in the file, in order of time, with the time of the
    /// first.
    pub(super) pieces: Vec<(u64, Range<usize>)>,
}

/// A recording that has been read.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Holds what the header says.
    pub info: Info,
    /// Holds what is not there.
    pub missing: Missing,
    /// The threads, by number.
    pub threads: Vec<Thread>,
    pub(super) bytes: Bytes,
    /// The time at which it ended, with what is between windows.
    pub(super) last: u64,
    pub(super) windows: Option<Windows>,
    /// Says how else the records are seen, one way upon the other.
    pub(super) otherwise: Vec<Arc<dyn Otherwise>>,
}

/// Another way to see what was recorded: other records for each thread. They are made
/// while they are read, so that they need no memory.
pub trait Otherwise: Debug + Send + Sync {
    /// Returns the records of a thread, of those that it has: in order of time.
    fn records<'a>(
        &'a self,
        thread: &'a Thread,
        records: Records<'a>,
    ) -> Box<dyn Iterator<Item = (u64, Event<'a>)> + Send + 'a>;
}

impl Trace {
    /// Returns the recording with the records of each thread seen otherwise.
    #[must_use]
    pub fn seen(mut self, otherwise: Arc<dyn Otherwise>) -> Self {
        self.otherwise.push(otherwise);
        self
    }

    /// Returns the records of a thread as they are in the file.
    fn recorded<'a>(&'a self, thread: &'a Thread) -> Events<'a> {
        Events {
            trace: self,
            pieces: thread.pieces.iter(),
            part: Part::Here(&[]),
            position: Position::START,
        }
    }

    /// Returns the records of a thread in order, with their times in ticks, up to the end
    /// of the recording.
    #[must_use]
    pub fn events<'a>(&'a self, thread: &'a Thread) -> Records<'a> {
        let events = self.recorded(thread);
        let mut records = match &self.windows {
            Some(windows) => {
                let switch = SWITCH_NS as f64 / self.info.nanoseconds_per_tick.max(1e-9);
                let events = WithoutGaps::of(events, windows, switch as u64);
                Records::Otherwise(Box::new(events))
            }
            None => Records::Recorded(events),
        };
        for other in &self.otherwise {
            records = Records::Otherwise(other.records(thread, records));
        }
        records
    }

    /// Returns by how much more or less threads waited for locks between windows than in
    /// them, as a factor: recording lengthens short sections, and others wait for them.
    /// `None` of a recording without windows, or of one in which nobody waited.
    #[must_use]
    pub fn waits_between_windows(&self) -> Option<f64> {
        /// No wait with a switch to another thread takes less, in nanoseconds.
        const SHORTEST_NS: f64 = 1000.0;
        let shortest = (SHORTEST_NS / self.info.nanoseconds_per_tick.max(1e-9)) as u64;
        let threads = self.threads.iter().map(|thread| self.recorded(thread));
        let windows = self.windows.as_ref()?;
        let [within, between] =
            windows.waiting(&(self.info.began..self.last), shortest, threads)?;
        (within > 0.0).then(|| between / within)
    }

    /// Returns the nanoseconds of so many ticks.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.info.nanoseconds_per_tick
    }
}

/// The records of a thread.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each thread, and the usual one is the large one"
)]
pub enum Records<'a> {
    /// They are those of the file.
    Recorded(Events<'a>),
    /// They are others.
    Otherwise(Box<dyn Iterator<Item = (u64, Event<'a>)> + Send + 'a>),
}

impl<'a> Iterator for Records<'a> {
    /// The time in ticks, and what happened then.
    type Item = (u64, Event<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Recorded(events) => events.next(),
            Self::Otherwise(events) => events.next(),
        }
    }
}

/// The records of a thread in the file, up to the end of the recording.
pub struct Events<'a> {
    trace: &'a Trace,
    pieces: std::slice::Iter<'a, (u64, Range<usize>)>,
    part: Part<'a>,
    position: Position,
}

impl<'a> Iterator for Events<'a> {
    type Item = (u64, Event<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((tick, event)) = self.part.next(&mut self.position) {
                if tick > self.trace.last {
                    self.pieces = Default::default();
                    self.part = Part::Here(&[]);
                    return None;
                }
                return Some((tick, event));
            }
            let (_, range) = self.pieces.next()?;
            self.part = self.trace.bytes.part(range.clone());
            self.position = Position::START;
        }
    }
}
