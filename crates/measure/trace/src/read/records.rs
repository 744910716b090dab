//! The records of a thread, as they were recorded or seen otherwise.
//!
//! Must never change what the header says.

use super::{Thread, Trace};
use crate::bytes::Part;
use crate::decode::Position;
use crate::event::Event;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

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
    pub(super) trace: &'a Trace,
    pub(super) pieces: std::slice::Iter<'a, (u64, Range<usize>)>,
    pub(super) part: Part<'a>,
    pub(super) position: Position,
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
