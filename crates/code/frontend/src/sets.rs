//! A set-associative table of branches with least-recently-used replacement: a level of the
//! branch target buffer. When a branch was used last is kept outside, for both levels
//! together, so that whether both have it is one look; sets are searched when one is brought
//! in.

/// Marks a place that no entry occupies.
const EMPTY: u32 = u32::MAX;

/// When a branch was used last in each level; 0 when a level does not have it.
pub(crate) type Used = [u64; 2];

/// A table of `sets` times `ways` places.
#[derive(Debug)]
pub(crate) struct Sets {
    /// The number of the level.
    level: usize,
    ways: usize,
    mask: u32,
    places: Vec<u32>,
}

impl Sets {
    /// Makes an empty table. The number of sets is rounded up to a power of two.
    pub(crate) fn new(level: usize, entries: usize, ways: usize) -> Self {
        let sets = (entries / ways).max(1).next_power_of_two();
        Sets {
            level,
            ways,
            mask: sets as u32 - 1,
            places: vec![EMPTY; sets * ways],
        }
    }

    /// Uses `branch` at `now`, which grows; returns whether it was there. Its set is the low
    /// bits of `hash`. One used at `since` or before is not in the table: so that emptying it
    /// costs nothing, places keep their occupants, which count as old.
    ///
    /// # Panics
    /// When `used` does not have the branch.
    pub(crate) fn touch(
        &mut self,
        branch: u32,
        hash: u32,
        (now, since): (u64, u64),
        used: &mut [Used],
    ) -> bool {
        let last = &mut used[branch as usize][self.level];
        if *last > since {
            *last = now;
            return true;
        }
        let set = (hash & self.mask) as usize;
        let places = &mut self.places[set * self.ways..][..self.ways];
        // It may have been here before the table was emptied.
        let place = match places.iter().position(|&held| held == branch) {
            Some(place) => place,
            None => (0..self.ways)
                .min_by_key(|&place| match places[place] {
                    EMPTY => 0,
                    held => used[held as usize][self.level],
                })
                .expect("a table has at least one way"),
        };
        let victim = std::mem::replace(&mut places[place], branch);
        if victim != EMPTY {
            used[victim as usize][self.level] = 0;
        }
        used[branch as usize][self.level] = now;
        false
    }
}
