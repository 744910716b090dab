//! The stores of one CPU that are not visible yet, oldest first.
//!
//! Only what is kept; when a store becomes visible is decided in `drain`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// One store, or several in a row to one place on x86, which become visible
/// together: then the value is that of the last.
#[derive(Clone, Copy)]
pub(crate) struct Store {
    pub(crate) address: usize,
    pub(crate) size: u8,
    pub(crate) value: u64,
    pub(crate) line: usize,
    /// Counts how many there are.
    pub(crate) times: u16,
    /// Says whether it waits for all stores before it.
    pub(crate) last: bool,
    /// Says whether no store before it has the same line.
    pub(crate) first: bool,
    /// Says whether its line is its CPU's own, which no other core can take.
    pub(crate) settled: bool,
    /// The core for which its line has been requested: the CPU may have been
    /// moved to another since.
    pub(crate) asked: Option<u16>,
    /// The time when the requested line arrives, once that is known.
    pub(crate) comes: u64,
}

impl Store {
    /// Returns whether its line may still have to be requested before its turn.
    pub(crate) fn may_ask(&self) -> bool {
        self.first && self.asked.is_none() && !self.settled
    }
}

const REMAINDERS: usize = 32;

/// Stores of one CPU that are not visible yet, oldest first.
#[derive(Default)]
pub(crate) struct StoreBuffer {
    pub(crate) len: Cell<usize>,
    /// Number of stores that may have to request their lines before their turn.
    pub(crate) may_ask: Cell<usize>,
    /// Number of stores to lines of each remainder: most lookups find none.
    pub(crate) lines: [Cell<u16>; REMAINDERS],
    pub(crate) stores: RefCell<VecDeque<Store>>,
    /// The line that a read of its CPU waits for ([`crate::cpu::Phase::Fill`]).
    pub(crate) awaited: Cell<usize>,
}

impl StoreBuffer {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Returns whether a store to this line may be waiting.
    #[inline(always)]
    pub(crate) fn may_have(&self, line: usize) -> bool {
        self.lines[line % REMAINDERS].get() > 0
    }

    /// Returns whether a store to this line waits.
    pub(crate) fn has(&self, line: usize) -> bool {
        if !self.may_have(line) {
            return false;
        }
        let stores = self.stores.borrow();
        stores.iter().rev().any(|store| store.line == line)
    }

    /// Adds so many stores to the youngest, if it has the same place. Returns
    /// whether it has.
    #[inline(always)]
    pub(crate) fn repeat(&self, address: usize, size: u8, value: u64, times: u16) -> bool {
        let mut stores = self.stores.borrow_mut();
        match stores.back_mut() {
            Some(last) if last.address == address && last.size == size => {
                last.value = value;
                last.times += times;
                self.len.set(self.len.get() + usize::from(times));
                true
            }
            _ => false,
        }
    }

    /// Returns until when further stores to the youngest's place would change nothing
    /// but its value: until the oldest's line comes. None if they would.
    #[inline]
    pub(crate) fn waits_until(&self, x86: bool, address: usize, size: u8) -> Option<u64> {
        let stores = self.stores.borrow();
        let (oldest, youngest) = (stores.front()?, stores.back()?);
        let same = youngest.address == address && youngest.size == size;
        (x86 && same && self.asks_nothing() && oldest.asked.is_some()).then_some(oldest.comes)
    }

    /// Returns the line of the oldest store, which is visible first.
    pub(crate) fn oldest_line(&self) -> Option<usize> {
        self.stores.borrow().front().map(|store| store.line)
    }

    pub(crate) fn push(&self, store: Store) {
        self.count(0, store.may_ask());
        let lines = &self.lines[store.line % REMAINDERS];
        lines.set(lines.get() + 1);
        self.stores.borrow_mut().push_back(store);
        self.len.set(self.len.get() + 1);
    }

    /// Takes a store out; the next one to its line is the first from now on.
    pub(crate) fn remove(&self, place: usize) -> Option<Store> {
        let mut stores = self.stores.borrow_mut();
        let removed = match place {
            0 => stores.pop_front()?,
            _ => stores.remove(place)?,
        };
        self.len.set(self.len.get() - usize::from(removed.times));
        self.count(usize::from(removed.may_ask()), false);
        let lines = &self.lines[removed.line % REMAINDERS];
        lines.set(lines.get() - 1);
        if removed.first && self.may_have(removed.line) {
            let mut after = stores.iter_mut().skip(place);
            if let Some(next) = after.find(|store| store.line == removed.line) {
                next.first = true;
                self.count(0, next.may_ask());
            }
        }
        Some(removed)
    }

    /// Returns whether no store may have to request its line before its turn.
    #[inline(always)]
    pub(crate) fn asks_nothing(&self) -> bool {
        self.may_ask.get() == 0
    }

    /// Changes a store without changing its line.
    pub(crate) fn change(&self, place: usize, change: impl FnOnce(&mut Store)) {
        let store = &mut self.stores.borrow_mut()[place];
        let before = store.may_ask();
        change(store);
        self.count(usize::from(before), store.may_ask());
    }

    /// Notes that its CPU is on another core, which has none of its lines.
    pub(crate) fn moved(&self) {
        let places = self.stores.borrow().len();
        for place in 0..places {
            self.change(place, |store| store.settled = false);
        }
    }

    /// Notes that the line which a store has requested arrives at `done`.
    pub(crate) fn comes(&self, line: usize, done: u64) {
        let mut stores = self.stores.borrow_mut();
        if let Some(store) = stores
            .iter_mut()
            .find(|store| store.line == line && store.asked.is_some() && store.comes == u64::MAX)
        {
            store.comes = done;
        }
    }

    /// Returns whether a line that one of the stores has requested is on its way at `now`.
    pub(crate) fn is_coming(&self, line: usize, now: u64) -> bool {
        let coming =
            |store: &Store| store.line == line && store.asked.is_some() && store.comes > now;
        self.may_have(line) && self.stores.borrow().iter().any(coming)
    }

    pub(crate) fn count(&self, less: usize, more: bool) {
        self.may_ask
            .set(self.may_ask.get() - less + usize::from(more));
    }
}

/// The result of a lookup in the store buffer.
pub(crate) enum Forward {
    /// No store covers its bytes.
    Nothing,
    /// A store has its value.
    Value(u64),
    /// A store covers a part of it.
    Part,
}

/// Writes the low `size` bytes of `value`, none of them if `size` is 0.
///
/// # Safety
/// `address` is that of an atomic of this size in the engine's arena.
pub(crate) unsafe fn write(address: usize, size: u8, value: u64) {
    // The place is an `UnsafeCell` in memory that only this thread uses.
    // SAFETY: promised by the caller; the size is that of the atomic, or of a
    // part of a lock word, at its natural alignment.
    unsafe {
        match size {
            // The code writes by itself.
            0 => {}
            1 => (address as *mut u8).write(value as u8),
            2 => (address as *mut u16).write(value as u16),
            4 => (address as *mut u32).write(value as u32),
            _ => (address as *mut u64).write(value),
        }
    }
}

/// Reads `size` bytes.
///
/// # Safety
/// The same conditions as for [`write()`].
pub(crate) unsafe fn read(address: usize, size: u8) -> u64 {
    // SAFETY: as in `write`.
    unsafe {
        match size {
            1 => u64::from((address as *const u8).read()),
            2 => u64::from((address as *const u16).read()),
            4 => u64::from((address as *const u32).read()),
            _ => (address as *const u64).read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn what_is_counted_is_what_is_there() {
        let rng = Rng::new(1);
        let buffer = StoreBuffer::default();
        for _ in 0..20_000 {
            let places = buffer.stores.borrow().len();
            let place = rng.below(places + 1);
            if place == places && place < 56 {
                let line = rng.below(80);
                if rng.below(4) == 0 {
                    let last = buffer.stores.borrow().back().map(|store| store.address);
                    assert_eq!(buffer.repeat(line * 64, 4, 1, 1), last == Some(line * 64));
                    assert!(!buffer.repeat(line * 64, 2, 1, 1));
                    last.inspect(|&address| assert!(buffer.repeat(address, 4, 1, 1)));
                    continue;
                }
                buffer.push(Store {
                    address: line * 64,
                    size: 4,
                    value: 0,
                    line,
                    times: 1,
                    last: true,
                    first: !buffer.has(line),
                    settled: false,
                    asked: None,
                    comes: u64::MAX,
                });
            } else if rng.below(3) == 0 {
                buffer.remove(place.min(places - 1));
            } else if rng.below(20) == 0 {
                buffer.moved();
            } else {
                buffer.change(place.min(places - 1), |store| match rng.below(2) {
                    0 => store.settled = true,
                    _ => store.asked = Some(3),
                });
            }
            let stores = buffer.stores.borrow();
            for (place, store) in stores.iter().enumerate() {
                let before = stores.range(..place).any(|one| one.line == store.line);
                assert_eq!(store.first, !before);
                assert!(buffer.has(store.line));
            }
            let may_ask = stores.iter().filter(|store| store.may_ask()).count();
            assert_eq!(buffer.may_ask.get(), may_ask);
            let times = stores.iter().map(|store| usize::from(store.times));
            assert_eq!(buffer.len(), times.sum::<usize>());
        }
    }
}
