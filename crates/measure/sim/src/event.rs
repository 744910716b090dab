//! The queue of future events, ordered by time and then by when they were
//! added.
//!
//! It only stores; whether an entry is still valid when it is due is
//! decided by the engine (by the number that [`Queue::push`] returns).

use std::cell::{Cell, UnsafeCell};

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

/// The queue. Entries are 128-bit keys: time, number, kind, target.
pub(crate) struct Queue {
    /// The latest first, so that the earliest is taken from the end: most new
    /// entries are among the next to be due, and are inserted there.
    entries: UnsafeCell<Vec<u128>>,
    seq: Cell<u64>,
    /// Time of the earliest entry: a CPU may run until then without
    /// synchronisation.
    horizon: Cell<u64>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            entries: UnsafeCell::new(Vec::with_capacity(1024)),
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
        // A search from the end is faster where it ends soon, and it does.
        let (far, near) = entries.split_at(entries.len().saturating_sub(NEAR));
        let place = match near.iter().rposition(|&entry| entry > key) {
            Some(before) => far.len() + before + 1,
            None => far.partition_point(|&entry| entry > key),
        };
        entries.insert(place, key);
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
        let is_later = |entry: &u128| entry >> SEQ_SHIFT > key >> SEQ_SHIFT;
        let place = entries.partition_point(is_later);
        if entries
            .get(place)
            .is_some_and(|entry| entry >> SEQ_SHIFT == key >> SEQ_SHIFT)
        {
            entries.remove(place);
            self.note_horizon();
        }
    }

    /// Notes when the earliest entry is due.
    #[inline(always)]
    fn note_horizon(&self) {
        // SAFETY: as in `push`.
        let entries = unsafe { &*self.entries.get() };
        self.horizon
            .set(entries.last().map_or(u64::MAX, |key| (key >> 64) as u64));
    }

    /// Takes the earliest entry.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Event> {
        // SAFETY: as in `push`.
        let entries = unsafe { &mut *self.entries.get() };
        let key = entries.pop()?;
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
        let rng = crate::rng::Rng::new(2);
        let queue = Queue::new();
        let mut expected = std::collections::BTreeSet::new();
        for round in 0..500 {
            for _ in 0..rng.below(20) {
                let time = round + rng.below(1 << rng.below(12)) as u64;
                expected.insert((time, queue.push(time, Kind::Cpu, 0)));
            }
            for _ in 0..rng.below(20) {
                let horizon = expected.first().map_or(u64::MAX, |(time, _)| *time);
                assert_eq!(queue.horizon(), horizon);
                let event = queue.pop().map(|event| (event.time, event.seq));
                assert_eq!(event, expected.pop_first());
            }
        }
    }
}
