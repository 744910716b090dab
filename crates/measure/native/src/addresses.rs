//! Places the locks of a block, with all that its workers touch.
//!
//! A block draws several sets of addresses, and each pair of slices uses one of
//! them, both locks the same. A block with one address would have to be short, for
//! what an address does to a ratio scatters more than slices do, and each block
//! costs the start of its threads. This module runs nothing.

use crate::arena::{Arena, room};
use crate::request::Request;
use crate::turn::Place;
use crate::work::{Head, Section};
use locklab_judge::fork_seed;
use std::alloc::Layout;
use std::ptr::NonNull;

/// The sets of addresses of a block, shared out among its locks: with many locks
/// in use at once, each turn meets another address anyway. Neither this number nor the
/// next two are a multiple of the code layouts, so that a pair that comes back to an
/// address comes with other layouts ([`Request::layout_of`]).
const SETS: u32 = 13;
/// The bytes over which lock and shared section are spread: many lines in
/// several pages.
const SPREAD: usize = 64 * 1024;
/// Holds the same for the data of one worker.
const SPREAD_OF_ONE: usize = 4096;

/// One set of addresses.
pub(crate) struct Addresses {
    /// The contexts of all workers for each lock.
    contexts: Vec<Vec<NonNull<u8>>>,
    /// The locks as each worker uses them.
    places: Vec<Vec<Place>>,
    /// Holds what each worker alone touches.
    privates: Vec<NonNull<Section>>,
}

impl Addresses {
    /// Returns the locks as a worker uses them.
    pub(crate) fn places(&self, worker: usize) -> &[Place] {
        &self.places[worker]
    }

    /// Returns the line that a worker alone touches.
    pub(crate) fn private(&self, worker: usize) -> NonNull<Section> {
        self.privates[worker]
    }

    /// Returns the locks with the contexts of all workers.
    pub(crate) fn locks(&self) -> impl Iterator<Item = (NonNull<u8>, &[NonNull<u8>])> {
        let locks = self.places[0].iter().map(|place| place.lock);
        locks.zip(self.contexts.iter().map(Vec::as_slice))
    }
}

/// The sizes of what a set of addresses holds.
pub(crate) struct Sizes {
    lock: Layout,
    /// Says where in it a head begins that lies beside the lock.
    beside: usize,
    context: Layout,
    locks: usize,
    lines: usize,
    threads: usize,
    sets: usize,
}

impl Sizes {
    /// Returns the sizes for the largest of the locks of a request.
    ///
    /// # Errors
    /// If a lock does not fit the address space.
    pub(crate) fn of(request: &Request) -> Result<Self, String> {
        let larger = |a: Layout, b: Layout| {
            let align = a.align().max(b.align());
            Layout::from_size_align(a.size().max(b.size()), align).unwrap_or(a)
        };
        let none = Layout::new::<()>();
        let codes = request.codes.iter();
        let lock = codes.clone().map(|code| code.lock).fold(none, larger);
        let context = codes.map(|code| code.context).fold(none, larger);
        let (lock, beside) = lock
            .extend(Layout::new::<Head>())
            .map_err(|e| format!("a lock does not fit the address space: {e}"))?;
        let locks = request.locks.max(1);
        let sets = (SETS / locks).max(1) as usize;
        Ok(Self {
            lock,
            beside,
            context,
            locks: locks as usize,
            lines: request.mix.lines.max(1) as usize,
            threads: request.threads,
            sets: sets.min(request.most_pairs()),
        })
    }

    /// Returns the bytes that all sets take at most.
    pub(crate) fn room(&self) -> usize {
        let of_a_lock =
            room(self.lock.size().max(1)) + 2 * SPREAD + room(size_of::<Section>() * self.lines);
        let of_a_worker = self.locks * room(self.context.size().max(1))
            + room(size_of::<Section>())
            + 2 * SPREAD_OF_ONE;
        self.sets * (self.locks * of_a_lock + self.threads * of_a_worker)
    }

    /// Draws all sets.
    pub(crate) fn draw(&self, arena: &mut Arena, request: &Request) -> Vec<Addresses> {
        let (seed, migration) = (fork_seed(request.seed, 0), request.migration_steps());
        let mut drawn = 0;
        let mut skip = |arena: &mut Arena, spread: usize| {
            let lines = (spread / 128) as u64;
            drawn += 1;
            arena.skip((fork_seed(seed, drawn) % lines) as usize * 128);
        };
        (0..self.sets)
            .map(|_| self.set(arena, &migration, &mut skip))
            .collect()
    }

    fn set(
        &self,
        arena: &mut Arena,
        migration: &[Option<u64>],
        skip: &mut impl FnMut(&mut Arena, usize),
    ) -> Addresses {
        // By rising addresses, which is the order of nested pairs.
        let placed: Vec<(NonNull<u8>, NonNull<Section>)> = (0..self.locks)
            .map(|_| {
                skip(arena, SPREAD);
                let lock = arena.place(self.lock);
                skip(arena, SPREAD);
                let shared = arena.take::<Section>(self.lines);
                (lock, shared)
            })
            .collect();
        let (mut places, mut privates) = (Vec::new(), Vec::new());
        for _ in 0..self.threads {
            skip(arena, SPREAD_OF_ONE);
            let of_worker: Vec<Place> = placed
                .iter()
                .enumerate()
                .map(|(number, (lock, shared))| {
                    let migration = migration.get(number).copied().flatten();
                    Place {
                        lock: *lock,
                        context: arena.place(self.context),
                        shared: *shared,
                        lines: self.lines,
                        head: match migration {
                            // SAFETY: in what was placed for the lock, behind it.
                            Some(_) => unsafe { lock.add(self.beside) }.cast(),
                            None => shared.cast(),
                        },
                        migration: migration.unwrap_or(0),
                    }
                })
                .collect();
            places.push(of_worker);
            skip(arena, SPREAD_OF_ONE);
            privates.push(arena.put(Section::default()));
        }
        Addresses {
            contexts: (0..self.locks)
                .map(|lock| places.iter().map(|of| of[lock].context).collect())
                .collect(),
            places,
            privates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;
    use crate::request::tests::request;
    use std::collections::HashSet;

    #[test]
    fn each_pair_has_other_addresses_and_comes_back_with_other_layouts() {
        let block = Block::new(Request {
            time: 100_000_000,
            ..request(2, &[0, 1])
        })
        .unwrap();
        let sets = block.addresses();
        let met: HashSet<usize> = (0..sets).map(|pair| block.address(pair)).collect();
        assert_eq!(met.len(), SETS as usize);
        for pair in 0..sets {
            let again = pair + sets;
            assert_eq!(block.address(pair), block.address(again));
            for side in 0..2 {
                let layout = |pair| block.request.layout_of(pair, side);
                assert_ne!(layout(pair), layout(again));
            }
        }
    }

    #[test]
    fn what_workers_touch_is_theirs_in_every_set() {
        let block = Block::new(request(2, &[0, 1])).unwrap();
        let mut lines = HashSet::new();
        for set in block.sets() {
            let (lock, contexts) = set.locks().next().unwrap();
            let shared = set.places(0)[0].shared.addr().get();
            assert_eq!(shared, set.places(1)[0].shared.addr().get());
            let all = [lock, contexts[0], contexts[1]].map(|place| place.addr().get());
            let own = [0, 1].map(|worker| set.private(worker).addr().get());
            for address in all.into_iter().chain(own).chain([shared]) {
                assert!(lines.insert(address / 128), "two values on one line");
            }
        }
    }

    #[test]
    fn many_locks_and_short_blocks_have_fewer_sets() {
        let sets = |change: fn(&mut Request)| {
            let mut asked = request(1, &[0]);
            change(&mut asked);
            Block::new(asked).unwrap().addresses()
        };
        assert_eq!(sets(|r| r.locks = 4), 3);
        assert_eq!(sets(|r| r.locks = 64), 1);
        assert_eq!(sets(|r| (r.time, r.least) = (1, 1)), 3);
    }
}
