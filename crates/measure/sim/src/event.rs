//! The queue of future events, ordered by time and then by when they were
//! added.
//!
//! It only stores; whether an entry is still valid when it is due is
//! decided by the engine (by the number that [`Queue::push`] returns).

use std::cell::{Cell, UnsafeCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A CPU continues.
    Cpu = 0,
    /// An entry of a CPU's store buffer has its line.
    Drain = 1,
    /// A line can be granted to a request that waits for it.
    Line = 2,
    /// The time slice of a physical CPU ends.
    Slice = 3,
    /// A virtual CPU has been pausing for as long as the hypervisor lets it.
    Ple = 4,
    /// A halted CPU has been woken.
    Wake = 5,
    /// The watchdog checks for progress.
    Watchdog = 6,
    /// CPUs without a thread look for one.
    Tick = 7,
}

const TARGET_BITS: u32 = 20;
const SEQ_SHIFT: u32 = 24;

/// Counts how many of the next entries to be due are searched one by one.
const NEAR: usize = 8;
/// The most entries that one is inserted behind; it is a late one where more are due before it.
const BEHIND: usize = 64;
/// The number of late entries that are taken over when none is left that is due soon.
const TAKEN: usize = 32;

/// The largest number of a CPU or line.
pub(crate) const MAX_TARGET: usize = (1 << TARGET_BITS) - 1;

/// One entry, unpacked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) target: usize,
}

/// Holds the entries, which are 128-bit keys: time, number, kind, target.
struct Entries {
    /// Those due before all that are late, the latest first, so that the earliest is taken
    /// from the end: most new entries are among the next to be due, and are inserted there.
    /// It is empty only if the other is.
    soon: Vec<u128>,
    /// The others: thousands of waits that end by time, and of which most mean nothing
    /// any more when they are due.
    late: BinaryHeap<Reverse<u128>>,
}

impl Entries {
    #[inline]
    fn insert(&mut self, key: u128) {
        if self.late.peek().is_some_and(|Reverse(first)| key > *first) {
            return self.late.push(Reverse(key));
        }
        // A search from the end is faster where it ends soon, and it does.
        let (far, near) = self.soon.split_at(self.soon.len().saturating_sub(NEAR));
        let place = match near.iter().rposition(|&entry| entry > key) {
            Some(before) => far.len() + before + 1,
            None => far.partition_point(|&entry| entry > key),
        };
        if place + BEHIND < self.soon.len() {
            self.is_late(place, key);
        } else {
            self.soon.insert(place, key);
        }
    }

    /// Moves what is due after a late entry to the late ones, with it.
    #[cold]
    fn is_late(&mut self, place: usize, key: u128) {
        self.late.extend(self.soon.drain(..place).map(Reverse));
        self.late.push(Reverse(key));
    }

    #[inline]
    fn take(&mut self) -> Option<u128> {
        let key = self.soon.pop()?;
        if self.soon.is_empty() {
            self.take_over();
        }
        Some(key)
    }

    /// Moves the first of the late entries to those that are due soon, of which none is left.
    #[cold]
    fn take_over(&mut self) {
        let late = std::iter::from_fn(|| self.late.pop().map(|Reverse(key)| key));
        self.soon.extend(late.take(TAKEN));
        self.soon.reverse();
    }

    /// Removes the entry of this time and number, if it is there.
    fn remove(&mut self, key: u128) {
        let is_same = |entry: u128| entry >> SEQ_SHIFT == key >> SEQ_SHIFT;
        let is_later = |entry: &u128| *entry >> SEQ_SHIFT > key >> SEQ_SHIFT;
        let place = self.soon.partition_point(is_later);
        if self.soon.get(place).is_some_and(|&entry| is_same(entry)) {
            self.soon.remove(place);
            if self.soon.is_empty() {
                self.take_over();
            }
        } else {
            self.late.retain(|&Reverse(entry)| !is_same(entry));
        }
    }
}

/// Hands out future events in their order.
pub(crate) struct Queue {
    entries: UnsafeCell<Entries>,
    seq: Cell<u64>,
    /// Time of the earliest entry: a CPU may run until then without
    /// synchronisation.
    horizon: Cell<u64>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            entries: UnsafeCell::new(Entries {
                soon: Vec::with_capacity(1024),
                late: BinaryHeap::new(),
            }),
            seq: Cell::new(0),
            horizon: Cell::new(u64::MAX),
        }
    }

    #[inline(always)]
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon.get()
    }

    /// Adds an entry and returns its number.
    #[inline]
    pub(crate) fn push(&self, time: u64, kind: Kind, target: usize) -> u64 {
        debug_assert!(target <= MAX_TARGET);
        let seq = self.seq.get() + 1;
        self.seq.set(seq);
        let low = (seq << SEQ_SHIFT) | ((kind as u64) << TARGET_BITS) | target as u64;
        let key = (u128::from(time) << 64) | u128::from(low);
        // SAFETY: the entries are borrowed only within these methods, which
        // call nothing that could re-enter them.
        let entries = unsafe { &mut *self.entries.get() };
        entries.insert(key);
        if time < self.horizon.get() {
            self.horizon.set(time);
        }
        seq
    }

    /// Removes the entry of this time and number, if it is there. What means nothing any
    /// more must not stay for long: an entry that is due late is inserted behind all of them.
    pub(crate) fn remove(&self, time: u64, seq: u64) {
        // SAFETY: as in `push`.
        let entries = unsafe { &mut *self.entries.get() };
        let key = (u128::from(time) << 64) | u128::from(seq << SEQ_SHIFT);
        entries.remove(key);
        self.note_horizon();
    }

    /// Notes when the earliest entry is due.
    #[inline(always)]
    fn note_horizon(&self) {
        // SAFETY: as in `push`.
        let entries = unsafe { &*self.entries.get() };
        self.horizon.set(
            entries
                .soon
                .last()
                .map_or(u64::MAX, |key| (key >> 64) as u64),
        );
    }

    /// Takes the earliest entry.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Event> {
        // SAFETY: as in `push`.
        let entries = unsafe { &mut *self.entries.get() };
        let key = entries.take()?;
        self.note_horizon();
        let low = key as u64;
        Some(Event {
            time: (key >> 64) as u64,
            seq: low >> SEQ_SHIFT,
            kind: match (low >> TARGET_BITS) & 0xf {
                0 => Kind::Cpu,
                1 => Kind::Drain,
                2 => Kind::Line,
                3 => Kind::Slice,
                4 => Kind::Ple,
                5 => Kind::Wake,
                6 => Kind::Watchdog,
                _ => Kind::Tick,
            },
            target: (low as usize) & MAX_TARGET,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_out_by_time_then_by_number() {
        let queue = Queue::new();
        queue.push(5, Kind::Line, 7);
        let first = queue.push(3, Kind::Cpu, 1);
        queue.push(3, Kind::Drain, 2);
        assert_eq!(queue.horizon(), 3);
        let event = queue.pop().unwrap();
        assert_eq!((event.seq, event.kind, event.target), (first, Kind::Cpu, 1));
        assert_eq!(queue.pop().unwrap().kind, Kind::Drain);
        assert_eq!(queue.horizon(), 5);
        let last = queue.pop().unwrap();
        assert_eq!((last.time, last.kind, last.target), (5, Kind::Line, 7));
        assert!(queue.pop().is_none());
        assert_eq!(queue.horizon(), u64::MAX);
    }

    #[test]
    fn what_was_removed_does_not_come() {
        let queue = Queue::new();
        let later = queue.push(7, Kind::Slice, 1);
        let other = queue.push(7, Kind::Slice, 0);
        let first = queue.push(2, Kind::Cpu, 0);
        queue.remove(7, first);
        queue.remove(2, first);
        assert_eq!(queue.horizon(), 7);
        queue.remove(2, first);
        queue.remove(7, later);
        assert_eq!(queue.pop().map(|event| event.seq), Some(other));
        assert!(queue.pop().is_none());
        assert_eq!(queue.horizon(), u64::MAX);
        queue.remove(7, other);
    }

    #[test]
    fn many_come_out_in_order() {
        // Near ones only, and with some that are due long after most of them.
        for longest in [12, 30] {
            let rng = crate::rng::Rng::new(2);
            let queue = Queue::new();
            let mut expected = std::collections::BTreeSet::new();
            for round in 0..500 {
                for _ in 0..rng.below(20) {
                    let time = round + rng.below(1 << rng.below(longest)) as u64;
                    expected.insert((time, queue.push(time, Kind::Cpu, 0)));
                }
                for _ in 0..rng.below(3).min(expected.len()) {
                    let place = rng.below(expected.len());
                    let (time, seq) = *expected.iter().nth(place).unwrap();
                    queue.remove(time, seq);
                    expected.remove(&(time, seq));
                }
                for _ in 0..rng.below(20) {
                    let horizon = expected.first().map_or(u64::MAX, |(time, _)| *time);
                    assert_eq!(queue.horizon(), horizon);
                    let event = queue.pop().map(|event| (event.time, event.seq));
                    assert_eq!(event, expected.pop_first());
                }
            }
            while let Some(event) = queue.pop() {
                assert_eq!(Some((event.time, event.seq)), expected.pop_first());
            }
            assert!(expected.is_empty());
        }
    }
}
