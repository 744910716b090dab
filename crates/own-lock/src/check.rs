//! A compiled lock under the model checker: each access that it reports is a
//! step of the model.
//!
//! The lock's memory stays what it is, and holds the newest value of each
//! word; beside it each word that is accessed has a word of the checker's,
//! which decides what a read sees. Where words begin and how wide they are is
//! learnt: an access that does not fit begins the model again. A plain read is
//! a relaxed load whose value is put into memory until the thread's next
//! access; a plain write is a relaxed store there. A loop that repeats
//! ([`crate::repeat`]) waits as `spin` does, and is pruned as that is.
//!
//! Must never run outside a model: what it keeps belongs to one execution.

use crate::inspect::Facts;
use crate::isolate;
use crate::library::{Hooks, Library, Sites, low, updated};
use crate::repeat::{Loop, Read};
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use locklab_locks::{Fairness, Info};
use locklab_verify::{Context, Instance, Loom, MAX_THREADS, Place, Property, Subject};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_char, c_int, c_uint};
use std::mem::take;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering as Real};

/// Locks and contexts of one execution: the nesting property makes most.
const MOST_LOCKS: usize = 8;
const MOST_CONTEXTS: usize = MOST_LOCKS * MAX_THREADS;

/// The promises of a lock that was compiled for the checker; `kept` stays as
/// long as they do.
pub(crate) fn promises(
    library: PathBuf,
    facts: Facts,
    kept: impl Send + Sync + 'static,
) -> Vec<Property> {
    let lock: Arc<dyn Subject> = Arc::new(Checked {
        facts: facts.clone(),
    });
    let most = facts.max_cpus.unwrap_or(usize::MAX);
    let world = Arc::new((library, facts, kept));
    locklab_verify::promises(&lock)
        .into_iter()
        .filter(|property| property.threads <= most)
        .map(|property| {
            let world = world.clone();
            property
                .of_orderings()
                .after(move || World::begin(&world.0, &world.1))
        })
        .collect()
}

/// A word of the checker's, of 1, 2, 4 or 8 bytes.
enum Word {
    Byte(<Loom as Platform>::U8),
    /// There is none of 16 bits; this one never holds more.
    Half(<Loom as Platform>::U32),
    Word(<Loom as Platform>::U32),
    Long(<Loom as Platform>::Usize),
}

/// Does the same with a word of any width.
macro_rules! any {
    ($word:expr, |$w:ident: $t:ident| $body:expr) => {
        match $word {
            Word::Byte($w) => {
                type $t = u8;
                $body
            }
            Word::Half($w) | Word::Word($w) => {
                type $t = u32;
                $body
            }
            Word::Long($w) => {
                type $t = usize;
                $body
            }
        }
    };
}

impl Word {
    /// One for the memory at `address`.
    fn new(address: usize, bytes: usize, value: u64) -> Self {
        let word = match bytes {
            1 => Self::Byte(Atomic::new(value as u8)),
            2 => Self::Half(Atomic::new(value as u32)),
            4 => Self::Word(Atomic::new(value as u32)),
            _ => Self::Long(Atomic::new(value as usize)),
        };
        any!(&word, |w: T| {
            let _: fn(T) = |_| ();
            w.stands_for(address);
        });
        word
    }

    fn load(&self, order: Ordering) -> u64 {
        any!(self, |w: T| {
            let value: T = w.load(order);
            value as u64
        })
    }

    fn store(&self, value: u64, order: Ordering) {
        any!(self, |w: T| w.store(value as T, order));
    }

    /// Its newest value.
    fn latest(&self) -> u64 {
        any!(self, |w: T| {
            let value = w.latest();
            value as T as u64
        })
    }

    fn compare(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        any!(self, |w: T| {
            w.compare_exchange(old as T, new as T, success, failure)
                .map(|old| old as u64)
                .map_err(|old| old as u64)
        })
    }

    /// Waits for a value that is `done`.
    fn wait(&self, order: Ordering, done: impl Fn(u64) -> bool) -> u64 {
        let poll = |value: u64| match done(value) {
            true => Poll::Done,
            false => Poll::Relax(1),
        };
        any!(
            self,
            |w: T| w.spin(order, Patience::Forever, |value: T| poll(value as u64)) as u64
        )
    }

    /// A read-modify-write that the platform has, of the whole word.
    fn update(&self, operation: c_uint, value: u64, order: Ordering) -> Option<u64> {
        if let (Self::Half(_), 1 | 2) = (self, operation) {
            return None; // It would carry.
        }
        Some(any!(self, |w: T| {
            let value = value as T;
            match operation {
                0 => w.swap(value, order) as u64,
                1 => w.fetch_add(value, order) as u64,
                2 => w.fetch_sub(value, order) as u64,
                3 => w.fetch_and(value, order) as u64,
                4 => w.fetch_or(value, order) as u64,
                _ => return None,
            }
        }))
    }
}

/// What one modelled thread is at.
#[derive(Default)]
struct Thread {
    at: Loop,
    /// A read that a wait has made already.
    handed: Option<(usize, u8, u64)>,
    /// Plain writes that the code has made since its last access: where, and
    /// what was there.
    written: Vec<(usize, u8, u64, usize)>,
    /// Plain reads that saw an older value, which is in memory until the next
    /// access: where, and the newest.
    older: Vec<(usize, u8, u64)>,
    /// Accesses since it last changed anything or paused, in a loop that does
    /// not pause: where from, of what, with what result, how often.
    repeated: Vec<(usize, usize, u64, u32)>,
    /// Pauses of a loop that counts.
    counted: u32,
}

/// The same accesses with the same result so often are a loop without a pause.
const REPEATED: u32 = 3;

/// Pauses of a loop that counts which are explored before it is pruned: a
/// file can make its bounds as small as that where `LOCKLAB_CHECKER` is
/// defined.
const COUNTED: u32 = 2;

/// A library in a child that explores one property.
struct World {
    library: Library,
    sites: Sites,
    places: HashMap<usize, Place>,
    facts: Facts,
    /// Its data as it was loaded.
    pristine: Vec<u8>,
    pool: &'static mut [Line],
    locks: usize,
    contexts: usize,
    alive: usize,
    /// Every access ever made in this child: first address and size.
    accesses: BTreeSet<(usize, u8)>,
    /// Words by their first address, of this execution.
    words: HashMap<usize, (usize, Box<Word>)>,
    threads: [Thread; MAX_THREADS],
    /// Whether the lock is being set up.
    quiet: bool,
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Uses the world; `f` neither uses it again nor switches to another thread.
fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    // SAFETY: made at the beginning of the first execution and never freed;
    // modelled threads are coroutines of one OS thread.
    f(unsafe { &mut *WORLD.load(Real::Relaxed) })
}

fn lines(bytes: usize) -> usize {
    bytes.div_ceil(64).max(1)
}

impl World {
    /// A new execution: everything as it was loaded.
    fn begin(library: &PathBuf, facts: &Facts) {
        if WORLD.load(Real::Relaxed).is_null() {
            let loaded = match Library::load(library, "locklab_hooks", HOOKS) {
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
                words: HashMap::new(),
                threads: Default::default(),
                quiet: false,
            });
            WORLD.store(Box::into_raw(world), Real::Relaxed);
        }
        with(|world| {
            (world.locks, world.contexts, world.alive) = (0, 0, 0);
            world.threads = Default::default();
            world.quiet = false;
            // What a failed or cut execution has left belongs to none.
            std::mem::forget(take(&mut world.words));
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

    fn start(&self) -> usize {
        self.pool.as_ptr() as usize
    }

    fn place(&mut self, site: usize) -> Place {
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

    /// The words that hold all accesses from `start` up to `end`: first
    /// address and width.
    fn layout(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut words: Vec<(usize, usize)> = Vec::new();
        for &(address, size) in self.accesses.range((start, 0)..(end, 0)) {
            let (mut first, mut width) = (address, usize::from(size));
            // With the word before, if they overlap: the least that is
            // aligned and holds both.
            while let Some(&(before, bytes)) = words.last()
                && before + bytes > first
            {
                let last = (before + bytes).max(first + width);
                width = 1;
                while before / width * width + width < last {
                    width *= 2;
                }
                first = before / width * width;
                words.pop();
            }
            words.push((first, width));
        }
        words
    }

    /// The word of an access.
    fn word(&self, address: usize, size: u8) -> Option<(usize, usize, *const Word)> {
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

/// Makes the checker's words for memory that is about to be used.
fn make_words(start: usize, end: usize) {
    for (first, width) in with(|world| world.layout(start, end)) {
        // SAFETY: the library's data or the pool.
        let value = unsafe { memory(first, width as u32) };
        let word = Box::new(Word::new(first, width, value));
        with(|world| world.words.insert(first, (width, word)));
    }
}

/// Reads memory as it is.
///
/// # Safety
/// There is memory.
unsafe fn memory(address: usize, size: u32) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: promised.
    unsafe {
        std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), size as usize);
    }
    u64::from_le_bytes(bytes)
}

/// Writes memory as it is.
///
/// # Safety
/// There is memory.
unsafe fn set_memory(address: usize, size: u32, value: u64) {
    // SAFETY: promised.
    unsafe {
        std::ptr::copy_nonoverlapping(
            value.to_le_bytes().as_ptr(),
            address as *mut u8,
            size as usize,
        );
    }
}

/// An access of a part of a word.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    width: usize,
    word: *const Word,
    shift: u32,
    size: u32,
    place: Place,
}

impl Part {
    /// The part at an address; begins the model again if it is news.
    fn at(address: usize, size: c_uint, site: usize) -> Self {
        let (found, place) = with(|world| {
            let place = world.place(site);
            let known = !world.accesses.insert((address, size as u8));
            (world.word(address, size as u8).filter(|_| known), place)
        });
        let Some((first, width, word)) = found else {
            let (pool, data) = with(|world| {
                let start = world.start();
                let pool = start..start + 64 * world.pool.len();
                (pool, world.library.data.clone())
            });
            if !pool.contains(&address) && !data.contains(&address) {
                if is_on_a_stack(address) {
                    panic!(
                        "not checked: {place} shares memory of a thread's stack; keep queue nodes \
                         in the context"
                    );
                }
                panic!(
                    "crash at {place} (address {address:#x}, which is neither the lock's nor a \
                     context's nor static data)"
                );
            }
            if size > 8 || address % 8 + size as usize > 8 {
                panic!("an access of {size} bytes at {place} that no aligned word holds");
            }
            locklab_verify::begin_again()
        };
        Self {
            first,
            width,
            word,
            shift: 8 * (address - first) as u32,
            size,
            place,
        }
    }

    /// The same, for an access of this order.
    fn headed_by(self, mo: c_int) -> Self {
        let place = match mo {
            CONSUME => self.place.with_order_given(),
            _ => self.place,
        };
        Self { place, ..self }
    }

    fn word(&self) -> &Word {
        // SAFETY: words stay until the execution ends.
        unsafe { &*self.word }
    }

    fn is_whole(&self) -> bool {
        self.width == self.size as usize
    }

    fn of(&self, whole: u64) -> u64 {
        low(self.size, whole >> self.shift)
    }

    fn within(&self, whole: u64, part: u64) -> u64 {
        let mask = low(self.size, u64::MAX) << self.shift;
        whole & !mask | (part << self.shift) & mask
    }

    /// Makes memory hold the newest value of the word.
    fn settle(&self) {
        let newest = self.word().latest();
        // SAFETY: a word of the lock's memory.
        unsafe { set_memory(self.first, self.width as u32, newest) };
    }

    /// What memory, the newest, holds of the whole word.
    fn newest(&self) -> u64 {
        // SAFETY: a word of the lock's memory.
        unsafe { memory(self.first, self.width as u32) }
    }

    fn load(&self, order: Ordering) -> u64 {
        self.place.set_caller();
        self.of(self.word().load(order))
    }

    fn store(&self, value: u64, order: Ordering) {
        self.place.set_caller();
        if self.is_whole() {
            self.word().store(value, order);
            self.settle();
            return;
        }
        match (self.word(), self.shift, self.size) {
            (Word::Word(word), 0, 1) => word.store_low_byte(value as u8, order),
            (Word::Word(word), 0, 2) => word.store_low_half(value as u16, order),
            _ => {
                self.change(order, |_| Some(value));
                return;
            }
        }
        self.settle();
    }

    /// A read-modify-write of the part by compare-and-swaps of the word; the
    /// first guess is the newest value, which only a switch makes wrong.
    fn change(&self, order: Ordering, change: impl Fn(u64) -> Option<u64>) -> u64 {
        let mut old = self.newest();
        loop {
            let Some(part) = change(self.of(old)) else {
                return self.of(old);
            };
            let new = self.within(old, part);
            self.place.set_caller();
            match self.word().compare(old, new, order, Ordering::Relaxed) {
                Ok(_) => {
                    self.settle();
                    return self.of(old);
                }
                Err(now) => old = now,
            }
        }
    }

    fn update(&self, operation: c_uint, value: u64, order: Ordering) -> u64 {
        let new = |old| low(self.size, updated(operation, old, value));
        if self.is_whole() {
            self.place.set_caller();
            if let Some(old) = self.word().update(operation, value, order) {
                self.settle();
                return old;
            }
        }
        if let (Word::Word(word), 16, 2, 0) = (self.word(), self.shift, self.size, operation) {
            self.place.set_caller();
            let old = u64::from(word.swap_high_half(value as u16, order));
            self.settle();
            return old;
        }
        self.change(order, |old| Some(new(old)))
    }

    fn compare(&self, expected: u64, new: u64, success: Ordering, failure: Ordering) -> u64 {
        let mut old = if self.is_whole() {
            expected
        } else {
            self.within(self.newest(), expected)
        };
        loop {
            self.place.set_caller();
            let whole = self.within(old, new);
            match self.word().compare(old, whole, success, failure) {
                Ok(_) => {
                    self.settle();
                    return expected;
                }
                // Another part has changed meanwhile.
                Err(now) if self.of(now) == expected => old = now,
                Err(now) => return self.of(now),
            }
        }
    }
}

/// The order of an access, as Rust has it.
fn order(order: c_int) -> Ordering {
    match order {
        0 => Ordering::Relaxed,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    }
}

/// `memory_order_consume`: what heads a dependency, taken for an Acquire; and
/// so not an order of the source that could be weakened.
const CONSUME: c_int = 1;

fn thread() -> usize {
    Loom::cpu()
}

/// Makes the checker know what the code has done to memory by itself since its
/// last access. Whether the access at hand is the model's.
fn flush(site: usize) -> bool {
    if with(|world| world.quiet) {
        return false;
    }
    isolate::SITE.store(site, Real::Relaxed);
    let me = thread();
    let (written, older) = with(|world| {
        let thread = &mut world.threads[me];
        (take(&mut thread.written), take(&mut thread.older))
    });
    for (address, size, newest) in older {
        // SAFETY: words of the lock's memory.
        unsafe { set_memory(address, size.into(), newest) };
    }
    for (address, size, before, site) in written {
        // SAFETY: as above.
        let value = unsafe { memory(address, size.into()) };
        // Until the store has its turn, others see what was there.
        // SAFETY: as above.
        unsafe { set_memory(address, size.into(), before) };
        Part::at(address, size.into(), site).store(value, Ordering::Relaxed);
    }
    true
}

/// This thread has changed something: what it did before is no round of a loop
/// that repeats.
fn has_changed() {
    let me = thread();
    with(|world| {
        let thread = &mut world.threads[me];
        thread.at.forget();
        thread.handed = None;
        thread.counted = 0;
        thread.repeated.clear();
    });
}

extern "C-unwind" fn load(address: usize, size: c_uint, mo: c_int, site: usize) -> u64 {
    if !flush(site) {
        // SAFETY: `lab_init` of the lock in its place.
        return unsafe { memory(address, size) };
    }
    let me = thread();
    let part = Part::at(address, size, site);
    let handed = with(|world| world.threads[me].handed.take());
    let value = match handed {
        Some((at, bytes, value)) if (at, c_uint::from(bytes)) == (address, size) => value,
        _ => {
            let part = part.headed_by(mo);
            part.load(order(mo))
        }
    };
    let read = Read {
        address,
        size: size as u8,
        value,
        order: mo,
        site,
    };
    with(|world| world.threads[me].at.has_read(read));
    repeats(&part, site, value);
    value
}

/// Notes a read-modify-write: one that leaves what it found is a read, of a
/// loop that may repeat.
fn has_updated(part: &Part, site: usize, (old, new): (u64, u64)) {
    if old != new {
        return has_changed();
    }
    let me = thread();
    let read = Read {
        address: part.first + (part.shift / 8) as usize,
        size: part.size as u8,
        value: old,
        // What is waited with orders nothing: it is made again after that.
        order: 0,
        site,
    };
    with(|world| {
        let thread = &mut world.threads[me];
        thread.handed = None;
        thread.at.has_read(read);
    });
    repeats(part, site, old);
}

/// Notes an access. A loop that makes the same ones again and again, with the
/// same results, and changes nothing, waits, although it does not pause.
fn repeats(part: &Part, site: usize, value: u64) {
    let me = thread();
    let often = with(|world| {
        let repeated = &mut world.threads[me].repeated;
        let known = repeated
            .iter_mut()
            .find(|(at, word, ..)| (*at, *word) == (site, part.first));
        match known {
            Some((_, _, before, often)) if *before == value => {
                *often += 1;
                *often
            }
            Some((_, _, before, often)) => {
                (*before, *often) = (value, 1);
                1
            }
            None => {
                repeated.push((site, part.first, value, 1));
                1
            }
        }
    });
    if often >= REPEATED {
        Loom::repeats(part.place);
    }
}

extern "C-unwind" fn store(address: usize, size: c_uint, value: u64, mo: c_int, site: usize) {
    if !flush(site) {
        // SAFETY: as `load`.
        return unsafe { set_memory(address, size, value) };
    }
    has_changed();
    let part = Part::at(address, size, site);
    part.store(low(size, value), order(mo));
}

extern "C-unwind" fn update(
    address: usize,
    size: c_uint,
    operation: c_uint,
    value: u64,
    mo: c_int,
    site: usize,
) -> u64 {
    let value = low(size, value);
    if !flush(site) {
        // SAFETY: as `load`.
        unsafe {
            let old = memory(address, size);
            set_memory(address, size, updated(operation, old, value));
            return old;
        }
    }
    let part = Part::at(address, size, site);
    let old = part.headed_by(mo).update(operation, value, order(mo));
    let new = low(size, updated(operation, old, value));
    has_updated(&part, site, (old, new));
    old
}

extern "C-unwind" fn compare(
    address: usize,
    size: c_uint,
    expected: u64,
    new: u64,
    success: c_int,
    failure: c_int,
    site: usize,
) -> u64 {
    let (expected, new) = (low(size, expected), low(size, new));
    if !flush(site) {
        // SAFETY: as `load`.
        unsafe {
            let old = memory(address, size);
            if old == expected {
                set_memory(address, size, new);
            }
            return old;
        }
    }
    let part = Part::at(address, size, site);
    let failure = match failure {
        0 | 3 => Ordering::Relaxed,
        _ => Ordering::Acquire,
    };
    let old = part
        .headed_by(success)
        .compare(expected, new, order(success), failure);
    let now = if old == expected { new } else { old };
    has_updated(&part, site, (old, now));
    old
}

extern "C-unwind" fn fence(mo: c_int, site: usize) {
    if !flush(site) {
        return;
    }
    let order = match mo {
        0 => return,
        1 | 2 => Ordering::Acquire,
        3 => Ordering::Release,
        4 => Ordering::AcqRel,
        _ => Ordering::SeqCst,
    };
    with(|world| world.place(site)).set_caller();
    Loom::fence(order);
}

/// Whether a plain access is one to the thread's own stack, or to constants.
fn is_own(address: usize) -> bool {
    let here = 0_u8;
    let me = thread();
    with(|world| {
        let library = &world.library;
        let whole = library.base..library.data.end.max(library.code.end);
        (std::ptr::from_ref(&here) as usize..world.threads[me].at.entry).contains(&address)
            || (whole.contains(&address) && !library.data.contains(&address))
    })
}

/// Whether this is memory of a thread that is in the lock's code.
fn is_on_a_stack(address: usize) -> bool {
    const STACK: usize = 64 << 10;
    with(|world| {
        let mut entries = world.threads.iter().map(|thread| thread.at.entry);
        entries.any(|entry| (entry.saturating_sub(STACK)..entry).contains(&address))
    })
}

/// The accesses of which a plain one is made, none across words.
fn pieces(address: usize, bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    let mut at = address;
    std::iter::from_fn(move || {
        let left = (address + bytes).checked_sub(at).filter(|left| *left > 0)?;
        let size = [8, 4, 2, 1]
            .into_iter()
            .find(|size| at % size == 0 && *size <= left)?;
        at += size;
        Some((at - size, size as u8))
    })
}

extern "C-unwind" fn read(address: usize, bytes: usize, site: usize) {
    if !flush(site) || is_own(address) {
        return;
    }
    let me = thread();
    // Others may have their turn at each load, so memory is changed after all.
    let mut seen = Vec::new();
    for (address, size) in pieces(address, bytes) {
        let part = Part::at(address, size.into(), site);
        let handed = with(|world| world.threads[me].handed.take());
        let value = match handed {
            Some((at, width, value)) if (at, width) == (address, size) => value,
            _ => part.load(Ordering::Relaxed),
        };
        let read = Read {
            address,
            size,
            value,
            order: 0,
            site,
        };
        with(|world| world.threads[me].at.has_read(read));
        repeats(&part, site, value);
        seen.push((part, address, size, value));
    }
    for (part, address, size, value) in seen {
        let newest = part.of(part.newest());
        if value != newest {
            with(|world| world.threads[me].older.push((address, size, newest)));
            // SAFETY: a word of the lock's memory.
            unsafe { set_memory(address, size.into(), value) };
        }
    }
}

extern "C-unwind" fn write(address: usize, bytes: usize, site: usize) {
    if !flush(site) || is_own(address) {
        return;
    }
    has_changed();
    let me = thread();
    for (address, size) in pieces(address, bytes) {
        let part = Part::at(address, size.into(), site);
        let before = part.of(part.newest());
        with(|world| {
            world.threads[me]
                .written
                .push((address, size, before, site))
        });
    }
}

extern "C-unwind" fn cpu() -> c_uint {
    Loom::cpu() as c_uint
}

extern "C-unwind" fn node() -> c_uint {
    Loom::node() as c_uint
}

extern "C-unwind" fn relax(frame: *const u8, _: usize, site: usize) {
    if !flush(site) {
        return;
    }
    let me = thread();
    let (round, place, counted) = with(|world| {
        let place = world.place(site);
        let thread = &mut world.threads[me];
        thread.repeated.clear();
        let bytes = thread.at.entry.saturating_sub(frame as usize);
        if frame.is_null() || bytes == 0 {
            return (None, place, u32::MAX);
        }
        // SAFETY: the live part of this thread's stack, up to the lock's
        // entry.
        let round = thread
            .at
            .pause(unsafe { std::slice::from_raw_parts(frame, bytes) });
        match round {
            Some(_) => thread.counted = 0,
            None => thread.counted += 1,
        }
        (round, place, thread.counted)
    });
    match round.as_ref().map(|round| &*round.words) {
        // Waits for another value of the one word, as a spin does.
        Some([word]) => {
            let part = Part::at(word.address, word.size.into(), word.site).headed_by(word.order);
            // It has read in vain already.
            Loom::repeats(part.place);
            part.place.set_caller();
            let value = part.of(part
                .word()
                .wait(order(word.order), |whole| part.of(whole) != word.value));
            with(|world| world.threads[me].handed = Some((word.address, word.size, value)));
        }
        Some(_) => Loom::repeats(place),
        // A loop that tries something each time, or counts.
        None if counted > COUNTED => {
            place.set_caller();
            Loom::relax();
        }
        None => {}
    }
}

extern "C-unwind" fn fail(text: *const c_char, file: *const c_char, line: c_uint) {
    // SAFETY: strings of the library.
    let (text, file) = unsafe {
        (
            std::ffi::CStr::from_ptr(text).to_string_lossy(),
            std::ffi::CStr::from_ptr(file).to_string_lossy(),
        )
    };
    let file = file.rsplit('/').next().unwrap_or("");
    panic!("the assertion `{text}` at {file}:{line} does not hold")
}

const HOOKS: Hooks = Hooks {
    load,
    store,
    update,
    compare,
    fence,
    read,
    write,
    cpu,
    node,
    relax,
    fail,
};

/// The lock as the models take it.
struct Checked {
    facts: Facts,
}

/// One lock of an execution: its place in the pool.
struct CheckedLock {
    address: usize,
}

/// A context's place in the pool.
struct CheckedContext(usize);

impl Subject for Checked {
    fn info(&self) -> Info {
        Info {
            try_lock: self.facts.try_lock,
            fairness: if self.facts.fifo {
                Fairness::Fifo
            } else {
                Fairness::Unfair
            },
            ..crate::INFO
        }
    }

    fn make(&self, _: bool) -> Box<dyn Instance> {
        let (address, bytes, init) = with(|world| {
            let bytes = 64 * lines(world.facts.lock_bytes);
            assert!(world.locks < MOST_LOCKS, "a model makes too many locks");
            let address = world.start() + world.locks * bytes;
            world.locks += 1;
            world.alive += 1;
            (address, bytes, world.library.init)
        });
        if let Some(init) = init {
            with(|world| world.quiet = true);
            // SAFETY: the lock in its place, before its first use.
            unsafe { init(address as *mut _) };
            with(|world| world.quiet = false);
        }
        // Static data, which it may have set up, such as each CPU's.
        let (data, old) = with(|world| {
            let data = world.library.data.clone();
            let old: Vec<usize> = world
                .words
                .keys()
                .copied()
                .filter(|first| data.contains(first))
                .collect();
            (data, old)
        });
        if init.is_some() || old.is_empty() {
            for first in old {
                drop(with(|world| world.words.remove(&first)));
            }
            make_words(data.start, data.end);
        }
        locklab_verify::owns_static_data(data.start, data.len());
        make_words(address, address + bytes);
        Box::new(CheckedLock { address })
    }
}

impl Drop for CheckedLock {
    fn drop(&mut self) {
        let words = with(|world| {
            world.alive -= 1;
            match world.alive {
                0 => take(&mut world.words),
                _ => HashMap::new(),
            }
        });
        // In an order that every execution has.
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_unstable_by_key(|(first, _)| *first);
        drop(words);
    }
}

impl CheckedLock {
    /// Calls the lock's code on a context.
    #[inline(never)]
    fn call<R>(&self, context: &Context, f: impl FnOnce(&Library, usize, usize) -> R) -> R {
        let context = context
            .downcast_ref::<CheckedContext>()
            .expect("a context of this lock")
            .0;
        let marker = 0_u8;
        let me = thread();
        isolate::CPU.store(me, Real::Relaxed);
        // An interrupt may come here while the thread waits.
        let (library, before) = with(|world| {
            let before = take(&mut world.threads[me]);
            world.threads[me]
                .at
                .enter(std::ptr::from_ref(&marker) as usize);
            (world.library.clone(), before)
        });
        let result = f(&library, self.address, context);
        flush(0);
        with(|world| world.threads[me] = before);
        result
    }
}

impl Instance for CheckedLock {
    fn memory(&self) -> (usize, usize) {
        (self.address, with(|world| world.facts.lock_bytes))
    }

    fn context(&self) -> (Context, usize, usize) {
        let (address, room, bytes) = with(|world| {
            let room = 64 * lines(world.facts.ctx_bytes);
            let first = world.start() + MOST_LOCKS * 64 * lines(world.facts.lock_bytes);
            assert!(
                world.contexts < MOST_CONTEXTS,
                "a model makes too many contexts"
            );
            let address = first + world.contexts * room;
            world.contexts += 1;
            (address, room, world.facts.ctx_bytes)
        });
        make_words(address, address + room);
        // One that nothing is kept in has no name in a trace.
        let shown = if bytes > 1 { bytes } else { 0 };
        (Box::new(CheckedContext(address)), address, shown)
    }

    unsafe fn lock(&self, context: &Context) {
        self.call(context, |library, lock, context| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.lock)(lock as *mut _, context as *mut _) }
        });
    }

    unsafe fn try_lock(&self, context: &Context) -> bool {
        self.call(context, |library, lock, context| match library.try_lock {
            // SAFETY: the caller's promise, passed on.
            Some(take) => unsafe { take(lock as *mut _, context as *mut _) != 0 },
            None => false,
        })
    }

    unsafe fn unlock(&self, context: &Context) {
        self.call(context, |library, lock, context| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.unlock)(lock as *mut _, context as *mut _) }
        });
    }
}
