//! Counts what the front end lost, by kind. Events are counts and not cycles, so
//! penalties can change, or have a band, without another run. Only what fetching takes longer
//! than dispatch depends on the figures of the run, because the larger of two times counts.

use std::ops::{Add, Index, IndexMut, Sub};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An event of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// A branch was taken.
    Taken,
    /// A sixteenth of a cycle by which the code between two taken branches was fetched later
    /// than it could have been dispatched.
    Fetching,
    /// A line missed L1i and hit L2, directly after a redirect.
    L1Redirected,
    /// A line missed L1i and hit L2, and the predictor had run ahead of it.
    L1Streamed,
    /// A line missed L1i and L2, directly after a redirect.
    L2Redirected,
    /// A line missed L1i and L2, and the predictor had run ahead of it.
    L2Streamed,
    /// An instruction came from the decoders: it was not in the micro-op cache.
    Decoded,
    /// Supply changed from the micro-op cache to the decoders.
    DecodeSwitch,
    /// A taken branch was found in the second level of the branch target buffer only.
    TargetSlow,
    /// A direct branch was in no level, and the decoder found its target.
    TargetDecoded,
    /// A conditional branch went the other way.
    Direction,
    /// An indirect branch had another target.
    Indirect,
    /// A return went elsewhere than the return stack said.
    Return,
    /// A return went where the return stack said.
    Returned,
    /// A branch found in the second level only, because the predictors had been flushed.
    FlushedSlow,
    /// A target found by the decoder, because the predictors had been flushed.
    FlushedDecoded,
    /// A misprediction of any kind, because the predictors had been flushed.
    FlushedPrediction,
    /// A barrier that flushes the predictors (IBPB).
    Barrier,
    /// An instruction that enters or leaves the kernel.
    Privilege,
    /// A change of the address space.
    AddressSpace,
    /// Execution went elsewhere without a branch: an interrupt, a fault, a signal.
    Interruption,
}

impl Event {
    /// The number of kinds.
    pub const COUNT: usize = Event::Interruption as usize + 1;

    /// Every event, with the name by which documents know it.
    pub const ALL: [(Event, &'static str); Event::COUNT] = [
        (Event::Taken, "taken_branches"),
        (Event::Fetching, "fetching_sixteenths"),
        (Event::L1Redirected, "l1i_misses_after_redirect"),
        (Event::L1Streamed, "l1i_misses_streamed"),
        (Event::L2Redirected, "l2_misses_after_redirect"),
        (Event::L2Streamed, "l2_misses_streamed"),
        (Event::Decoded, "decoded_instructions"),
        (Event::DecodeSwitch, "decode_switches"),
        (Event::TargetSlow, "btb_second_level"),
        (Event::TargetDecoded, "btb_misses_decoded"),
        (Event::Direction, "conditional_mispredictions"),
        (Event::Indirect, "indirect_mispredictions"),
        (Event::Return, "return_mispredictions"),
        (Event::Returned, "returns_predicted"),
        (Event::FlushedSlow, "flushed_second_level"),
        (Event::FlushedDecoded, "flushed_targets"),
        (Event::FlushedPrediction, "flushed_mispredictions"),
        (Event::Barrier, "barriers"),
        (Event::Privilege, "privilege_changes"),
        (Event::AddressSpace, "address_space_changes"),
        (Event::Interruption, "interruptions"),
    ];
}

/// Predictors of conditional branches that may run beside the first one, alike but for their
/// hashes.
pub const OTHER_HASHES: usize = 3;

/// Counts of every [`Event`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    counts: [u64; Event::COUNT],
    /// Mispredictions of conditional branches under each other hash; all zero unless they were
    /// asked for.
    pub by_hash: [u64; OTHER_HASHES],
}

impl Index<Event> for Events {
    type Output = u64;

    fn index(&self, event: Event) -> &u64 {
        &self.counts[event as usize]
    }
}

impl IndexMut<Event> for Events {
    fn index_mut(&mut self, event: Event) -> &mut u64 {
        &mut self.counts[event as usize]
    }
}

impl Add for Events {
    type Output = Events;

    fn add(mut self, other: Events) -> Events {
        for (sum, more) in self.counts.iter_mut().zip(other.counts) {
            *sum += more;
        }
        for (sum, more) in self.by_hash.iter_mut().zip(other.by_hash) {
            *sum += more;
        }
        self
    }
}

impl Sub for Events {
    type Output = Events;

    /// Returns the events since `other`.
    ///
    /// # Panics
    /// In debug builds, when `other` is not the earlier of the two.
    fn sub(mut self, other: Events) -> Events {
        for (rest, less) in self.counts.iter_mut().zip(other.counts) {
            *rest -= less;
        }
        for (rest, less) in self.by_hash.iter_mut().zip(other.by_hash) {
            *rest -= less;
        }
        self
    }
}

impl Events {
    /// Returns the event's count by its name in documents.
    pub fn by_name(read: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        let mut events = Events::default();
        for (event, name) in Event::ALL {
            events[event] = read(name)?;
        }
        Some(events)
    }

    /// Returns these events as they are, and then, if other hashes were asked for, as they
    /// would be under each.
    pub fn under_each_hash(self) -> impl Iterator<Item = Self> {
        let others = self.by_hash.into_iter().filter(|&wrong| wrong > 0);
        std::iter::once(self).chain(others.map(move |wrong| {
            let mut events = self;
            events[Event::Direction] = wrong;
            events
        }))
    }
}

/// Running [`Events`] that one thread adds to and any thread may read.
#[derive(Debug)]
pub struct EventTally {
    counts: [AtomicU64; Event::COUNT],
    by_hash: [AtomicU64; OTHER_HASHES],
}

impl Default for EventTally {
    fn default() -> Self {
        EventTally {
            counts: [const { AtomicU64::new(0) }; Event::COUNT],
            by_hash: [const { AtomicU64::new(0) }; OTHER_HASHES],
        }
    }
}

impl EventTally {
    /// Counts an event `n` times. Only one thread may add: two would lose counts.
    #[inline(always)]
    pub fn add(&self, event: Event, n: u64) {
        let count = &self.counts[event as usize];
        count.store(count.load(Relaxed) + n, Relaxed);
    }

    /// Counts a misprediction under the other hash with this number, as [`add`](Self::add)
    /// does.
    pub(crate) fn mispredicted(&self, hash: usize) {
        let count = &self.by_hash[hash];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }

    /// Returns the counts so far.
    pub fn read(&self) -> Events {
        Events {
            counts: std::array::from_fn(|index| self.counts[index].load(Relaxed)),
            by_hash: std::array::from_fn(|index| self.by_hash[index].load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_place_and_name() {
        for (index, (event, name)) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, index, "{name}");
        }
        let events = Events::by_name(|name| Some(name.len() as u64)).unwrap();
        assert_eq!(events[Event::Barrier], 8);
        assert_eq!(Events::by_name(|_| None), None);
    }

    #[test]
    fn a_tally_adds_up() {
        let tally = EventTally::default();
        tally.add(Event::Taken, 2);
        tally.add(Event::Taken, 3);
        let events = tally.read();
        assert_eq!(events[Event::Taken], 5);
        assert_eq!(events - events, Events::default());
        assert_eq!((events + events)[Event::Taken], 10);
    }

    #[test]
    fn other_hashes_stand_for_mispredictions_only() {
        let tally = EventTally::default();
        tally.add(Event::Taken, 9);
        tally.add(Event::Direction, 5);
        assert_eq!(tally.read().under_each_hash().count(), 1);
        for hash in [0, 1, 1, 2] {
            tally.mispredicted(hash);
        }
        let each: Vec<_> = tally.read().under_each_hash().collect();
        let wrong = each.iter().map(|events| events[Event::Direction]);
        assert_eq!(wrong.collect::<Vec<_>>(), [5, 1, 2, 1]);
        assert!(each.iter().all(|events| events[Event::Taken] == 9));
        let sum = tally.read() + tally.read();
        assert_eq!(sum.by_hash, [2, 4, 2]);
        assert_eq!((sum - tally.read()).by_hash, [1, 2, 1]);
    }
}
