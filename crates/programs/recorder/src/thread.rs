//! The records of a thread.
//!
//! A thread writes to a block of the file that is its own. When it ends, the
//! block goes on with the next thread, so that many short threads need few.

use crate::modules;
use crate::process::{self, Process, header, process};
use crate::stacks::{self, Site, Stacks, Walked};
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use libc::timespec;
use locklab_profile::clock::ticks;
use locklab_profile::sandbox;
use locklab_trace::{Encoder, Event, Frames, Header, LockKind, Stopped};

/// Describes what a thread needs to write; zeros are a valid one. Never unmapped.
#[repr(C)]
pub(crate) struct State {
    /// 1 while a record is written, or the stack walked: what a signal handler
    /// or the unwinder does meanwhile is not recorded. [`OWN_LOCK`] within an operation of
    /// a lock of the program's own: what that is made of is not recorded either.
    busy: u32,
    /// Holds what [`Process::image`] was when the thread began.
    image: u32,
    /// Counts how many operations the thread has recorded.
    operations: u32,
    /// The time at which the last of those ended that are timed.
    timed: u64,
    /// Says where the next record goes, and the end of the room for them.
    at: *mut u8,
    end: *mut u8,
    /// The ticks without a record after which the system is asked for switches.
    long: u64,
    thread: u64,
    /// Its number in the system while it lives, and 0 before and after.
    task: AtomicU32,
    /// Locks whose kind was recorded lately.
    kinds: [u64; KINDS],
    encoder: Encoder,
    stacks: Stacks,
    /// The next in the list of free ones.
    next: *mut State,
    /// The next in the list of all.
    older: *mut State,
}

/// Means in [`State::busy`] that an operation of a lock of the program's own goes on.
const OWN_LOCK: u32 = 2;

/// The number of locks whose kind is remembered.
const KINDS: usize = 8;

/// The key whose destructor notices the end of a thread, plus 1.
static KEY: AtomicU32 = AtomicU32::new(0);

/// The least that it took any thread to ask for switches, in ticks.
static ASKING: AtomicU64 = AtomicU64::new(u64::MAX);

impl State {
    /// Appends a record of an event at this reading of the clock.
    #[inline(always)]
    pub(crate) fn put(&mut self, tick: u64, event: &Event<'_>) {
        // Not where a wait ends: the thread may hold a lock then, which it would keep for
        // as long as it takes to ask.
        let waited = matches!(
            event,
            Event::Acquired
                | Event::Refused
                | Event::Released
                | Event::Woken { .. }
                | Event::Joined
                | Event::Slept
        );
        if !waited {
            self.after_long(tick);
        }
        self.record(tick, event, false);
    }

    /// Writes an operation that took no time.
    #[inline(always)]
    pub(crate) fn put_whole(&mut self, tick: u64, event: &Event<'_>) {
        self.after_long(tick);
        self.record(tick, event, true);
    }

    /// Is called before the record that ends a long stretch, in which the thread may
    /// have had no CPU.
    #[inline(always)]
    fn after_long(&mut self, tick: u64) {
        if tick.saturating_sub(self.encoder.tick()) > self.long && !self.at.is_null() {
            self.put_switches(tick);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_switches(&mut self, tick: u64) {
        let (switches, took) = switches();
        let mut least = ASKING.fetch_min(took, Ordering::Relaxed);
        if least == u64::MAX {
            // A first call that was interrupted would hide each wait that is shorter than a
            // hundred times the interruption, and never be corrected.
            least = (0..4).map(|_| self::switches().1).fold(took, u64::min);
            ASKING.fetch_min(least, Ordering::Relaxed);
        }
        // So that asking takes a hundredth of a thread's time at most, whatever a call of
        // this system costs.
        self.long = in_ticks(Event::LONG_NS).max(least.min(took).saturating_mul(100));
        self.record(tick, &switches, false);
    }

    #[inline(always)]
    fn record(&mut self, tick: u64, event: &Event<'_>, whole: bool) {
        self.busy = 1;
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the room of a block that is this thread's alone, or none.
        let room = unsafe {
            match NonNull::new(self.at) {
                Some(at) => core::slice::from_raw_parts_mut(
                    at.as_ptr(),
                    self.end.offset_from_unsigned(self.at),
                ),
                None => &mut [],
            }
        };
        let written = match whole {
            true => self.encoder.write_whole(tick, event, room),
            false => self.encoder.write(tick, event, room),
        };
        match written {
            // SAFETY: within the block.
            Some(used) => self.at = unsafe { self.at.add(used) },
            None => self.turn(tick, event, whole),
        }
        compiler_fence(Ordering::SeqCst);
        self.busy = 0;
    }

    /// Writes a record of now.
    pub(crate) fn put_now(&mut self, event: &Event<'_>) {
        self.put(ticks(), event);
    }

    /// Goes on in a new block.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, tick: u64, event: &Event<'_>, whole: bool) {
        let Some(header) = header() else {
            return;
        };
        let Some((at, end)) = process::claim(header) else {
            header.stop(tick, Stopped::Full);
            return;
        };
        (self.at, self.end) = (at, end);
        self.begin(tick);
        self.record(tick, event, whole);
    }

    fn begin(&mut self, tick: u64) {
        let (thread, image) = (self.thread, u64::from(self.image - 1));
        self.record(tick, &Event::Begin { thread, image }, false);
        self.put_switches(tick);
    }

    /// Notes that an operation of a lock of the program's own goes on.
    pub(crate) fn enters_user_lock(&mut self) {
        self.busy = OWN_LOCK;
    }

    /// Records what a lock is that is not plain, unless it was recorded lately.
    pub(crate) fn note_kind(&mut self, lock: u64, kind: LockKind) {
        let place = (lock / 64) as usize % KINDS;
        if self.kinds[place] != lock {
            self.kinds[place] = lock;
            self.put_now(&Event::Kind { lock, kind });
        }
    }

    /// Runs `f`, whose locks are not recorded.
    fn quietly<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.busy = 1;
        compiler_fence(Ordering::SeqCst);
        let result = f(self);
        compiler_fence(Ordering::SeqCst);
        self.busy = 0;
        result
    }

    /// Returns the number of the stack of a call.
    #[inline(always)]
    pub(crate) fn stack(&mut self, site: Site) -> u64 {
        match self.stacks.find(site) {
            Some(number) => number,
            None => self.new_stack(site),
        }
    }

    /// Records a stack with its frames.
    #[cold]
    #[inline(never)]
    fn new_stack(&mut self, site: Site) -> u64 {
        // The unwinder may take a mutex, for code made at run time.
        let walked = self.quietly(|state| stacks::walk(&mut state.stacks, site));
        let new = match walked {
            Walked::Known(number) => return number,
            Walked::New(new) => new,
        };
        let known = &process().modules;
        modules::cover(known, new.frames(), |event| self.put_now(event));
        let number = self.stacks.add(&new);
        self.put_now(&Event::Stack {
            number,
            frames: Frames(new.frames()),
        });
        number
    }

    /// Notes what the recording of an operation took that was timed, and ended now.
    pub(crate) fn note_cost(&mut self, now: u64, ticks: u64) {
        let before = core::mem::replace(&mut self.timed, now);
        let Some(header) = header().filter(|_| before > 0) else {
            return;
        };
        // An operation that lost its CPU took none of that, and a thread that waits or works
        // for so long between two is hardly slowed.
        let long = in_ticks(Event::LONG_NS);
        let every = u64::from(Event::COST_EVERY);
        let active = now.saturating_sub(before).min(every * long);
        header.note_spent((every * ticks.min(long)).min(active), active);
    }

    /// Returns whether this operation is one whose recording is timed.
    #[inline(always)]
    pub(crate) fn is_timed(&mut self) -> bool {
        self.operations = self.operations.wrapping_add(1);
        self.operations.is_multiple_of(Event::COST_EVERY)
    }
}

/// Says whether the process may not ask how often the system took a CPU from a thread.
static NO_USAGE: AtomicBool = AtomicBool::new(false);

/// Finds out what the process may ask; before any thread begins.
pub(crate) fn find_usage() {
    let asks = || {
        // SAFETY: zeros are a valid `rusage`, which is ours.
        unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            libc::syscall(libc::SYS_getrusage, libc::RUSAGE_THREAD, &raw mut usage) == 0
        }
    };
    // Relaxed: the process has one thread.
    NO_USAGE.store(!sandbox::allows(asks), Ordering::Relaxed);
}

/// Returns how often the system took the CPU from this thread, and how long it had one;
/// and how long it took to ask, in ticks.
fn switches() -> (Event<'static>, u64) {
    let from = ticks();
    // SAFETY: zeros are a valid `rusage` and a valid `timespec`, which are ours.
    let (usage, ran) = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        let mut ran: timespec = core::mem::zeroed();
        if NO_USAGE.load(Ordering::Relaxed) {
            // Why a thread had no CPU is not known then. It is taken to have waited: its
            // waits are as many as never happened in between.
            usage.ru_nvcsw = i64::try_from(from).unwrap_or(i64::MAX);
        } else {
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        }
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut ran);
        (usage, ran)
    };
    let took = ticks().saturating_sub(from);
    let event = Event::Switches {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
        ran_ns: ran.tv_sec as u64 * 1_000_000_000 + ran.tv_nsec as u64,
        took,
    };
    (event, took)
}

// The pointer to the thread's state. A `thread_local!` of a shared library
// costs a call that may allocate; a preloaded one may use the static block,
// which stable Rust cannot ask for but in assembly.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".section .tbss.locklab_recorder_state,\"awT\",@nobits",
    ".p2align 3",
    ".globl locklab_recorder_state",
    ".hidden locklab_recorder_state",
    ".type locklab_recorder_state, @object",
    ".size locklab_recorder_state, 8",
    "locklab_recorder_state:",
    ".zero 8",
    ".text",
);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn own() -> *mut State {
    let state: *mut State;
    // SAFETY: reads the thread's own word; the symbol is in the static block
    // because the library is there from the start (initial-exec).
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + locklab_recorder_state@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) state,
            options(nostack, readonly, preserves_flags)
        );
    }
    state
}

#[cfg(target_arch = "x86_64")]
fn set_own(state: *mut State) {
    // SAFETY: as in `own`.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + locklab_recorder_state@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) state,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
std::thread_local! {
    static STATE: core::cell::Cell<*mut State> = const { core::cell::Cell::new(ptr::null_mut()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn own() -> *mut State {
    STATE.get()
}

#[cfg(not(target_arch = "x86_64"))]
fn set_own(state: *mut State) {
    STATE.set(state);
}

/// Returns the state of this thread; `None` if nothing is to be recorded now.
#[inline(always)]
pub(crate) fn current() -> Option<NonNull<State>> {
    let header = header()?;
    if header.is_stopped() {
        return None;
    }
    let state = own();
    // SAFETY: a state is never unmapped, and this one is the thread's.
    if !state.is_null() && unsafe { (*state).image } == process().image.load(Ordering::Relaxed) {
        // SAFETY: as above.
        return (unsafe { (*state).busy } == 0).then_some(unsafe { NonNull::new_unchecked(state) });
    }
    begin(header)
}

/// Returns the state of this thread if it is within an operation of a lock of the
/// program's own, which ends now.
pub(crate) fn leaves_user_lock() -> Option<NonNull<State>> {
    let header = header()?;
    let state = NonNull::new(own())?;
    // SAFETY: a state is never unmapped, and this one is the thread's.
    let own = unsafe { &mut *state.as_ptr() };
    if own.busy != OWN_LOCK || own.image != process().image.load(Ordering::Relaxed) {
        return None;
    }
    own.busy = 0;
    (!header.is_stopped()).then_some(state)
}

/// Returns the first operation of a thread that this library did not see start, or of a
/// process that was just forked.
#[cold]
#[inline(never)]
fn begin(header: &Header) -> Option<NonNull<State>> {
    if process().image.load(Ordering::Relaxed) == 0 {
        enter_image(true);
    } else {
        enter(header.threads.fetch_add(1, Ordering::Relaxed).into());
    }
    NonNull::new(own())
}

/// Begins an image with its first thread.
pub(crate) fn enter_image(forked: bool) {
    let Some(header) = header() else {
        return;
    };
    let number = header.images.fetch_add(1, Ordering::Relaxed) + 1;
    process().image.store(number, Ordering::Relaxed);
    enter(header.threads.fetch_add(1, Ordering::Relaxed).into());
    // SAFETY: just set; the calls have no conditions.
    unsafe {
        if let Some(state) = own().as_mut() {
            state.put_now(&Event::Image {
                process: libc::getpid() as u64,
                parent: libc::getppid() as u64,
                forked,
            });
        }
    }
}

/// Gives this thread a state, as the thread of this number.
pub(crate) fn enter(number: u64) {
    let process = process();
    let state = match take_free(process) {
        Some(state) => state,
        None => {
            // SAFETY: a new mapping, which is checked.
            let state = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    size_of::<State>(),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if state == libc::MAP_FAILED {
                return;
            }
            let state: *mut State = state.cast();
            guarded(process, |process| {
                // SAFETY: just mapped, and in no list.
                unsafe { (*state).older = process.all.load(Ordering::Relaxed).cast() };
                process.all.store(state.cast(), Ordering::Relaxed);
            });
            state
        }
    };
    // SAFETY: this thread's from here on; zeros, or what another left there.
    unsafe {
        (*state).image = process.image.load(Ordering::Relaxed);
        (*state).thread = number;
        (*state).busy = 1;
        set_own(state);
        libc::pthread_setspecific(KEY.load(Ordering::Relaxed) - 1, state.cast());
        if !(*state).at.is_null() {
            (*state).stacks.forget();
            (*state).begin(ticks());
        }
        let task = libc::syscall(libc::SYS_gettid);
        (*state).kinds = [0; KINDS];
        (*state).put_now(&Event::Started {
            handle: libc::pthread_self() as u64,
            task: task as u64,
        });
        (*state).task.store(task as u32, Ordering::Relaxed);
    }
}

/// Returns so many nanoseconds in ticks.
pub(crate) fn in_ticks(ns: u64) -> u64 {
    let tick = header().map_or(1.0, |header| f64::from_bits(header.nanoseconds_per_tick));
    (ns as f64 / tick.max(1e-3)) as u64
}

/// Makes the key; before any thread begins.
pub(crate) fn make_key() -> Result<(), &'static str> {
    let mut key = 0;
    // SAFETY: `key` is ours.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) } != 0 {
        return Err("finds no thread-specific key left");
    }
    KEY.store(key + 1, Ordering::Relaxed);
    Ok(())
}

/// Ends a thread. Destructors that run later may take locks; then the
/// thread gets another state, and number, for these.
unsafe extern "C" fn leave(state: *mut c_void) {
    let state = state.cast::<State>();
    // SAFETY: states are never unmapped, and this one is the thread's still.
    unsafe {
        if process().image.load(Ordering::Relaxed) != (*state).image {
            return;
        }
        (*state).task.store(0, Ordering::Relaxed);
        last(&mut *state);
        set_own(ptr::null_mut());
        guarded(process(), |process| {
            (*state).next = process.free.load(Ordering::Relaxed).cast();
            process.free.store(state.cast(), Ordering::Relaxed);
        });
    }
}

/// Notes that the process ends by `exit`, in this thread.
pub(crate) fn exits() {
    if let Some(mut state) = current() {
        // SAFETY: this thread's.
        let own = unsafe { state.as_mut() };
        accounts(own);
        last(own);
    }
}

/// Records for how long each other thread has had a CPU: one that waits for something which
/// is not recorded would seem to have worked until now.
fn accounts(own: &mut State) {
    let mut other: *mut State = process().all.load(Ordering::Relaxed).cast();
    // SAFETY: states are never unmapped, and only the head of the list changes.
    while let Some(state) = unsafe { other.as_ref() } {
        other = state.older;
        let task = state.task.load(Ordering::Relaxed);
        if ptr::eq(state, own) || task == 0 {
            continue;
        }
        if let Some(ran_ns) = ran_of(task) {
            let thread = state.thread;
            own.put_now(&Event::Ran { thread, ran_ns });
        }
    }
}

/// Returns the CPU time of a thread of this process, if it lives.
fn ran_of(task: u32) -> Option<u64> {
    /// The clock of a thread, as the system numbers it: its time with a CPU.
    const OF_THREAD: i32 = 4;
    const RUN: i32 = 2;
    let clock = (!task.cast_signed() << 3) | OF_THREAD | RUN;
    // SAFETY: zeros are a valid `timespec`, which is ours.
    unsafe {
        let mut ran: timespec = core::mem::zeroed();
        let result = libc::clock_gettime(clock, &raw mut ran);
        (result == 0).then_some(ran.tv_sec as u64 * 1_000_000_000 + ran.tv_nsec as u64)
    }
}

fn last(state: &mut State) {
    let tick = ticks();
    state.put_switches(tick);
    state.record(tick, &Event::Ended, false);
}

fn take_free(process: &Process) -> Option<*mut State> {
    if process.free.load(Ordering::Relaxed).is_null() {
        return None;
    }
    guarded(process, |process| {
        let state: *mut State = process.free.load(Ordering::Relaxed).cast();
        // SAFETY: states are never unmapped.
        let next = unsafe { state.as_ref() }?.next;
        process.free.store(next.cast(), Ordering::Relaxed);
        Some(state)
    })
}

/// Runs `f` alone among the threads of the process.
fn guarded<R>(process: &Process, f: impl FnOnce(&Process) -> R) -> R {
    // Acquire: pairs with the release below.
    while process.guard.swap(1, Ordering::Acquire) != 0 {
        // SAFETY: no conditions.
        unsafe { libc::sched_yield() };
    }
    let result = f(process);
    process.guard.store(0, Ordering::Release);
    result
}
