//! The memory of a test, and which of it threads share.
//!
//! Memory that one thread accesses, or that nobody writes after the first thread was
//! created, is accessed as it is: no event. The first execution in which that is no
//! longer so adds the object to those that are shared, and the exploration begins
//! again; so does one that shows that the accesses of a word are not all of one size.
//! This module must never add an event.

use super::fields::Fields;
use super::loops::Loops;
use super::watch::Watch;
use crate::library::{Loaded, Sites};
use crate::memory::pieces;
use locklab_graph::{MAX_THREADS, Place};
use locklab_host::error::Error;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Memory that each thread can allocate: addresses only.
const ARENA: usize = 1 << 26;

/// Unused bytes behind each block, so that a pointer past its end finds no other.
const GAP: usize = 16;

/// The most bytes of a thread's stack.
pub(super) const STACK: usize = 256 << 10;

/// The most mutexes and the like.
const SLOTS: usize = 1 << 14;

/// Describes what is assumed of the accesses of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// A data race is a failure; otherwise plain accesses are relaxed ones.
    pub(crate) races: bool,
    /// Address dependencies order, and read-modify-writes are fences: the assumption of
    /// [`crate::kernel::WITH_DEPENDENCIES`].
    pub(crate) dependencies: bool,
}

impl Rules {
    /// Those of C11.
    pub(crate) const OF_A_TEST: Self = Self {
        races: true,
        dependencies: false,
    };
}

/// A block of memory that the test has allocated, or that we have made for a lock.
pub(super) struct Block {
    pub(super) bytes: usize,
    pub(super) site: usize,
    pub(super) freed: bool,
    /// The purpose of a block of ours; none for a block of the test's.
    pub(super) owner: Option<Owner>,
}

/// What a block is for that we have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is a lock.
    Lock,
    /// It is the context of a thread.
    Context(usize),
    /// It is the data that a lock protects.
    Data,
    /// It says which threads wait.
    Waits,
}

/// What one thread of the test is about.
#[derive(Default)]
pub(super) struct Thread {
    /// The stack above which its own frames lie.
    pub(super) entry: usize,
    /// Where `pthread_exit` goes to.
    pub(super) way: Box<[usize; 5]>,
    /// Where it made its last access.
    pub(super) site: usize,
    /// What it has left its functions with.
    pub(super) left: Option<u64>,
    /// Where waits have given up.
    pub(super) gave_up: Vec<usize>,
    /// A volatile write that the code makes after it has announced it.
    pub(super) written: Option<(usize, usize, usize)>,
    pub(super) loops: Loops,
    /// The value that each of its atomic reads had last, by the call.
    pub(super) read: HashMap<usize, u64>,
    /// What it holds, and how often.
    pub(super) held: HashMap<usize, u32>,
    /// Values of keys.
    pub(super) values: BTreeMap<u64, u64>,
    /// Where it says that it waits for a lock, when it first does.
    pub(super) tells: Option<usize>,
    /// What may interrupt it, once, before an access of a place where it has not been.
    pub(super) interrupt: Option<Rc<dyn Fn()>>,
    pub(super) sites: HashSet<usize>,
    /// What interrupts it when it first waits.
    pub(super) interrupts_wait: Option<Rc<dyn Fn()>>,
    /// Bytes allocated.
    allocated: usize,
    /// Its thread-local data.
    own: Vec<u64>,
}

impl Thread {
    /// Returns the addresses of its frames, with those of the function that runs it.
    fn stack(&self) -> Range<usize> {
        match self.entry {
            0 => 0..0,
            entry => entry.saturating_sub(STACK)..entry + 256,
        }
    }
}

/// Who has used an object since the first thread was created.
struct Use {
    thread: usize,
    several: bool,
    written: bool,
}

/// A word that events are about, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The word.
    pub(super) first: usize,
    pub(super) width: u8,
    /// The part of it.
    pub(super) address: usize,
    pub(super) size: u8,
}

/// Says how memory is accessed.
pub(super) enum Way {
    /// As it is.
    Directly,
    /// By events.
    Events(Vec<Piece>),
    /// Not yet: what is known of memory has changed.
    Again,
}

/// The state of an exploration, and of its current execution.
pub(super) struct World {
    pub(super) loaded: Loaded,
    pub(super) sites: Sites,
    /// The static data before `main`.
    image: Vec<u8>,
    arenas: usize,
    /// Objects that threads share, by their first addresses.
    shared: BTreeSet<usize>,
    /// Words of shared memory: the width, and whether an access of it is atomic.
    words: BTreeMap<usize, (u8, bool)>,
    pub(super) threads: Vec<Thread>,
    pub(super) blocks: BTreeMap<usize, Block>,
    uses: HashMap<usize, Use>,
    /// Objects that were ever accessed without an event.
    direct: HashSet<usize>,
    /// Says whether a thread was created: before that nothing is an event.
    pub(super) live: bool,
    /// Words of the checker's own for objects of the test, such as mutexes, by their
    /// addresses; of those that are not in use the rest.
    slots: HashMap<usize, usize>,
    shadow: Box<[u64; SLOTS]>,
    places: HashMap<usize, Place>,
    /// Says whether the exploration has to begin again.
    pub(super) again: bool,
    pub(super) destructors: HashMap<u64, usize>,
    /// Notes for the report, once each.
    pub(super) notes: BTreeSet<String>,
    pub(super) rules: Rules,
    pub(super) fields: Fields,
    /// Objects that threads sleep on.
    pub(super) futexes: HashSet<usize>,
    /// The number of the first CPU.
    pub(super) first_cpu: usize,
    /// What is noted while a lock is used before any thread is created.
    pub(super) watch: Option<Watch>,
    /// The value that a read of a wait had in vain, by its call.
    pub(super) vain: HashMap<usize, u64>,
    /// The memory of a lock after that.
    pub(super) used: Option<Vec<(usize, Vec<u8>)>>,
    /// Whether it is counted who is inside, whatever they see of each other.
    pub(super) counts: bool,
}

static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Uses the world; `f` neither uses it again nor switches to another thread.
pub(super) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    // SAFETY: set before the exploration begins and never freed; the child has one
    // thread, and no `f` comes back here.
    f(unsafe { &mut *WORLD.load(Ordering::Relaxed) })
}

/// Says why an access is refused.
pub(super) type Refused = String;

impl World {
    /// Makes the world of the child.
    pub(super) fn set(loaded: Loaded, library: &Path, rules: Rules) -> Result<(), Error> {
        let sites = Sites::new(&loaded, library);
        let most_threads = MAX_THREADS;
        let data = loaded.data.clone();
        // SAFETY: the writable data of a library that was just loaded.
        let image = unsafe { std::slice::from_raw_parts(data.start as *const u8, data.len()) };
        // SAFETY: new memory, of which only what is used is real.
        let arenas = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                ARENA * most_threads,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if arenas == libc::MAP_FAILED {
            return Err(Error::Failed(
                "there is no memory for what the file allocates".to_owned(),
            ));
        }
        let image = image.to_vec();
        let bytes = loaded.thread_local.1 + 64;
        let threads = (0..most_threads).map(|_| Thread {
            own: vec![0; bytes / 8],
            ..Thread::default()
        });
        let world = Self {
            loaded,
            sites,
            image,
            arenas: arenas as usize,
            shared: BTreeSet::new(),
            words: BTreeMap::new(),
            threads: threads.collect(),
            blocks: BTreeMap::new(),
            uses: HashMap::new(),
            direct: HashSet::new(),
            live: false,
            slots: HashMap::new(),
            shadow: Box::new([0; SLOTS]),
            places: HashMap::new(),
            again: false,
            destructors: HashMap::new(),
            notes: BTreeSet::new(),
            rules,
            fields: Fields::of(library),
            futexes: HashSet::new(),
            first_cpu: 0,
            watch: None,
            vain: HashMap::new(),
            used: None,
            counts: false,
        };
        WORLD.store(Box::into_raw(Box::new(world)), Ordering::Relaxed);
        Ok(())
    }

    /// Begins an execution: memory is as before `main`.
    pub(super) fn begin(&mut self) {
        let data = self.loaded.data.start as *mut u8;
        // SAFETY: the library's own data.
        unsafe { std::ptr::copy_nonoverlapping(self.image.as_ptr(), data, self.image.len()) };
        let image = self.loaded.thread_local.0.clone();
        for (number, thread) in self.threads.iter_mut().enumerate() {
            let arena = (self.arenas + number * ARENA) as *mut u8;
            // SAFETY: the part of the arena that was used.
            unsafe { std::ptr::write_bytes(arena, 0, thread.allocated) };
            let mut own = std::mem::take(&mut thread.own);
            own.fill(0);
            // SAFETY: it has room for the image, of the library's data.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    image.start as *const u8,
                    own.as_mut_ptr().cast::<u8>(),
                    image.len(),
                );
            }
            let loops = std::mem::take(&mut thread.loops).emptied();
            *thread = Thread {
                own,
                loops,
                ..Thread::default()
            };
        }
        self.blocks.clear();
        self.uses.clear();
        self.shadow.fill(0);
        self.live = false;
        self.watch = None;
    }

    /// Makes a block of ours, of zeros.
    pub(super) fn make(&mut self, owner: Owner, bytes: usize) -> usize {
        let start = self.allocate(0, bytes.max(1), 64, 0);
        let start = start.expect("a lock is smaller than what a thread may allocate");
        let block = self.blocks.get_mut(&start).expect("made above");
        block.owner = Some(owner);
        start
    }

    /// Returns what the block is for that an address is in, if we have made it.
    pub(super) fn owner(&self, address: usize) -> Option<(Owner, usize)> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        let within = address < *start + block.bytes;
        Some((block.owner.filter(|_| within)?, address - start))
    }

    /// Returns the memory of the thread's thread-local data.
    pub(super) fn thread_local(&self, thread: usize) -> usize {
        self.threads[thread].own.as_ptr() as usize
    }

    /// Returns where a thread has its `errno`.
    pub(super) fn errno(&self, thread: usize) -> usize {
        self.thread_local(thread) + 8 * self.threads[thread].own.len() - 8
    }

    /// Gives memory to a thread.
    pub(super) fn allocate(
        &mut self,
        thread: usize,
        bytes: usize,
        align: usize,
        site: usize,
    ) -> Result<usize, Refused> {
        let arena = self.arenas + thread * ARENA;
        let used = &mut self.threads[thread].allocated;
        let start = (arena + *used).next_multiple_of(align.max(16));
        let end = start.saturating_add(bytes).saturating_add(GAP);
        if end > arena + ARENA {
            return Err(format!("a thread allocates more than {ARENA} bytes"));
        }
        *used = end - arena;
        let freed = false;
        let block = Block {
            bytes,
            site,
            freed,
            owner: None,
        };
        self.blocks.insert(start, block);
        Ok(start)
    }

    /// Returns the block that begins here.
    pub(super) fn block(&mut self, start: usize) -> Option<&mut Block> {
        self.blocks.get_mut(&start)
    }

    /// Returns the object that an address is in; `None` if that is a constant.
    fn object(&self, address: usize) -> Result<Option<Range<usize>>, Refused> {
        let word = address / 8 * 8..address / 8 * 8 + 8;
        if self.loaded.data.contains(&address) {
            let objects = &self.loaded.objects;
            let before = objects.partition_point(|(_, memory)| memory.start <= address);
            let known = objects[..before].iter().rev().take(4);
            let found = known
                .map(|(_, memory)| memory)
                .find(|memory| memory.contains(&address));
            return match found {
                Some(memory) => Ok(Some(memory.clone())),
                None if objects.is_empty() => Ok(Some(word)),
                None => Err(self.beside(address)),
            };
        }
        let (base, end) = (
            self.loaded.base,
            self.loaded.data.end.max(self.loaded.code.end),
        );
        if (base..end).contains(&address) {
            return Ok(None);
        }
        if (self.arenas..self.arenas + ARENA * self.threads.len()).contains(&address) {
            let block = self.blocks.range(..=address).next_back();
            let block = block.filter(|(start, block)| address < *start + block.bytes);
            return match block {
                Some((start, block)) => Ok(Some(*start..start + block.bytes)),
                None => Err("out of bounds: outside of every block of memory".to_owned()),
            };
        }
        match self.is_of_thread(address) {
            true => Ok(Some(word)),
            false if address < 4096 => Err("through a null pointer".to_owned()),
            false => Err("of memory that is not the test's".to_owned()),
        }
    }

    /// Returns whether this is the stack or the thread-local data of a thread.
    fn is_of_thread(&self, address: usize) -> bool {
        self.threads.iter().any(|thread| {
            let own = thread.own.as_ptr() as usize;
            thread.stack().contains(&address)
                || (own..own + 8 * thread.own.len()).contains(&address)
        })
    }

    /// Returns the words of a thread's stack that events are about.
    pub(super) fn words_of_stack(&self, thread: usize) -> Vec<Piece> {
        let words = self.words.range(self.threads[thread].stack());
        let piece = |(&first, &(width, _)): (&usize, &(u8, bool))| Piece {
            first,
            width,
            address: first,
            size: width,
        };
        words.map(piece).collect()
    }

    /// Returns how a thread accesses memory.
    pub(super) fn way(
        &mut self,
        thread: usize,
        (address, bytes): (usize, usize),
        writes: bool,
        atomic: bool,
    ) -> Result<Way, Refused> {
        let Some(object) = self.object(address)? else {
            return match writes {
                true => Err("of a constant".to_owned()),
                false => Ok(Way::Directly),
            };
        };
        if address + bytes > object.end && object.end - object.start > 8 {
            return Err(format!(
                "out of bounds: {bytes} bytes, from byte {} of {}",
                address - object.start,
                self.describe(&object)
            ));
        }
        if !self.live {
            return Ok(Way::Directly);
        }
        if atomic && !self.is_of_thread(address) && !self.direct.contains(&object.start) {
            self.shared.insert(object.start);
        }
        Ok(match self.is_used(thread, object.start, writes) {
            None => Way::Again,
            Some(false) => Way::Directly,
            Some(true) => self.pieces(address, bytes, atomic),
        })
    }

    /// Notes that a thread uses an object. Returns whether threads share it; `None` if that
    /// was not known before.
    fn is_used(&mut self, thread: usize, object: usize, writes: bool) -> Option<bool> {
        if self.shared.contains(&object) {
            return Some(true);
        }
        let first = Use {
            thread,
            several: false,
            written: false,
        };
        let used = self.uses.entry(object).or_insert(first);
        used.several |= used.thread != thread;
        used.written |= writes;
        if !(used.several && used.written) {
            self.direct.insert(object);
            return Some(false);
        }
        self.shared.insert(object);
        None
    }

    /// Notes that the life of a block begins or ends. Returns as [`Self::is_used`].
    pub(super) fn is_shared(&mut self, thread: usize, block: usize) -> Option<bool> {
        match self.live {
            true => self.is_used(thread, block, true),
            false => Some(false),
        }
    }

    /// Makes the objects shared that a loop reads: nobody else has written to them yet.
    pub(super) fn share(&mut self, addresses: &[usize]) -> bool {
        let mut new = false;
        for &address in addresses {
            if let Ok(Some(object)) = self.object(address) {
                new |= self.shared.insert(object.start);
            }
        }
        new
    }

    /// Divides an access into words.
    fn pieces(&mut self, address: usize, bytes: usize, atomic: bool) -> Way {
        let end = address + bytes;
        let known: Vec<(usize, u8, bool)> = self
            .words
            .range(address.saturating_sub(8)..end)
            .filter(|(first, (width, _))| **first + usize::from(*width) > address)
            .map(|(first, (width, atomic))| (*first, *width, *atomic))
            .collect();
        if atomic {
            return match known[..] {
                [(first, width, true)] if first <= address && end <= first + usize::from(width) => {
                    Way::Events(vec![Piece {
                        first,
                        width,
                        address,
                        size: bytes as u8,
                    }])
                }
                _ => {
                    let first = known
                        .iter()
                        .filter(|(_, _, atomic)| *atomic)
                        .map(|word| word.0);
                    let first = first.fold(address, usize::min);
                    let last = known.iter().filter(|(_, _, atomic)| *atomic);
                    let last = last
                        .map(|word| word.0 + usize::from(word.1))
                        .fold(end, usize::max);
                    let mut width = bytes;
                    while first / width * width + width < last {
                        width *= 2;
                    }
                    let is_new = known.is_empty();
                    for (first, _, _) in known {
                        self.words.remove(&first);
                    }
                    let (first, width) = (first / width * width, width as u8);
                    self.words.insert(first, (width, true));
                    let size = bytes as u8;
                    match is_new {
                        true => Way::Events(vec![Piece {
                            first,
                            width,
                            address,
                            size,
                        }]),
                        false => Way::Again,
                    }
                }
            };
        }
        let mut all = Vec::new();
        let mut at = address;
        for (first, width, atomic) in known {
            let after = first + usize::from(width);
            self.fill(at, first, &mut all);
            at = at.max(first);
            let to = after.min(end);
            if !atomic && (at > first || to < after) {
                // It is divided where the access begins and ends.
                self.words.remove(&first);
                for (first, size) in pieces(first, at - first)
                    .chain(pieces(at, to - at))
                    .chain(pieces(to, after - to))
                {
                    self.words.insert(first, (size, false));
                }
                return Way::Again;
            }
            all.push(Piece {
                first,
                width,
                address: at,
                size: (to - at) as u8,
            });
            at = to;
        }
        self.fill(at, end, &mut all);
        Way::Events(all)
    }

    /// Makes the words from `at` to `end`, which are new.
    fn fill(&mut self, at: usize, end: usize, all: &mut Vec<Piece>) {
        for (first, width) in pieces(at, end.saturating_sub(at)) {
            self.words.insert(first, (width, false));
            all.push(Piece {
                first,
                width,
                address: first,
                size: width,
            });
        }
    }

    /// Notes what the report is to say.
    pub(super) fn note(&mut self, what: String) {
        self.notes.insert(what);
    }

    /// Returns the checker's word for what is at this address.
    pub(super) fn slot(&mut self, address: usize) -> usize {
        let next = self.slots.len() % SLOTS;
        let slot = *self.slots.entry(address).or_insert(next);
        std::ptr::from_ref(&self.shadow[slot]) as usize
    }

    /// Returns the place of a call that returns to `site`.
    pub(super) fn place(&mut self, site: usize) -> Place {
        let sites = &self.sites;
        *self.places.entry(site).or_insert_with(|| {
            let (path, file, line, column) = sites.position(site).unwrap_or_default();
            // Leaked once for each line of the file.
            let file: &'static str = file.leak();
            if let Ok(text) = std::fs::read_to_string(path) {
                locklab_verify::add_source(file, text);
            }
            Place::Source { file, line, column }
        })
    }

    /// Returns the line of a call that returns to `site`.
    pub(super) fn line(&self, site: usize) -> String {
        let line = self.sites.line(site);
        line.unwrap_or_else(|| "a line that is not known".to_owned())
    }

    /// Returns whether this is the checker's word for what threads sleep on.
    pub(super) fn is_futex(&self, address: usize) -> bool {
        let slot = address.wrapping_sub(std::ptr::from_ref(&self.shadow[0]) as usize) / 8;
        let mut known = self.slots.iter();
        known.any(|(object, known)| *known == slot && self.futexes.contains(object))
    }

    /// Returns whether this is a word of the checker's that no object of the test has.
    pub(super) fn is_result(&self, address: usize) -> bool {
        let slot = address.wrapping_sub(std::ptr::from_ref(&self.shadow[0]) as usize) / 8;
        let mut known = self.slots.iter();
        known.any(|(object, known)| *known == slot && *object < 4096)
    }

    /// Says beside which static variable an address is that is in none.
    fn beside(&self, address: usize) -> String {
        let distance = |memory: &Range<usize>| match address.checked_sub(memory.end) {
            Some(behind) => behind,
            None => memory.start.abs_diff(address),
        };
        // The file does not know the variables of Locklab's own headers.
        let theirs = |(name, _): &&(String, Range<usize>)| !name.starts_with("locklab_");
        let theirs = self.loaded.objects.iter().filter(theirs);
        match theirs.min_by_key(|(_, memory)| distance(memory)) {
            Some((name, memory)) if address < memory.start => format!(
                "out of bounds: {} before the start of '{name}'",
                memory.start - address
            ),
            Some((name, memory)) => format!(
                "out of bounds: from byte {} of '{name}', which has {}",
                address - memory.start,
                memory.len()
            ),
            None => "out of bounds: outside of every variable".to_owned(),
        }
    }

    /// Returns the static variable that an address is in.
    fn variable(&self, address: usize) -> Option<(&str, &Range<usize>)> {
        let objects = &self.loaded.objects;
        let before = objects.partition_point(|(_, memory)| memory.start <= address);
        let mut known = objects[..before].iter().rev();
        let (name, memory) = known.find(|(_, memory)| memory.contains(&address))?;
        Some((name, memory))
    }

    /// Describes an object, in a sentence about an access that leaves it.
    fn describe(&self, object: &Range<usize>) -> String {
        let bytes = object.len();
        let name = match (self.owner(object.start), self.variable(object.start)) {
            (Some((Owner::Lock, _)), _) => "the lock".to_owned(),
            (Some((Owner::Context(_), _)), _) => "a context".to_owned(),
            (_, Some((name, _))) => format!("'{name}'"),
            _ => return format!("an object of {bytes}"),
        };
        format!("{name}, which has {bytes}")
    }

    /// Returns a value as a person reads it: small ones, and those just below zero, as
    /// decimal numbers, and what points to our memory by its name.
    pub(super) fn shown(&self, value: u64) -> String {
        match (value, self.owner(value as usize)) {
            (0..4096, _) => value.to_string(),
            (_, Some((Owner::Lock, 0))) => "lock".to_owned(),
            (_, Some((Owner::Context(thread), 0))) => format!("n{thread}"),
            (_, Some(_)) => format!("&{}", self.name(value as usize)),
            _ if value == u64::MAX || value == u64::from(u32::MAX) => "-1".to_owned(),
            _ if self.variable(value as usize).is_some() => {
                format!("&{}", self.name(value as usize))
            }
            _ => format!("{value:#x}"),
        }
    }

    /// Names memory as the test does: a variable, with the byte in it.
    pub(super) fn name(&self, address: usize) -> String {
        let shadow = std::ptr::from_ref(&self.shadow[0]) as usize;
        if (shadow..shadow + 8 * SLOTS).contains(&address) {
            let slot = (address - shadow) / 8;
            let object = self.slots.iter().find(|(_, known)| **known == slot);
            return object.map_or_else(|| "checker".to_owned(), |(object, _)| self.name(*object));
        }
        match self.owner(address) {
            Some((Owner::Lock, bytes)) => return self.fields.of_lock(bytes),
            Some((Owner::Context(thread), bytes)) => {
                return format!("n{thread}.{}", self.fields.of_context(bytes));
            }
            _ => {}
        }
        if let Some(name) = self
            .fields
            .of_static(address.wrapping_sub(self.loaded.base))
        {
            return name;
        }
        if let Some((name, memory)) = self.variable(address) {
            return match address - memory.start {
                0 => name.to_owned(),
                bytes => format!("{name}+{bytes}"),
            };
        }
        if let Some((start, block)) = self.blocks.range(..=address).next_back()
            && address <= start + block.bytes
        {
            let line = self.line(block.site);
            return match address - start {
                0 => format!("block({line})"),
                bytes => format!("block({line})+{bytes}"),
            };
        }
        match self
            .threads
            .iter()
            .position(|thread| thread.stack().contains(&address))
        {
            Some(thread) => {
                let below = self.threads[thread].entry.wrapping_sub(address);
                format!("stack{thread}-{below}")
            }
            None => format!("{address:#x}"),
        }
    }
}
