//! A set-associative table of numbered things with least-recently-used replacement: both
//! levels of the branch target buffer. Whether a thing is in it is one load; sets are searched
//! when something is brought in.

/// Marks a place that no entry occupies.
const EMPTY: u32 = u32::MAX;

/// A table of `sets` times `ways` places.
#[derive(Debug)]
pub(crate) struct Sets {
    ways: usize,
    mask: u32,
    places: Vec<u32>,
    /// Says when each thing was used last. One used at `since` or before is not in the table.
    used: Vec<u64>,
    /// Says when the table was emptied last. So that emptying costs nothing, places keep their
    /// occupants, which count as old.
    since: u64,
}

impl Sets {
    /// Makes an empty table. The number of sets is rounded up to a power of two.
    pub(crate) fn new(entries: usize, ways: usize) -> Self {
        let sets = (entries / ways).max(1).next_power_of_two();
        Sets {
            ways,
            mask: sets as u32 - 1,
            places: vec![EMPTY; sets * ways],
            used: Vec::new(),
            since: 0,
        }
    }

    /// Uses `thing` at `now`, which grows; returns whether it was there. Its set is the low
    /// bits of `hash`.
    #[inline(always)]
    pub(crate) fn touch(&mut self, thing: u32, hash: u32, now: u64) -> bool {
        match self.used.get_mut(thing as usize) {
            Some(used) if *used > self.since => {
                *used = now;
                true
            }
            _ => {
                self.fill(thing, hash, now);
                false
            }
        }
    }

    #[cold]
    fn fill(&mut self, thing: u32, hash: u32, now: u64) {
        let index = thing as usize;
        if index >= self.used.len() {
            self.used.resize((index + 1).next_multiple_of(1 << 14), 0);
        }
        let set = (hash & self.mask) as usize;
        let places = &mut self.places[set * self.ways..][..self.ways];
        // It may have been here before the table was emptied.
        let place = match places.iter().position(|&held| held == thing) {
            Some(place) => place,
            None => (0..self.ways)
                .min_by_key(|&place| match places[place] {
                    EMPTY => 0,
                    held => self.used[held as usize],
                })
                .expect("a table has at least one way"),
        };
        let victim = std::mem::replace(&mut places[place], thing);
        if victim != EMPTY {
            self.used[victim as usize] = 0;
        }
        self.used[index] = now;
    }

    /// Empties the table at `now`.
    pub(crate) fn clear(&mut self, now: u64) {
        self.since = now;
    }
}
