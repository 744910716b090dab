//! A compiled lock in the simulator: each access that it reports is an event.
//!
//! An unmodified spin loop sleeps where it can be shown to repeat
//! ([`crate::repeat`]).

use crate::inspect::{self, Facts};
use crate::isolate::{self, ACCESSES, CPU, SITE};
use crate::library::{Hooks, Library, Sites, found_wrong, low, updated};
use crate::memory::{compare_memory, memory, set_memory};
use crate::repeat::{Loop, Read};
use locklab_locks::{Info, RawLock};
use locklab_sim::by_address::{self, Memory, Region};
use locklab_sim::{Scenario, Sim, SimError, Simulation, simulate_outside};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_uint};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// The result of a simulation in a child.
#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It has an outcome.
    Well(Box<Simulation>),
    /// The lock does not work, or cannot be simulated in this scenario.
    Badly(String),
}

/// Simulates the lock in `library`; runs in a child process of its own.
pub(crate) fn simulate(library: &Path, facts: &Facts, scenario: &Scenario) -> Answer {
    let loaded = match Library::load(library, "locklab_hooks", HOOKS) {
        Ok(loaded) => loaded,
        Err(e) => return Answer::Badly(e.to_string()),
    };
    isolate::watch_code(loaded.base, &loaded.code);
    let sites = Sites::new(&loaded, library);
    let pool = Pool::new(facts, scenario);
    let regions = pool.regions(&loaded);
    let world = Box::new(World {
        library: loaded,
        pool,
        cpus: (0..scenario.threads).map(|_| Loop::default()).collect(),
        quiet: false,
    });
    WORLD.store(Box::into_raw(world), Ordering::Relaxed);
    let place_of = |site| sites.line(site);
    let memory = Memory {
        regions,
        place_of: Some(&place_of),
    };
    let outcome = if facts.readers_share {
        simulate_outside::<Simulated<true>>(scenario, memory, Simulated::is_held)
    } else {
        simulate_outside::<Simulated<false>>(scenario, memory, Simulated::is_held)
    };
    match outcome {
        Ok(simulation) => Answer::Well(Box::new(simulation)),
        Err(error) => Answer::Badly(explain(error, &sites)),
    }
}

/// The error, with the line of the file where the simulator cannot know it.
fn explain(error: SimError, sites: &Sites) -> String {
    let line = |site: usize| sites.line(site).unwrap_or_else(|| "its code".into());
    let last = SITE.load(Ordering::Relaxed);
    match &error {
        SimError::Outside { address } => {
            let cpu = CPU.load(Ordering::Relaxed);
            format!(
                "CPU {cpu} crashed at {} (address {address:#x}, which is neither the lock's nor a \
                 context's nor static data)",
                line(last)
            )
        }
        SimError::TwoHolders { .. } => format!("{error}; it came in at {}", line(last)),
        _ => error.to_string(),
    }
}

/// The memory of locks and contexts, in lines of their own.
struct Pool {
    memory: &'static mut [Line],
    labels: Vec<(Range<usize>, String)>,
    lock: usize,
    ctx: usize,
    locks: usize,
    locks_given: Cell<usize>,
    contexts_given: Cell<usize>,
    /// For each line, the CPU that has used it.
    users: Vec<Cell<u16>>,
    /// Lines that are not in the pool, such as a stack's, and are shared.
    elsewhere: RefCell<HashSet<usize>>,
}

/// No CPU has used the line.
const NOBODY: u16 = 0;
/// Several CPUs have used the line, or one by an atomic access.
const SHARED: u16 = u16::MAX;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; LINE]);

impl Pool {
    fn new(facts: &Facts, scenario: &Scenario) -> Self {
        let lines = |bytes: usize| bytes.div_ceil(LINE).max(1) * LINE;
        let (lock, ctx) = (lines(facts.lock_bytes), lines(facts.ctx_bytes));
        let locks = scenario.workload.locks();
        let total = locks * lock + scenario.threads * locks * ctx;
        let memory = vec![Line([0; LINE]); total / LINE].leak();
        let users = vec![Cell::new(NOBODY); total / LINE];
        let start = memory.as_ptr() as usize;
        let mut labels = Vec::new();
        let mut at = start;
        let mut label = |bytes: usize, room: usize, text: String| {
            if bytes > 0 {
                labels.push((at..at + bytes, text));
            }
            at += room;
        };
        let name = |what: &str, n: usize| match locks {
            1 => what.to_owned(),
            _ => format!("{what} {n}"),
        };
        for n in 0..locks {
            label(facts.lock_bytes, lock, name("lock", n));
        }
        for cpu in 0..scenario.threads {
            for n in 0..locks {
                label(
                    facts.ctx_bytes,
                    ctx,
                    format!("{} of CPU {cpu}", name("context", n)),
                );
            }
        }
        Self {
            memory,
            labels,
            lock,
            ctx,
            locks,
            locks_given: Cell::new(0),
            contexts_given: Cell::new(0),
            users,
            elsewhere: RefCell::default(),
        }
    }

    fn start(&self) -> usize {
        self.memory.as_ptr() as usize
    }

    /// Whether a plain access is to a line that only this CPU, whose code has
    /// the stack `own`, has ever used, and only by plain accesses: private
    /// data, whose latency an out-of-order CPU hides, and which a Rust lock
    /// keeps outside the platform's atomics (or in registers: a variable whose
    /// address the compiler needs for a report is one of them).
    fn is_private(&self, address: usize, cpu: usize, own: &Range<usize>) -> bool {
        let line = address.wrapping_sub(self.start()) / LINE;
        let Some(user) = self.users.get(line) else {
            let elsewhere = &mut *self.elsewhere.borrow_mut();
            let line = address / LINE;
            if own.contains(&address) {
                return elsewhere.is_empty() || !elsewhere.contains(&line);
            }
            elsewhere.insert(line);
            return false;
        };
        let me = cpu as u16 + 1;
        if user.get() == NOBODY || user.get() == me {
            user.set(me);
            return true;
        }
        user.set(SHARED);
        false
    }

    /// Notes an atomic access.
    fn share(&self, address: usize) {
        let line = address.wrapping_sub(self.start()) / LINE;
        match self.users.get(line) {
            Some(user) => user.set(SHARED),
            None => {
                self.elsewhere.borrow_mut().insert(address / LINE);
            }
        }
    }

    fn regions(&self, library: &Library) -> Vec<Region> {
        let start = library.data.start / LINE * LINE;
        let mut regions = vec![Region {
            addresses: self.start()..self.start() + self.memory.len() * LINE,
            labels: self.labels.clone(),
        }];
        if !library.data.is_empty() {
            regions.push(Region {
                addresses: start..library.data.end,
                labels: vec![(library.data.clone(), "static data".into())],
            });
        }
        regions
    }
}

struct World {
    library: Library,
    pool: Pool,
    cpus: Vec<Loop>,
    /// Whether the accesses are not part of the simulation: `lab_init`.
    quiet: bool,
}

/// The only world of the child.
static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Uses the world; `f` neither uses it again nor switches to another CPU.
#[inline(always)]
fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    // SAFETY: set before the simulation begins and never freed; the child has
    // one thread, and no `f` comes back here.
    f(unsafe { &mut *WORLD.load(Ordering::Relaxed) })
}

/// Whether this access is part of the simulation; if so, notes it.
#[inline]
fn enters(site: usize) -> bool {
    if with(|world| world.quiet) {
        return false;
    }
    ACCESSES.store(ACCESSES.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    SITE.store(site, Ordering::Relaxed);
    CPU.store(by_address::cpu(), Ordering::Relaxed);
    true
}

/// Notes an atomic access that writes.
fn writes(address: usize) {
    let cpu = by_address::cpu();
    with(|world| {
        world.pool.share(address);
        world.cpus[cpu].forget();
    });
}

/// Whether a plain access costs nothing.
fn is_private(address: usize) -> bool {
    let here = 0_u8;
    let cpu = by_address::cpu();
    with(|world| {
        let own = std::ptr::from_ref(&here) as usize..world.cpus[cpu].entry;
        world.pool.is_private(address, cpu, &own)
    })
}

fn forget() {
    let cpu = by_address::cpu();
    with(|world| world.cpus[cpu].forget());
}

fn reads(address: usize, size: u8, value: u64) {
    let cpu = by_address::cpu();
    let read = Read {
        address,
        size,
        value,
        order: 0,
        site: 0,
    };
    with(|world| world.cpus[cpu].has_read(read));
}

extern "C-unwind" fn load(address: usize, size: c_uint, _: c_int, site: usize) -> u64 {
    if !enters(site) {
        // SAFETY: `lab_init` of the lock in its place.
        return unsafe { memory(address, size) };
    }
    with(|world| world.pool.share(address));
    // SAFETY: if it is no simulated memory, this does not return.
    let value = unsafe { by_address::load(address, size as u8, site) };
    let value = low(size, value);
    reads(address, size as u8, value);
    value
}

extern "C-unwind" fn store(address: usize, size: c_uint, value: u64, order: c_int, site: usize) {
    if !enters(site) {
        // SAFETY: as `load`.
        return unsafe { set_memory(address, size, value) };
    }
    writes(address);
    // SAFETY: as `load`.
    unsafe {
        if order == SEQ_CST {
            by_address::update(address, size as u8, site, |_| Some(low(size, value)));
        } else {
            by_address::store(address, size as u8, low(size, value), site);
        }
    }
}

/// `__ATOMIC_SEQ_CST`.
const SEQ_CST: c_int = 5;

extern "C-unwind" fn update(
    address: usize,
    size: c_uint,
    operation: c_uint,
    value: u64,
    _: c_int,
    site: usize,
) -> u64 {
    let change = |old| low(size, updated(operation, old, value));
    if !enters(site) {
        // SAFETY: as `load`.
        unsafe {
            let old = memory(address, size);
            set_memory(address, size, change(old));
            return old;
        }
    }
    writes(address);
    // SAFETY: as `load`.
    unsafe { by_address::update(address, size as u8, site, |old| Some(change(old))) }
}

extern "C-unwind" fn compare(
    address: usize,
    size: c_uint,
    expected: u64,
    new: u64,
    _: c_int,
    _: c_int,
    site: usize,
) -> u64 {
    let (expected, new) = (low(size, expected), low(size, new));
    if !enters(site) {
        // SAFETY: as `load`.
        return unsafe { compare_memory(address, size, expected, new) };
    }
    writes(address);
    // SAFETY: as `load`.
    unsafe {
        by_address::update(address, size as u8, site, |old| {
            (old == expected).then_some(new)
        })
    }
}

extern "C-unwind" fn fence(order: c_int, site: usize) {
    if enters(site) && order == SEQ_CST {
        forget();
        by_address::fence();
    }
}

extern "C-unwind" fn read(address: usize, bytes: usize, _: c_uint, site: usize) {
    if !enters(site) {
        return;
    }
    for (address, size) in words_of(address, bytes) {
        let private = is_private(address);
        if private || by_address::is_simulated(address) {
            if !private {
                by_address::read(address, size, site);
            }
            // SAFETY: simulated memory is memory.
            reads(address, size, unsafe { memory(address, size.into()) });
        } else {
            may_be_read(address);
        }
    }
}

extern "C-unwind" fn write(address: usize, bytes: usize, _: c_uint, site: usize) {
    if !enters(site) {
        return;
    }
    forget();
    for (address, size) in words_of(address, bytes) {
        if is_private(address) {
            // As in `read`.
        } else if by_address::is_simulated(address) {
            by_address::write(address, size, site);
        } else {
            may_be_read(address);
        }
    }
}

/// The accesses that copy this many bytes, one for each word of the machine.
fn words_of(address: usize, bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    let step = if bytes <= 8 { bytes.max(1) } else { 8 };
    (0..bytes)
        .step_by(step)
        .map(move |at| (address + at, step.min(bytes - at) as u8))
}

/// The deeper part of a CPU's stack, and constants, are used by no other CPU:
/// such an access costs nothing here. Anywhere else it is a crash: of the
/// access itself or, where there happens to be memory, by this check.
fn may_be_read(address: usize) {
    let here = 0_u8;
    let cpu = by_address::cpu();
    let well = with(|world| {
        let library = &world.library;
        (std::ptr::from_ref(&here) as usize..world.cpus[cpu].entry).contains(&address)
            || (library.base..library.data.end.max(library.code.end)).contains(&address)
    });
    if !well {
        // Ends the simulation, and does not return.
        // SAFETY: no access is made to what is not simulated.
        unsafe { by_address::load(address, 1, SITE.load(Ordering::Relaxed)) };
    }
}

extern "C-unwind" fn cpu() -> c_uint {
    by_address::cpu() as c_uint
}

extern "C-unwind" fn node() -> c_uint {
    by_address::node() as c_uint
}

extern "C-unwind" fn relax(frame: *const u8, _: usize, site: usize) {
    if !enters(site) {
        return;
    }
    let cpu = by_address::cpu();
    let round = with(|world| {
        let at = &mut world.cpus[cpu];
        let bytes = at.entry.saturating_sub(frame as usize);
        if frame.is_null() || bytes == 0 {
            return None;
        }
        // SAFETY: the live part of this CPU's stack, up to the lock's entry.
        let round = at.pause(unsafe { std::slice::from_raw_parts(frame, bytes) })?;
        for word in &round.words {
            // A line must have been fetched to be watched.
            world.pool.share(word.address);
        }
        Some(round)
    });
    let Some(round) = round else {
        return by_address::pause();
    };
    let seen: Vec<_> = round
        .words
        .iter()
        .map(|word| (word.address, word.size, word.value))
        .collect();
    // SAFETY: words that were simulated memory when they were read.
    unsafe { by_address::pause_until_change(&seen, round.reads, round.pauses, site) }
}

extern "C-unwind" fn fail(text: *const c_char, file: *const c_char, line: c_uint) {
    // SAFETY: strings of the library.
    let wrong = unsafe { found_wrong(text, file, line) };
    // Ends the child with an answer; unwinding would have to pass a
    // coroutine's C frames.
    isolate::give_up(&format!("CPU {}: {wrong}", by_address::cpu()))
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

/// A lock in the pool, for the simulator's workloads.
struct Simulated<const SHARED: bool> {
    address: usize,
}

// SAFETY: a simulation is one thread.
unsafe impl<const SHARED: bool> Send for Simulated<SHARED> {}
// SAFETY: as above.
unsafe impl<const SHARED: bool> Sync for Simulated<SHARED> {}

/// A context in the pool.
struct Context(usize);

impl<const SHARED: bool> Default for Simulated<SHARED> {
    fn default() -> Self {
        with(|world| {
            let pool = &world.pool;
            let n = pool.locks_given.replace(pool.locks_given.get() + 1);
            Self {
                address: pool.start() + n * pool.lock,
            }
        })
    }
}

impl Default for Context {
    fn default() -> Self {
        with(|world| {
            let pool = &world.pool;
            let n = pool.contexts_given.replace(pool.contexts_given.get() + 1);
            Self(pool.start() + pool.locks * pool.lock + n * pool.ctx)
        })
    }
}

impl<const SHARED: bool> Simulated<SHARED> {
    /// Calls the lock's code.
    #[inline(never)]
    fn call<R>(&self, f: impl FnOnce(&Library) -> R) -> R {
        let marker = 0_u8;
        let entry = std::ptr::from_ref(&marker) as usize;
        let cpu = by_address::cpu();
        CPU.store(cpu, Ordering::Relaxed);
        let library = with(|world| {
            world.cpus[cpu].enter(entry);
            world.library.clone()
        });
        f(&library)
    }

    /// Whether the lock is held.
    fn is_held(&self) -> bool {
        self.call(|library| match library.is_locked {
            // SAFETY: the lock in its place.
            Some(ask) => unsafe { ask(self.address as *const _) != 0 },
            None => {
                let word = self.address / 4 * 4;
                load(word, 4, 0, 0) != 0
            }
        })
    }
}

// SAFETY: exclusion is what a simulation finds out; the engine itself relies
// on nothing.
unsafe impl<const SHARED: bool> RawLock<Sim> for Simulated<SHARED> {
    type Ctx = Context;

    const INFO: Info = Info {
        readers_share: SHARED,
        ..inspect::INFO
    };

    fn settle(&self) {
        if let Some(init) = with(|world| world.library.init) {
            with(|world| world.quiet = true);
            // SAFETY: the lock in its place, before its first use.
            unsafe { init(self.address as *mut _) };
            with(|world| world.quiet = false);
        }
    }

    unsafe fn lock(&self, ctx: &Context) {
        // SAFETY: the caller's promise, passed on.
        self.call(|library| unsafe { (library.lock)(self.address as *mut _, ctx.0 as *mut _) });
    }

    unsafe fn unlock(&self, ctx: &Context) {
        // SAFETY: the caller's promise, passed on.
        self.call(|library| unsafe { (library.unlock)(self.address as *mut _, ctx.0 as *mut _) });
    }

    unsafe fn read_lock(&self, ctx: &Context) {
        self.call(|library| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.read_lock)(self.address as *mut _, ctx.0 as *mut _) }
        });
    }

    unsafe fn read_unlock(&self, ctx: &Context) {
        self.call(|library| {
            // SAFETY: the caller's promise, passed on.
            unsafe { (library.read_unlock)(self.address as *mut _, ctx.0 as *mut _) }
        });
    }
}
