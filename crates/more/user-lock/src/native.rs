//! A compiled lock on this machine's own CPUs: its bytes are in the
//! Rust type, so that the backend decides where they lie.
//!
//! Every call goes through a pointer, like a call into a library: a lock that
//! was compiled separately cannot be inlined, and a comparison with one that is
//! inlined says so.

use crate::crash;
use crate::explain::Runner;
use crate::inspect::{self, Facts};
use crate::isolate;
use crate::library::{Act, LIBRARIES, Library, found_wrong};
use crate::user_lock::UserLock;
use locklab_host::error::Error;
use locklab_locks::catalogue::Visitor;
use locklab_locks::{Host, Info, NativePlatform, RawLock, Threads};
use locklab_native::{LockCode, subject};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_uint};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The functions that the plain code calls, in the layout of c/native.c.
#[repr(C)]
#[derive(Clone, Copy)]
struct HostTable {
    cpu: extern "C-unwind" fn() -> c_uint,
    node: extern "C-unwind" fn() -> c_uint,
    fail: extern "C-unwind" fn(*const c_char, *const c_char, c_uint),
}

/// Holds what every library for this machine calls.
const HOST: HostTable = HostTable { cpu, node, fail };

extern "C-unwind" fn cpu() -> c_uint {
    <Threads as Host>::cpu() as c_uint
}

extern "C-unwind" fn node() -> c_uint {
    Threads::node() as c_uint
}

extern "C-unwind" fn fail(text: *const c_char, file: *const c_char, line: c_uint) {
    // SAFETY: strings of the library.
    let wrong = unsafe { found_wrong(text, file, line) };
    if isolate::in_a_child() {
        isolate::give_up(&wrong);
    }
    crash::give_up(&wrong)
}

/// The loaded libraries, by the slot of their types: a type
/// cannot hold a value, and a backend constructs locks of all of them
/// alternately.
static SLOTS: [OnceLock<Library>; LIBRARIES] = [const { OnceLock::new() }; LIBRARIES];

fn library<const SLOT: usize>() -> &'static Library {
    SLOTS[SLOT].get().expect("set before its types are visited")
}

/// A library loaded for this machine's own CPUs.
#[derive(Clone, Debug)]
pub struct NativeLibrary {
    name: String,
    lock_lines: usize,
    ctx_lines: usize,
    slot: usize,
}

impl UserLock {
    /// Registers it under this name for this machine's own CPUs.
    ///
    /// # Errors
    /// The same errors as [`UserLock::load_native`].
    pub fn register_here(&self, name: &str) -> Result<(), Error> {
        struct Code;
        impl Visitor<NativePlatform> for Code {
            type Output = LockCode;
            fn visit<L: RawLock<NativePlatform>>(self) -> LockCode {
                LockCode::of::<L>()
            }
        }
        subject::register(self.subject(name), self.load_native()?.visit(Code)?);
        Ok(())
    }

    /// Loads it into this process, after a child has tried it: from here on a
    /// crash of the lock is a sentence that has its line, and ends what measures
    /// it (see [`locklab_native::crash`]).
    ///
    /// # Errors
    /// If it cannot be loaded, eight others are loaded already, or it did not
    /// survive the trial.
    pub fn load_native(&self) -> Result<NativeLibrary, Error> {
        let facts = self.facts();
        let lines = |bytes: usize| bytes.div_ceil(64).max(1);
        self.try_natively()?;
        let library = Library::load(self.native_object(), "locklab_host", HOST)?;
        let slot = SLOTS
            .iter()
            .position(|slot| slot.set(library.clone()).is_ok())
            .ok_or_else(|| {
                Error::Usage(format!(
                    "{}: {LIBRARIES} locks of your own at most are measured on this machine in \
                     one run; measure the others in a second one",
                    self.name()
                ))
            })?;
        crash::explain(self, &library, slot)
            .map_err(|e| Error::Failed(format!("cannot watch {}: {e}", self.name())))?;
        Ok(NativeLibrary {
            name: self.name().to_owned(),
            lock_lines: lines(facts.lock_bytes),
            ctx_lines: lines(facts.ctx_bytes),
            slot,
        })
    }

    /// Tries it in a child process: two threads acquire it a few thousand
    /// times.
    fn try_natively(&self) -> Result<(), Error> {
        let object = self.native_object().to_owned();
        let facts = self.facts().clone();
        self.in_child(Runner::Thread, self.native_object(), move || {
            let library =
                Library::load(&object, "locklab_host", HOST).map_err(|e| e.to_string())?;
            isolate::watch_code(library.base, &library.code);
            trial(&library, &facts)
        })?
        .map_err(|why| Error::Failed(format!("{}: {why}", self.name())))
    }
}

/// Number of acquisitions of each thread in a trial.
const TURNS: usize = 2_000;

fn trial(library: &Library, facts: &Facts) -> Result<(), String> {
    #[repr(C, align(64))]
    struct Line(UnsafeCell<[u8; 64]>);
    // SAFETY: the lock's code synchronises, or the trial finds that it does
    // not.
    unsafe impl Sync for Line {}
    let room = |bytes: usize| -> Vec<Line> {
        (0..bytes.div_ceil(64).max(1))
            .map(|_| Line(UnsafeCell::new([0; 64])))
            .collect()
    };
    let start = |lines: &[Line]| lines.as_ptr().cast_mut() as usize;
    let memory = room(facts.lock_bytes);
    let lock = start(&memory);
    if let Some(init) = library.init {
        // SAFETY: memory of its size, in its place.
        unsafe { init(lock as *mut _) };
    }
    let count = [Counter(UnsafeCell::new(0)), Counter(UnsafeCell::new(0))];
    let torn = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let memory = room(facts.ctx_bytes);
                let ctx = start(&memory);
                for turn in 0..TURNS {
                    // SAFETY: memory of their sizes; each context is its
                    // thread's own.
                    unsafe {
                        let (lock, ctx) = (lock as *mut _, ctx as *mut _);
                        // A reader sees both counts between two writers.
                        let tried = turn % 4 == 3
                            && library.try_read.is_some_and(|take| take(lock, ctx) != 0);
                        if !tried {
                            (library.read_lock)(lock, ctx);
                        }
                        if count[0].get() != count[1].get() {
                            torn.store(true, Ordering::Relaxed);
                        }
                        (library.read_unlock)(lock, ctx);
                        let tried = turn % 2 == 1
                            && library.try_lock.is_some_and(|take| take(lock, ctx) != 0);
                        if !tried {
                            (library.lock)(lock, ctx);
                        }
                        count[0].add();
                        count[1].add();
                        (library.unlock)(lock, ctx);
                    }
                }
                // Other threads may still read it.
                std::mem::forget(memory);
            });
        }
    });
    let [kept, _] = count.map(|count| count.0.into_inner());
    if torn.into_inner() {
        return Err("it does not exclude: a reader was inside beside a writer".to_owned());
    }
    if kept != 2 * TURNS {
        return Err(format!(
            "it does not exclude: of {} increments under the lock {kept} were kept",
            2 * TURNS
        ));
    }
    Ok(())
}

/// A plain counter protected by the lock.
struct Counter(UnsafeCell<usize>);

// SAFETY: whether accesses are ordered is what the trial finds out; both are
// volatile, so that no compiler builds on it.
unsafe impl Sync for Counter {}

impl Counter {
    fn get(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.0.get().read_volatile() }
    }

    fn add(&self) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(self.get() + 1) };
    }
}

impl NativeLibrary {
    /// Returns the name in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Visits the lock as one of this machine.
    ///
    /// # Errors
    /// If it is larger than 64 KiB, or its context larger than 4 KiB.
    pub fn visit<V: Visitor<NativePlatform>>(&self, visitor: V) -> Result<V::Output, Error> {
        /// The type of a lock of this size in this slot.
        macro_rules! of_slot {
            ($lines:literal, $context:literal, $($slot:literal)*) => {
                match self.slot {
                    $($slot => visitor.visit::<NativeLock<$lines, $context, $slot>>(),)*
                    slot => unreachable!("{slot} is not below {LIBRARIES}"),
                }
            };
        }
        Ok(match (self.lock_lines, self.ctx_lines) {
            (..=1, ..=1) => of_slot!(1, 1, 0 1 2 3 4 5 6 7),
            (..=1024, ..=64) => of_slot!(1024, 64, 0 1 2 3 4 5 6 7),
            _ => {
                return Err(Error::Usage(format!(
                    "{} cannot be measured on this machine: its lock must have at most 64 KiB and \
                     its context 4 KiB",
                    self.name
                )));
            }
        })
    }
}

/// A lock of `LINES` cache lines whose code is in a library.
#[repr(C, align(64))]
struct NativeLock<const LINES: usize, const CONTEXT: usize, const SLOT: usize> {
    bytes: UnsafeCell<[[u8; 64]; LINES]>,
}

// SAFETY: whether the lock's code excludes is what is measured with a check;
// nothing else reaches the bytes.
unsafe impl<const LINES: usize, const CONTEXT: usize, const SLOT: usize> Send
    for NativeLock<LINES, CONTEXT, SLOT>
{
}
// SAFETY: as above.
unsafe impl<const LINES: usize, const CONTEXT: usize, const SLOT: usize> Sync
    for NativeLock<LINES, CONTEXT, SLOT>
{
}

impl<const LINES: usize, const CONTEXT: usize, const SLOT: usize> Default
    for NativeLock<LINES, CONTEXT, SLOT>
{
    fn default() -> Self {
        Self {
            bytes: UnsafeCell::new([[0; 64]; LINES]),
        }
    }
}

/// A thread's context, and beside it, on a line that is only read, the code
/// to call.
#[repr(C, align(64))]
struct NativeContext<const LINES: usize, const SLOT: usize> {
    bytes: UnsafeCell<[[u8; 64]; LINES]>,
    lock: Act,
    unlock: Act,
    read_lock: Act,
    read_unlock: Act,
}

impl<const LINES: usize, const SLOT: usize> Default for NativeContext<LINES, SLOT> {
    fn default() -> Self {
        let library = library::<SLOT>();
        Self {
            bytes: UnsafeCell::new([[0; 64]; LINES]),
            lock: library.lock,
            unlock: library.unlock,
            read_lock: library.read_lock,
            read_unlock: library.read_unlock,
        }
    }
}

// SAFETY: the user's promise, which every run checks by what it counts under
// the lock.
unsafe impl<const LINES: usize, const CONTEXT: usize, const SLOT: usize> RawLock<NativePlatform>
    for NativeLock<LINES, CONTEXT, SLOT>
{
    type Ctx = NativeContext<CONTEXT, SLOT>;

    const INFO: Info = inspect::INFO;

    fn settle(&self) {
        if let Some(init) = library::<SLOT>().init {
            // SAFETY: the lock in its place, before its first use.
            unsafe { init(self.bytes.get().cast()) };
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise, passed on.
        unsafe { (ctx.lock)(self.bytes.get().cast(), ctx.bytes.get().cast()) };
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise, passed on.
        unsafe { (ctx.unlock)(self.bytes.get().cast(), ctx.bytes.get().cast()) };
    }

    #[inline(always)]
    unsafe fn read_lock(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise, passed on.
        unsafe { (ctx.read_lock)(self.bytes.get().cast(), ctx.bytes.get().cast()) };
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, ctx: &Self::Ctx) {
        // SAFETY: the caller's promise, passed on.
        unsafe { (ctx.read_unlock)(self.bytes.get().cast(), ctx.bytes.get().cast()) };
    }
}
