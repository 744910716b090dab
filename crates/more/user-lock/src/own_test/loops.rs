//! Finds loops that wait: the code comes to an access again with the same registers
//! and the same stack, and has changed nothing since.
//!
//! What lies between has then left no trace, so an execution without it stands for
//! one with it: the thread may stop there. So it may after a round that has taken back what
//! it has changed, as one that looks at a flag under a guard, unless somebody has seen that
//! change. A loop that changes memory otherwise is cut after some rounds in the same state,
//! and the report says so. A round that the next could differ from must never be taken for a
//! wait.

use crate::library::Frame;
use crate::memory::{memory, pieces};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Rounds of a loop that changes memory, reads the same each time and returns to the same
/// state.
const ROUNDS: u32 = 2;

/// The most accesses of a thread in one execution.
const MOST_ACCESSES: u32 = 100_000;

/// What a read of a round has read: the address, the size, and the value.
pub(super) type Read = (usize, u8, u64);

/// What the code is about to do.
pub(super) enum Turn {
    /// Something new.
    Onward,
    /// It has come round, and changed nothing: the round began at this event, and has read
    /// this memory that no event is about.
    Repeats(usize, Vec<usize>),
    /// It has come round, and has changed memory, if only for a while.
    Again {
        /// The event at which the round began.
        since: usize,
        /// Whether memory that no event is about is as it was.
        undone: bool,
        /// Whether it has come round as often as is explored.
        cut: bool,
    },
    /// It makes more accesses than are explored.
    Endless,
}

/// The accesses of one thread since it last changed something.
#[derive(Default)]
pub(super) struct Loops {
    /// The states in which it came to an access, with the number of its events and of its
    /// silent reads before that.
    seen: HashMap<u64, (usize, usize)>,
    silent: Vec<usize>,
    /// All reads of the execution.
    log: Vec<Read>,
    /// Writes of the execution that no event is about: address, size, and what was there.
    undo: Vec<(usize, u32, u64)>,
    /// What is known of each state, whatever was changed.
    rounds: HashMap<u64, Round>,
    accesses: u32,
}

/// The last round of a loop that came to a state.
#[derive(Clone, Copy)]
struct Round {
    /// The reads, the events and the writes without an event before it came there.
    reads: usize,
    events: usize,
    undo: usize,
    /// A hash of what the round before has read, and how many rounds had the same.
    read: u64,
    alike: u32,
}

impl Loops {
    /// Returns one of a new execution, with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.has_changed();
        self.log.clear();
        self.undo.clear();
        self.rounds.clear();
        self.accesses = 0;
        self
    }

    /// Notes that a call begins, whose loops are others than those of the call before.
    pub(super) fn begin_call(&mut self) {
        self.has_changed();
        self.rounds.clear();
        self.accesses = 0;
    }

    /// Notes that the thread has changed something that its stack does not show.
    pub(super) fn has_changed(&mut self) {
        self.seen.clear();
        self.silent.clear();
    }

    /// Notes a write that is no event, before it is made.
    pub(super) fn will_write(&mut self, address: usize, bytes: usize) {
        for (address, size) in pieces(address, bytes) {
            // SAFETY: memory of the test.
            let before = unsafe { memory(address, size.into()) };
            self.undo.push((address, size.into(), before));
        }
        self.has_changed();
    }

    /// Notes a change that no round takes back.
    pub(super) fn has_changed_for_good(&mut self) {
        self.undo.push((0, 0, 0));
        self.has_changed();
    }

    /// Returns whether what was written since then without an event is as it was.
    fn is_undone(&self, since: usize) -> bool {
        let mut first = HashSet::new();
        self.undo[since..].iter().all(|&(address, size, before)| {
            // SAFETY: memory of the test.
            size > 0
                && (!first.insert((address, size)) || unsafe { memory(address, size) } == before)
        })
    }

    /// Notes a read that is an event.
    pub(super) fn has_read(&mut self, read: Read) {
        self.log.push(read);
    }

    /// Notes a read that is none.
    pub(super) fn has_read_silently(&mut self, address: usize) {
        self.silent.push(address);
    }

    /// Notes that the code comes to an access, after so many events.
    pub(super) fn comes_to(
        &mut self,
        frame: &Frame,
        entry: usize,
        access: (&'static str, usize),
        events: usize,
    ) -> Turn {
        self.accesses += 1;
        if self.accesses > MOST_ACCESSES {
            return Turn::Endless;
        }
        // SAFETY: the call has not returned.
        let state = unsafe { frame.state(entry) };
        if state.is_empty() {
            return Turn::Onward;
        }
        let mut hash = DefaultHasher::new();
        (access, state).hash(&mut hash);
        let hash = hash.finish();
        if let Some(&(since, silent)) = self.seen.get(&hash) {
            return Turn::Repeats(since, self.silent[silent..].to_vec());
        }
        self.seen.insert(hash, (events, self.silent.len()));
        let new = Round {
            reads: self.log.len(),
            events,
            undo: self.undo.len(),
            read: 0,
            alike: 0,
        };
        let Some(&before) = self.rounds.get(&hash) else {
            self.rounds.insert(hash, new);
            return Turn::Onward;
        };
        let mut read = DefaultHasher::new();
        self.log[before.reads..].hash(&mut read);
        let read = read.finish();
        let alike = if read == before.read {
            before.alike + 1
        } else {
            0
        };
        self.rounds.insert(hash, Round { read, alike, ..new });
        Turn::Again {
            since: before.events,
            undone: self.is_undone(before.undo),
            cut: alike >= ROUNDS,
        }
    }
}
