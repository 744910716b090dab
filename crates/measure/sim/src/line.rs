//! One line's directory entry: which cores hold it, and what waits for it.
//!
//! Has only the state and questions about it; `directory` changes it.

use crate::machine::MAX_CORES;
use crate::requests::Requests;
use std::cell::{Cell, RefCell};
use std::ops::Range;

const WORDS: usize = MAX_CORES / 64;
/// No core.
pub(crate) const NOBODY: u16 = u16::MAX;

/// One line's directory entry.
pub(crate) struct Line {
    pub(crate) exclusive: Cell<u16>,
    /// The last core that wrote, while no other has.
    pub(crate) owner: Cell<u16>,
    /// The time when the exclusive owner's copy arrives.
    pub(crate) ready: Cell<u64>,
    /// The time when the next request can be granted.
    pub(crate) free_at: Cell<u64>,
    /// Says whether a request waits for that time: then the owner's next operation does
    /// not precede it, however fast the owner is.
    pub(crate) claimed: Cell<bool>,
    /// That time as it was then: what began before may put it off, and nothing
    /// else, or two hardware threads of a core could keep the line for ever.
    claim: Cell<u64>,
    /// The time until which a locked operation of the owner keeps the line, also from
    /// the sibling threads of its core.
    pub(crate) locked: Cell<u64>,
    /// The CPU that may do another locked operation before the line leaves, and the time
    /// until which it may begin.
    pub(crate) again: Cell<(u16, u64)>,
    /// Says whether the exclusive owner has got the line by a read, and has not written since.
    pub(crate) clean: Cell<bool>,
    pub(crate) sharers: [Cell<u64>; WORDS],
    /// Number of sharers.
    pub(crate) copies: Cell<u32>,
    /// Says whether the line was last used at its home, by a far atomic.
    pub(crate) at_home: Cell<bool>,
    /// Number of far atomics in a row by `owner`.
    pub(crate) far_streak: Cell<u8>,
    /// Says whether only one CPU ever uses the line.
    pub(crate) private: Cell<bool>,
    /// The time of its next event, and the number of that event.
    pub(crate) event: Cell<(u64, u64)>,
    pub(crate) requests: RefCell<Requests>,
    pub(crate) watched: Cell<bool>,
    pub(crate) watchers: RefCell<Vec<u16>>,
    /// The L1 generation of the owner's core when it last used the line.
    pub(crate) generation: Cell<u32>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self {
            exclusive: Cell::new(NOBODY),
            owner: Cell::new(NOBODY),
            ready: Cell::new(0),
            free_at: Cell::new(0),
            claimed: Cell::new(false),
            claim: Cell::new(0),
            locked: Cell::new(0),
            again: Cell::new((NOBODY, 0)),
            clean: Cell::new(false),
            sharers: [const { Cell::new(0) }; WORDS],
            copies: Cell::new(0),
            at_home: Cell::new(false),
            far_streak: Cell::new(0),
            private: Cell::new(false),
            event: Cell::new((u64::MAX, 0)),
            requests: RefCell::new(Requests::default()),
            watched: Cell::new(false),
            watchers: RefCell::new(Vec::new()),
            generation: Cell::new(0),
        }
    }

    /// Returns whether `core` has the only copy.
    #[inline(always)]
    pub(crate) fn owned(&self, core: usize, time: u64) -> bool {
        self.exclusive.get() == core as u16 && self.ready.get() <= time
    }

    /// Returns whether `core` can write without a request.
    #[inline(always)]
    pub(crate) fn writable(&self, core: usize, time: u64) -> bool {
        self.owned(core, time) && !(self.claimed.get() && self.claim.get() <= time)
    }

    /// Returns whether `cpu` of `core` may do another locked operation before the line
    /// leaves; it may once.
    #[inline]
    pub(crate) fn takes_again(&self, cpu: usize, core: usize, time: u64) -> bool {
        let (who, until) = self.again.get();
        let may = who == cpu as u16 && time <= until && self.owned(core, time);
        if may {
            self.again.set((NOBODY, 0));
        }
        may
    }

    /// Returns whether `core` can read without a request.
    #[inline(always)]
    pub(crate) fn readable(&self, core: usize, time: u64) -> bool {
        if self.exclusive.get() == core as u16 {
            return self.ready.get() <= time;
        }
        self.sharers[core / 64].get() >> (core % 64) & 1 == 1
    }

    /// Returns whether no request for it is known, so that none can be granted before one
    /// that is made now has travelled.
    #[inline(always)]
    pub(crate) fn quiet(&self) -> bool {
        self.event.get().0 == u64::MAX && !self.watched.get()
    }

    /// Notes that a request waits until the line is free.
    pub(crate) fn claim(&self) {
        if !self.claimed.replace(true) {
            self.claim.set(self.free_at.get());
        }
    }

    #[inline(always)]
    pub(crate) fn watched(&self) -> bool {
        self.watched.get()
    }

    /// Keeps the line with its owner for the duration of a locked operation.
    #[inline(always)]
    pub(crate) fn lock_until(&self, time: u64) {
        self.locked.set(time.max(self.locked.get()));
        if self.free_at.get() < time {
            self.free_at.set(time);
        }
    }

    pub(crate) fn share(&self, core: usize) {
        let word = &self.sharers[core / 64];
        let old = word.get();
        let new = old | 1 << (core % 64);
        word.set(new);
        self.copies.set(self.copies.get() + u32::from(old != new));
    }

    /// Returns those of 64 cores from `first` on that share the line and are of a range.
    #[inline]
    pub(crate) fn sharers_in(&self, cores: &Range<usize>, first: usize) -> u64 {
        let mut word = self.sharers[first / 64].get();
        if cores.start > first {
            word &= u64::MAX << (cores.start - first);
        }
        if cores.end < first + 64 {
            word &= (1 << (cores.end - first)) - 1;
        }
        word
    }

    /// Returns the number of cores of a range that share the line.
    pub(crate) fn copies_in(&self, cores: Range<usize>) -> u32 {
        (cores.start / 64..cores.end.div_ceil(64))
            .map(|index| self.sharers_in(&cores, index * 64).count_ones())
            .sum()
    }

    /// Returns whether a core of a range shares the line that is not `core`.
    #[inline]
    pub(crate) fn has_other_in(&self, cores: Range<usize>, core: usize) -> bool {
        (cores.start / 64..cores.end.div_ceil(64)).any(|index| {
            let own = if core / 64 == index {
                1 << (core % 64)
            } else {
                0
            };
            self.sharers_in(&cores, index * 64) & !own != 0
        })
    }

    /// Checks that its fields are consistent.
    pub(crate) fn check(&self) -> Result<(), String> {
        let exclusive = self.exclusive.get();
        let sharers = self.copies_in(0..MAX_CORES);
        if sharers != self.copies.get() {
            return Err("the number of copies is wrong".to_owned());
        }
        if exclusive != NOBODY && sharers > 0 {
            return Err(format!(
                "core {exclusive} is the only owner, and {sharers} share"
            ));
        }
        if self.watched.get() == self.watchers.borrow().is_empty() {
            return Err("the mark for watchers is wrong".to_owned());
        }
        Ok(())
    }
}
