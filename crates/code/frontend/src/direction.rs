//! The predictor of conditional branches: a table of counters by address, and tagged tables
//! by address and path, each with a longer path than the one before, of which the longest
//! that knows the branch decides (TAGE: A. Seznec and P. Michaud, "A case for (partially)
//! TAgged GEometric history length branch prediction", JILP 2006). As on Intel's cores, by
//! "Half&Half" (H. Yavarzadeh et al., S&P 2023), the path consists of taken branches only.

/// The taken branches before now, two bits shifted in for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path([u64; 3]);

impl Path {
    /// Adds a taken branch.
    #[inline(always)]
    pub(crate) fn push(&mut self, branch: u64, target: u64) {
        let footprint = (branch ^ branch >> 9 ^ target << 3 ^ target >> 5) & 0xffff;
        let [a, b, c] = self.0;
        self.0 = [a << 2 ^ footprint, b << 2 | a >> 62, c << 2 | b >> 62];
    }

    /// Returns a hash of the last `branches` of the path, 96 at most.
    #[inline(always)]
    pub(crate) fn hash(&self, branches: u32) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let bits = (2 * branches).min(192);
        let low = |word: u64, bits: u32| {
            if bits >= 64 {
                word
            } else {
                word & ((1 << bits) - 1)
            }
        };
        let mut hash = low(self.0[0], bits).wrapping_mul(ODD);
        if bits > 64 {
            hash = (hash ^ hash >> 29 ^ low(self.0[1], bits - 64)).wrapping_mul(ODD);
        }
        if bits > 128 {
            hash = (hash ^ hash >> 29 ^ low(self.0[2], bits - 128)).wrapping_mul(ODD);
        }
        hash ^ hash >> 32
    }
}

/// An entry of a tagged table.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    /// Taken when 0 or more; from -4 to 3.
    counter: i8,
    useful: u8,
}

/// The tables.
#[derive(Debug)]
pub(crate) struct Direction {
    /// Taken when 2 or more; from 0 to 3.
    base: Vec<u8>,
    tables: Vec<(u32, Vec<Entry>)>,
    /// Counts allocations, to age what is useful.
    allocations: u32,
}

/// How many tagged tables are looked at, at most.
const TABLES: usize = 4;

impl Direction {
    /// Makes tables of `base` counters, and of `tagged` entries for each path length. Sizes
    /// are rounded up to powers of two.
    pub(crate) fn new(base: usize, tagged: usize, lengths: &[u32]) -> Self {
        let tagged = tagged.max(1).next_power_of_two();
        Direction {
            base: vec![1; base.max(1).next_power_of_two()],
            tables: lengths
                .iter()
                .take(TABLES)
                .map(|&length| (length, vec![Entry::default(); tagged]))
                .collect(),
            allocations: 0,
        }
    }

    /// Predicts the branch at `address` and learns how it went; returns whether it was right.
    pub(crate) fn branch(&mut self, address: u64, path: &Path, taken: bool) -> bool {
        let mut places = [(0, 0); TABLES];
        let mut provider = None;
        for (index, (length, table)) in self.tables.iter().enumerate() {
            let hash = path.hash(*length) ^ address.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20;
            let place = (hash ^ hash >> 17) as usize & (table.len() - 1);
            let tag = (hash >> 23 ^ address >> 1) as u16 | 1;
            places[index] = (place, tag);
            if table[place].tag == tag {
                provider = Some(index);
            }
        }
        let base = (address ^ address >> 13) as usize & (self.base.len() - 1);
        let by_base = self.base[base] >= 2;
        let predicted = match provider {
            Some(index) => {
                let entry = &mut self.tables[index].1[places[index].0];
                let predicted = entry.counter >= 0;
                // It is useful where the simpler table would have been wrong.
                if predicted != by_base {
                    entry.useful = match predicted == taken {
                        true => (entry.useful + 1).min(3),
                        false => entry.useful.saturating_sub(1),
                    };
                }
                entry.counter = match taken {
                    true => (entry.counter + 1).min(3),
                    false => (entry.counter - 1).max(-4),
                };
                predicted
            }
            None => by_base,
        };
        if provider.is_none() {
            let counter = &mut self.base[base];
            *counter = if taken {
                (*counter + 1).min(3)
            } else {
                counter.saturating_sub(1)
            };
        }
        if predicted != taken {
            self.allocate(provider.map_or(0, |index| index + 1), &places, taken);
        }
        predicted == taken
    }

    /// Learns that the branch at `address` has always gone one way so far.
    pub(crate) fn always(&mut self, address: u64, taken: bool) {
        let base = (address ^ address >> 13) as usize & (self.base.len() - 1);
        self.base[base] = if taken { 3 } else { 0 };
    }

    /// Gives the branch an entry with a longer path.
    #[cold]
    fn allocate(&mut self, from: usize, places: &[(usize, u16); TABLES], taken: bool) {
        let mut given = false;
        for ((_, table), &(place, tag)) in self.tables.iter_mut().zip(places).skip(from) {
            let entry = &mut table[place];
            if entry.useful == 0 {
                *entry = Entry {
                    tag,
                    counter: if taken { 0 } else { -1 },
                    useful: 0,
                };
                given = true;
                break;
            }
        }
        if !given {
            for ((_, table), &(place, _)) in self.tables.iter_mut().zip(places).skip(from) {
                table[place].useful -= 1;
            }
        }
        self.allocations += 1;
        if self.allocations.is_multiple_of(1 << 18) {
            for (_, table) in &mut self.tables {
                table.iter_mut().for_each(|entry| entry.useful /= 2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(outcomes: impl Iterator<Item = bool>) -> usize {
        let mut direction = Direction::new(8192, 2048, &[16, 32, 64]);
        let mut path = Path::default();
        outcomes
            .filter(|&taken| {
                let right = direction.branch(0x40_1000, &path, taken);
                // What lies between distinguishes the two ways.
                path.push(0x40_1000, if taken { 0x40_2000 } else { 0x40_1004 });
                !right
            })
            .count()
    }

    #[test]
    fn constants_and_patterns_are_learnt() {
        assert!(wrong((0..1000).map(|_| true)) <= 2);
        assert!(wrong((0..1000).map(|_| false)) <= 2);
        assert!(wrong((0..10_000).map(|n| n % 2 == 0)) < 30);
        assert!(wrong((0..10_000).map(|n| n % 9 == 0)) < 100);
    }

    #[test]
    fn a_coin_is_not_predicted() {
        let mut state = 1_u64;
        let coin = (0..10_000).map(move |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 40 & 1 == 1
        });
        let wrong = wrong(coin);
        assert!((4500..5500).contains(&wrong), "{wrong}");
    }

    #[test]
    fn a_path_is_as_long_as_it_is_said_to_be() {
        let path = |first: u64| {
            let mut path = Path::default();
            path.push(first, 0);
            for n in 0..40 {
                path.push(0x1000 + 4 * n, 0x2000);
            }
            path
        };
        assert_ne!(path(8).hash(64), path(16).hash(64));
        assert_eq!(path(8).hash(16), path(16).hash(16));
    }
}
