//! Finds loops that wait: the code comes to an access again with the same registers
//! and the same stack, and has changed nothing since.
//!
//! What lies between has then left no trace, so an execution without it stands for
//! one with it: the thread may stop there. A loop that has changed memory in between
//! is no such loop; it is cut after some rounds in the same state, and the report
//! says so. A round that the next could differ from must never be taken for a wait.

use crate::library::Frame;
use std::collections::HashMap;
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
    /// It has come round as often as is explored, changing memory: the last round began at
    /// this event.
    Cut(usize),
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
    /// Of each state, whatever was changed: the reads and the events before it came there
    /// last, a hash of the reads of the round before, and how many rounds had the same.
    rounds: HashMap<u64, (usize, usize, u64, u32)>,
    accesses: u32,
}

impl Loops {
    /// Returns one of a new execution, with the memory of this one.
    pub(super) fn emptied(mut self) -> Self {
        self.has_changed();
        self.log.clear();
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
        let now = self.log.len();
        let first = (now, events, 0, 0);
        let (before, since, reads, alike) = self.rounds.entry(hash).or_insert(first);
        let began = *since;
        if *before < now {
            let mut round = DefaultHasher::new();
            self.log[*before..].hash(&mut round);
            let round = round.finish();
            *alike = if round == *reads { *alike + 1 } else { 0 };
            (*before, *since, *reads) = (now, events, round);
        }
        match *alike >= ROUNDS {
            true => Turn::Cut(began),
            false => Turn::Onward,
        }
    }
}
