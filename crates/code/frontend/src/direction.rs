//! The predictor of conditional branches: a table of counters by address, and tagged tables
//! by address and path, each with a longer path than the one before, of which the longest
//! that knows the branch decides (TAGE: A. Seznec and P. Michaud, "A case for (partially)
//! TAgged GEometric history length branch prediction", JILP 2006). As on Intel's cores, by
//! "Half&Half" (H. Yavarzadeh et al., S&P 2023), the path consists of taken branches only.

use crate::events::OTHER_HASHES;

/// The most tagged tables that there may be.
pub(crate) const TABLES: usize = 4;

/// Says how addresses and paths become places in the tables. How a processor's do is not
/// published, so what depends on it is chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash {
    /// An odd factor.
    odd: u64,
    /// Bits by which an address is folded for the base table.
    fold: u32,
    /// Bits by which a taken branch's address, and twice its target, are moved for the path.
    path: [u32; 3],
}

impl Hash {
    /// The hash of every figure that is not a band.
    pub(crate) const FIRST: Hash = Hash {
        odd: 0x9e37_79b9_7f4a_7c15,
        fold: 13,
        path: [9, 3, 5],
    };

    /// Others: factors that were drawn once, and other folds.
    pub(crate) const OTHERS: [Hash; OTHER_HASHES] = [
        Hash {
            odd: 0xd1b5_4a32_d192_ed03,
            fold: 11,
            path: [7, 2, 6],
        },
        Hash {
            odd: 0xaef1_7502_108e_f2d9,
            fold: 15,
            path: [11, 4, 3],
        },
        Hash {
            odd: 0xf135_7aea_2e62_a9c5,
            fold: 17,
            path: [6, 5, 8],
        },
    ];
}

/// The taken branches before now. For each path length there is a register into which each
/// taken branch is shifted, by so many bits that one as long ago as the length has left it.
/// A length above 64 has a second register, for what left the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    registers: [u64; TABLES],
    beyond: [u64; TABLES],
    shifts: [u32; TABLES],
    masks: [u64; TABLES],
    /// The path of each length as its hash needs it.
    mixed: [u64; TABLES],
    by: Hash,
}

impl Path {
    /// Makes an empty path for these lengths, 128 at most each.
    pub(crate) fn new(lengths: &[u32], by: Hash) -> Self {
        let length = |index: usize| lengths.get(index).copied().unwrap_or(64).clamp(1, 128);
        Path {
            registers: [0; TABLES],
            beyond: [0; TABLES],
            shifts: std::array::from_fn(|index| (64 / length(index)).clamp(1, 32)),
            masks: std::array::from_fn(|index| match length(index) {
                128.. => u64::MAX,
                longer @ 65.. => (1 << (longer - 64)) - 1,
                _ => 0,
            }),
            mixed: [0; TABLES],
            by,
        }
    }

    /// Adds a taken branch.
    #[inline(always)]
    pub(crate) fn push(&mut self, branch: u64, target: u64) {
        let [from, up, down] = self.by.path;
        let footprint = (branch ^ branch >> from ^ target << up ^ target >> down) & 0xffff;
        for index in 0..TABLES {
            let register = self.registers[index];
            self.beyond[index] = self.beyond[index] << 1 | register >> 63;
            self.registers[index] = register << self.shifts[index] ^ footprint;
            let beyond = (self.beyond[index] & self.masks[index]).rotate_left(27);
            self.mixed[index] = self.registers[index] ^ beyond;
        }
    }

    /// Returns a hash of the path of the length with this number, and of `address`.
    #[inline(always)]
    pub(crate) fn hash(&self, index: usize, address: u64) -> u64 {
        let hash = (self.mixed[index] ^ address << 17).wrapping_mul(self.by.odd);
        hash ^ hash >> 32
    }
}

/// An entry of a tagged table.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    /// Its counter, taken when 4 or more, from 0 to 7, and how useful it is, from 0 to 3, times
    /// 8. In one number, so that one look into a table says what becomes of both.
    state: u8,
}

/// An entry that has just been given to a branch, by which way it went.
const NEW: [u8; 2] = [3, 4];

/// What becomes of an entry's state, by the state times 4, and 2 if the branch was taken, and 1
/// if the base predictor says taken.
static NEXT: [u8; 128] = next_states();

const fn next_states() -> [u8; 128] {
    let mut next = [0; 128];
    let mut index = 0;
    while index < next.len() {
        let (counter, mut useful) = ((index >> 2) % 8, (index >> 5) as u8);
        let (taken, by_base) = (index & 2 != 0, index & 1 != 0);
        let predicted = counter >= 4;
        // It is useful where the simpler table would have been wrong.
        if predicted != by_base {
            useful = match predicted == taken {
                true if useful < 3 => useful + 1,
                false if useful > 0 => useful - 1,
                _ => useful,
            };
        }
        let counter = match taken {
            true if counter < 7 => counter + 1,
            false if counter > 0 => counter - 1,
            _ => counter,
        };
        next[index] = useful << 3 | counter as u8;
        index += 1;
    }
    next
}

/// Holds the tables of the predictor.
#[derive(Debug)]
pub(crate) struct Direction {
    /// Taken when 2 or more; from 0 to 3.
    base: Vec<u8>,
    /// All tables, place by place. A table that is not there is never matched: no tag is 0.
    tagged: Vec<[Entry; TABLES]>,
    /// How many tables there are.
    tables: usize,
    /// Counts allocations, to age what is useful.
    allocations: u32,
    hash: Hash,
}

impl Direction {
    /// Makes tables of `base` counters, and of `tagged` entries for each of `tables` path
    /// lengths. Sizes are rounded up to powers of two.
    pub(crate) fn new(base: usize, tagged: usize, tables: usize, hash: Hash) -> Self {
        Direction {
            base: vec![1; base.max(1).next_power_of_two()],
            tagged: vec![[Entry::default(); TABLES]; tagged.max(1).next_power_of_two()],
            tables: tables.min(TABLES),
            allocations: 0,
            hash,
        }
    }

    /// Returns where a branch is in the table with this number, and its tag there.
    #[inline(always)]
    fn place(&self, index: usize, address: u64, path: &Path) -> (usize, u16) {
        let hash = path.hash(index, address);
        let place = hash as usize & (self.tagged.len() - 1);
        (place, (hash >> 40) as u16 | 1)
    }

    /// Predicts the branch at `address` and learns how it went; returns whether it was right.
    ///
    /// Few branches are in it, because the CPU that runs this cannot predict them: they depend
    /// on a program that is itself hard to predict.
    pub(crate) fn branch(&mut self, address: u64, path: &Path, taken: bool) -> bool {
        let mut places = [0_u32; TABLES];
        let mut matches = 0_u32;
        for (index, place) in places.iter_mut().enumerate() {
            let (at, tag) = self.place(index, address, path);
            *place = at as u32;
            matches |= u32::from(self.tagged[at][index].tag == tag) << index;
        }
        let base = (address ^ address >> self.hash.fold) as usize & (self.base.len() - 1);
        let counter = self.base[base];
        let by_base = counter >= 2;
        if matches == 0 {
            let up = (counter + 1).min(3);
            self.base[base] = if taken { up } else { counter.saturating_sub(1) };
            if by_base != taken {
                self.allocate(0, address, path, taken);
            }
            return by_base == taken;
        }
        let provider = matches.ilog2() as usize % TABLES;
        let state = &mut self.tagged[places[provider] as usize][provider].state;
        let predicted = *state & 4 != 0;
        let index = *state << 2 | u8::from(taken) << 1 | u8::from(by_base);
        *state = NEXT[usize::from(index & 127)];
        if predicted != taken {
            self.allocate(provider + 1, address, path, taken);
        }
        predicted == taken
    }

    /// Learns that the branch at `address` has always gone one way so far.
    pub(crate) fn always(&mut self, address: u64, taken: bool) {
        let base = (address ^ address >> self.hash.fold) as usize & (self.base.len() - 1);
        self.base[base] = if taken { 3 } else { 0 };
    }

    /// Gives the branch an entry with a longer path.
    #[cold]
    fn allocate(&mut self, from: usize, address: u64, path: &Path, taken: bool) {
        let longer = from..self.tables;
        let free = longer.clone().find_map(|index| {
            let (place, tag) = self.place(index, address, path);
            (self.tagged[place][index].state < 8).then_some((place, index, tag))
        });
        match free {
            Some((place, index, tag)) => {
                let state = NEW[usize::from(taken)];
                self.tagged[place][index] = Entry { tag, state };
            }
            None => {
                for index in longer {
                    let (place, _) = self.place(index, address, path);
                    self.tagged[place][index].state -= 8;
                }
            }
        }
        self.allocations += 1;
        if self.allocations.is_multiple_of(1 << 18) {
            for entry in self.tagged.iter_mut().flatten() {
                entry.state = entry.state & 7 | entry.state >> 4 << 3;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(outcomes: impl Iterator<Item = bool>) -> usize {
        let mut direction = Direction::new(8192, 2048, 3, Hash::FIRST);
        let mut path = Path::new(&[16, 32, 64], Hash::FIRST);
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
            let mut path = Path::new(&[16, 64, 90], Hash::FIRST);
            path.push(first, 0);
            for n in 0..70 {
                path.push(0x1000 + 4 * n, 0x2000);
            }
            path
        };
        let hash = |first, index| path(first).hash(index, 0);
        assert_ne!(hash(8, 2), hash(16, 2), "90 branches back");
        assert_eq!(hash(8, 1), hash(16, 1));
        assert_eq!(hash(8, 0), hash(16, 0));
    }
}
