//! The library, its memory and the checker's words in one execution.
//!
//! The lock's memory holds the newest value of each word; beside it each word
//! that is accessed has one of the checker's. The boundaries and widths of
//! words are learnt from the accesses of earlier executions. This module must
//! never take a step of the model itself.

use super::race::Raced;
use super::word::Word;
use crate::inspect::Facts;
use crate::isolate;
use crate::library::{Hooks, Library, Sites};
use crate::memory::memory;
use crate::repeat::Loop;
use locklab_locks::platform::Platform;
use locklab_verify::{Loom, MAX_THREADS, Place, Rounding};
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::take;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The most locks and contexts of one execution: the nesting property makes the
/// most.
pub(super) const MOST_LOCKS: usize = 8;
pub(super) const MOST_CONTEXTS: usize = MOST_LOCKS * MAX_THREADS;

/// Describes what is assumed of the accesses of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A data race breaks a promise.
    pub(crate) races: bool,
    /// Address dependencies order, and read-modify-writes are fences: the assumption of
    /// [`crate::kernel::WITH_DEPENDENCIES`].
    pub(crate) dependencies: bool,
}

/// The state of one modelled thread.
#[derive(Default)]
pub(super) struct Thread {
    pub(super) at: Loop,
    /// A read that a wait has already made.
    pub(super) handed: Option<(usize, u8, u64)>,
    /// Plain writes that the code has made since its last access: the address,
    /// and the old value.
    pub(super) written: Vec<(usize, u8, u64, usize)>,
    /// Plain reads that saw an older value, which stays in memory until the
    /// next access: the address, and the newest value.
    pub(super) older: Vec<(usize, u8, u64)>,
    /// Accesses since a loop last came round: the site, the address, and the stack.
    pub(super) passed: Vec<(usize, usize, usize)>,
    /// Number of accesses, and after how many a loop last came round.
    pub(super) accesses: u64,
    pub(super) came_round: u64,
    /// The sites of this call's accesses.
    pub(super) sites: Vec<usize>,
    /// Says where loops came round that are no waits.
    pub(super) rounds: Vec<Round>,
    /// Says whether it has written since a loop last came round.
    pub(super) wrote: bool,
    /// The reads since a loop last came round, and those of the round before.
    pub(super) reads: [Vec<(usize, usize, u64)>; 2],
    /// A loop that counts, and whether the access was made that ends it.
    pub(super) counting: Option<(Place, bool)>,
    /// Number of its atomic reads of its own stack.
    pub(super) reads_alone: u32,
}

/// Describes where a loop came round that is no wait.
#[derive(Clone, Copy)]
pub(super) struct Round {
    site: usize,
    /// Says how often it has.
    pub(super) number: u32,
    /// A hash of the state in which it last did.
    state: u64,
    /// Holds what it did in the last round.
    pub(super) rounding: Rounding,
}

impl Thread {
    /// Notes an access that no round of the loop had before.
    pub(super) fn has_ended_loop(&mut self) {
        if let Some((_, ended)) = &mut self.counting {
            *ended = true;
        }
    }

    /// Notes that a loop comes round here, in this state. Returns `None` if it has
    /// accessed nothing since it last did, or has seen what others did meanwhile and
    /// has written nothing: it goes on as often as they do that.
    pub(super) fn goes_round(&mut self, site: usize, state: &[u8]) -> Option<Round> {
        if self.came_round == self.accesses {
            return None;
        }
        self.came_round = self.accesses;
        let wrote = take(&mut self.wrote);
        let [reads, before] = &self.reads;
        let other = |read: &(usize, usize, u64), known: &[(usize, usize, u64)]| {
            let same = |known: &&(usize, usize, u64)| known.1 == read.1;
            known.iter().filter(same).any(|known| known.2 != read.2)
        };
        let saw_others = reads
            .iter()
            .any(|read| other(read, reads) || other(read, before));
        self.reads.swap(0, 1);
        self.reads[0].clear();
        if saw_others && !wrote {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        let state = hasher.finish();
        let Some(round) = self.rounds.iter_mut().find(|round| round.site == site) else {
            let round = Round {
                site,
                number: 1,
                state,
                rounding: Rounding::Writes,
            };
            self.rounds.push(round);
            return Some(round);
        };
        round.number += 1;
        round.rounding = match wrote || round.state == state {
            true => Rounding::Writes,
            false => Rounding::Counts,
        };
        round.state = state;
        Some(*round)
    }
}

/// The state of a child process that explores one property of a library.
pub(super) struct World {
    pub(super) library: Library,
    pub(super) sites: Sites,
    pub(super) places: HashMap<usize, Place>,
    pub(super) facts: Facts,
    /// The library's data as it was loaded.
    pub(super) pristine: Vec<u8>,
    pub(super) pool: &'static mut [Line],
    pub(super) locks: usize,
    pub(super) contexts: usize,
    pub(super) alive: usize,
    /// Every access ever made in this child: first address and size.
    pub(super) accesses: BTreeSet<(usize, u8)>,
    /// Says whether address dependencies order.
    pub(super) dependencies: bool,
    /// Holds what is accessed by plain reads and writes.
    pub(super) raced: Raced,
    /// The words of this execution, by their first address.
    pub(super) words: HashMap<usize, (usize, Box<Word>)>,
    pub(super) threads: [Thread; MAX_THREADS],
    /// Says whether the lock is being initialised, or used before the model.
    pub(super) quiet: bool,
    /// Says whether its CPUs are those with the greatest numbers.
    pub(super) last_cpus: bool,
    /// Holds what is noted of those uses.
    pub(super) watch: Option<Watch>,
    /// Loops that count, after whose end the code makes another access: what it does may
    /// depend on the round. Otherwise nothing is left of the count where the call ends.
    pub(super) unlike: BTreeSet<Place>,
    /// Loops that count whose further rounds were not explored.
    pub(super) went_on: BTreeSet<Place>,
    /// The memory of a lock after them.
    pub(super) used: Option<Vec<(usize, Vec<u8>)>>,
}

/// Describes what is noted while a lock is being used before the model.
pub(super) struct Watch {
    /// The memory of the lock, of its context, and static data.
    pub(super) ranges: [Range<usize>; 3],
    /// Every access to it: first address and bytes.
    pub(super) accessed: BTreeSet<(usize, usize)>,
    /// The accesses of the call under way.
    pub(super) accesses: u32,
    pub(super) uses: u64,
}

impl Watch {
    /// Makes a world in which nothing has happened yet.
    pub(super) fn of(ranges: [Range<usize>; 3]) -> Self {
        Self {
            ranges,
            accessed: BTreeSet::new(),
            accesses: 0,
            uses: 0,
        }
    }
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Line([u8; 64]);

pub(super) static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Uses the world; `f` neither uses it again nor switches to another thread.
pub(super) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    // SAFETY: made before the first execution and never freed;
    // modelled threads are coroutines of one OS thread.
    f(unsafe { &mut *WORLD.load(Ordering::Relaxed) })
}

pub(super) fn lines(bytes: usize) -> usize {
    bytes.div_ceil(64).max(1)
}

impl World {
    /// Loads the library into this process, if it is not there.
    pub(super) fn load(library: &Path, facts: &Facts, rules: Rules, hooks: Hooks) {
        if WORLD.load(Ordering::Relaxed).is_null() {
            let loaded = match Library::load(library, "locklab_hooks", hooks) {
                Ok(loaded) => loaded,
                Err(e) => panic!("{e}"),
            };
            isolate::watch_code(loaded.base, &loaded.code);
            // SAFETY: the library's data, which nobody uses yet.
            let pristine = unsafe {
                std::slice::from_raw_parts(loaded.data.start as *const u8, loaded.data.len())
            };
            let pool =
                MOST_LOCKS * lines(facts.lock_bytes) + MOST_CONTEXTS * lines(facts.ctx_bytes);
            let world = Box::new(Self {
                sites: Sites::new(&loaded, library),
                places: HashMap::new(),
                facts: facts.clone(),
                pristine: pristine.to_vec(),
                pool: vec![Line([0; 64]); pool].leak(),
                library: loaded,
                locks: 0,
                contexts: 0,
                alive: 0,
                accesses: BTreeSet::new(),
                raced: Raced::new(rules.races),
                dependencies: rules.dependencies,
                words: HashMap::new(),
                threads: Default::default(),
                quiet: false,
                last_cpus: false,
                watch: None,
                unlike: BTreeSet::new(),
                went_on: BTreeSet::new(),
                used: None,
            });
            WORLD.store(Box::into_raw(world), Ordering::Relaxed);
        }
    }

    /// Begins an execution, with everything as it was loaded.
    pub(super) fn begin() {
        with(|world| {
            (world.locks, world.contexts, world.alive) = (0, 0, 0);
            world.threads = Default::default();
            (world.quiet, world.watch) = (false, None);
            // Discards the state that a failed or cut execution has left.
            std::mem::forget(take(&mut world.words));
            world.raced.begin();
            world.pool.fill(Line([0; 64]));
            // SAFETY: as above; no modelled thread runs yet.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    world.pristine.as_ptr(),
                    world.library.data.start as *mut u8,
                    world.pristine.len(),
                );
            }
        });
    }

    pub(super) fn start(&self) -> usize {
        self.pool.as_ptr() as usize
    }

    pub(super) fn place(&mut self, site: usize) -> Place {
        let sites = &self.sites;
        *self.places.entry(site).or_insert_with(|| {
            let Some((path, file, line, column)) = sites.position(site) else {
                return Place {
                    file: "the lock's code",
                    line: 0,
                    column: 0,
                };
            };
            let file: &'static str = file.leak();
            if let Ok(text) = std::fs::read_to_string(path) {
                locklab_verify::add_source(file, text);
            }
            Place { file, line, column }
        })
    }

    /// Returns the words that hold all accesses from `start` up to `end`: first
    /// address and width.
    pub(super) fn layout(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut words: Vec<(usize, usize)> = Vec::new();
        for &(address, size) in self.accesses.range((start, 0)..(end, 0)) {
            let (mut first, mut width) = aligned(address, address + usize::from(size));
            // It is merged with the word before, if they overlap.
            while let Some(&(before, bytes)) = words.last()
                && before + bytes > first
            {
                (first, width) = aligned(before.min(first), (before + bytes).max(first + width));
                words.pop();
            }
            words.push((first, width));
        }
        words
    }

    /// Returns the word of an access.
    pub(super) fn word(&self, address: usize, size: u8) -> Option<(usize, usize, *const Word)> {
        for width in [1, 2, 4, 8] {
            let first = address / width * width;
            if let Some((bytes, word)) = self.words.get(&first)
                && *bytes == width
                && address + usize::from(size) <= first + width
            {
                return Some((first, width, std::ptr::from_ref(&**word)));
            }
        }
        None
    }
}

/// Returns the smallest aligned word that holds these bytes: its first address and width.
fn aligned(start: usize, end: usize) -> (usize, usize) {
    let mut width = 1;
    while start / width * width + width < end {
        width *= 2;
    }
    (start / width * width, width)
}

/// Makes the checker's words for memory that is about to be used.
pub(super) fn make_words(start: usize, end: usize) {
    with(|world| world.raced.divide(start, end));
    for (first, width) in with(|world| world.layout(start, end)) {
        // SAFETY: the library's data or the pool.
        let value = unsafe { memory(first, width as u32) };
        let word = Box::new(Word::new(first, width, value));
        with(|world| world.words.insert(first, (width, word)));
    }
}

pub(super) fn thread() -> usize {
    Loom::cpu()
}
