//! Says what an event of an execution graph is: one access, fence, or step in the life
//! of a thread.
//!
//! It must know no algorithm: what is here is data.

use std::fmt;
use std::sync::atomic::Ordering;

/// The most threads of one execution, with the first.
pub const MAX_THREADS: usize = 16;

/// Where the code of an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A line of a source file.
    Source {
        /// The path of the file, as the compiler knows it.
        file: &'static str,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
    /// The address of an instruction, which the caller can name.
    Address(u64),
}

impl Place {
    /// Returns the place of the caller.
    #[track_caller]
    pub fn here() -> Self {
        let here = std::panic::Location::caller();
        Self::Source {
            file: here.file(),
            line: here.line(),
            column: here.column(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { file, line, .. } => write!(f, "{file}:{line}"),
            Self::Address(address) => write!(f, "{address:#x}"),
        }
    }
}

/// Names an event: its thread, and its number in that thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// Number of the thread that the event belongs to.
    pub thread: u16,
    /// The number of events of that thread before it.
    pub index: u16,
}

impl EventId {
    pub(crate) fn new(thread: usize, index: usize) -> Self {
        Self {
            thread: thread as u16,
            index: index as u16,
        }
    }

    pub(crate) fn thread(self) -> usize {
        usize::from(self.thread)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.index)
    }
}

/// A vector clock: how many events of each thread come before, or are, an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Clock([u16; MAX_THREADS]);

impl Clock {
    pub(crate) fn has(&self, event: EventId) -> bool {
        self.0[event.thread()] > event.index
    }

    pub(crate) fn join(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = (*own).max(other);
        }
    }

    /// Includes this event and those before it in its thread.
    pub(crate) fn include(&mut self, event: EventId) {
        let own = &mut self.0[event.thread()];
        *own = (*own).max(event.index + 1);
    }

    /// Returns how many events of a thread are included.
    pub(crate) fn of(&self, thread: usize) -> usize {
        self.0[thread].into()
    }
}

/// What a read reads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// What the location held at the beginning.
    Initial,
    /// A write.
    Write(EventId),
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A thread begins.
    Begin,
    /// A thread ends.
    End,
    /// The thread of this number is created.
    Spawn(u16),
    /// The thread of this number was waited for, and has ended.
    Join(u16),
    /// An atomic read.
    Load,
    /// The read of a read-modify-write.
    UpdateRead,
    /// The write of a read-modify-write, whose read is the event before it.
    UpdateWrite,
    /// A read that ends a wait.
    Await,
    /// An atomic write.
    Store,
    /// A fence.
    Fence,
    /// A read of plain memory.
    PlainRead,
    /// A write of plain memory.
    PlainWrite,
    /// One of so many choices that no other event decides.
    Choice(u32),
    /// Memory is given out.
    Allocate,
    /// Memory is given back.
    Free,
}

impl Kind {
    /// Returns whether it is an atomic read.
    pub fn reads(self) -> bool {
        matches!(self, Self::Load | Self::UpdateRead | Self::Await)
    }

    /// Returns whether it is an atomic write.
    pub fn writes(self) -> bool {
        matches!(self, Self::Store | Self::UpdateWrite)
    }

    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::PlainRead | Self::PlainWrite | Self::Free)
    }
}

/// The part of a compare-and-exchange that decides its ordering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) expected: u64,
    pub(crate) success: Ordering,
    pub(crate) failure: Ordering,
}

/// Stands for the location of an event that accesses none.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// One event of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) order: Ordering,
    pub(crate) location: u32,
    /// What was read, written or chosen.
    pub(crate) value: u64,
    pub(crate) source: Source,
    /// What a compare-and-exchange compares with, and its orderings.
    pub(crate) exchange: Option<Exchange>,
    /// A read that did not end its wait: its thread goes no further.
    pub(crate) stuck: bool,
    /// It is of the set-up, the same in every execution.
    pub(crate) fixed: bool,
    /// When it was added: later events have greater numbers.
    pub(crate) stamp: u32,
    pub(crate) place: Place,
    /// What happens before it, and itself.
    pub(crate) hb: Clock,
    /// What precedes it by program order and reads-from, and itself.
    pub(crate) porf: Clock,
    /// What happens before the last release fence of its thread.
    pub(crate) released: Clock,
    /// What an acquire fence would make happen before it.
    pub(crate) pending: Clock,
    /// What happens before an acquiring read of this write.
    pub(crate) message: Clock,
}

impl Event {
    pub(crate) fn is_sc(&self) -> bool {
        self.order == Ordering::SeqCst
    }
}

/// Returns whether an ordering acquires.
pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst
    )
}

/// Returns whether an ordering releases.
pub(crate) fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}
