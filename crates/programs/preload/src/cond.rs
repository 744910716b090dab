//! Condition variables, for mutexes that glibc's would not understand.
//!
//! A `pthread_cond_t` of the interposer is a list of waiters
//! ([`locklab_pthread_protocols::condition`]), each on the stack of its thread.
//! Once a waiter has been woken it does not access the condition variable
//! again, so that it may be destroyed as soon as POSIX allows. Process-shared
//! ones stay glibc's.

use crate::chosen;
use crate::locking::is_clock;
use crate::mutex::{Mutex, Type};
use crate::own::{Guarded, Interposer, Own};
use crate::process::die;
use crate::{generation, locking, real, report, short};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use libc::{
    EINVAL, ETIMEDOUT, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec,
};
use locklab_pthread_protocols::condition::{Waiter, Waiters};

/// The interposer's view of a `pthread_cond_t`: its waiters, and in their tag
/// the clock of its times (lowest bit; 0 for the real-time clock) and above that
/// the generation: what is of an older one is an unlocked, empty list. Zero is
/// a new one.
type Cond = Waiters<Own>;

/// The place where glibc marks one as process-shared: the word's number, and
/// the bit. Found by a test, because it has moved between versions.
static SHARED_WORD: AtomicUsize = AtomicUsize::new(0);
static SHARED_BIT: AtomicU32 = AtomicU32::new(0);

const WORDS: usize = size_of::<pthread_cond_t>() / 4;

/// Finds [`SHARED_WORD`].
pub(crate) fn start() {
    let words = |shared: c_int| {
        let mut cond = MaybeUninit::<pthread_cond_t>::zeroed();
        let mut attributes = MaybeUninit::<pthread_condattr_t>::zeroed();
        // SAFETY: initialised by the first call of each, destroyed by nobody:
        // neither owns anything.
        unsafe {
            libc::pthread_condattr_init(attributes.as_mut_ptr());
            libc::pthread_condattr_setpshared(attributes.as_mut_ptr(), shared);
            (real::COND_INIT.get())(cond.as_mut_ptr(), attributes.as_ptr());
            cond.as_ptr().cast::<[u32; WORDS]>().read()
        }
    };
    let (private, shared) = (
        words(libc::PTHREAD_PROCESS_PRIVATE),
        words(libc::PTHREAD_PROCESS_SHARED),
    );
    let word = (0..WORDS).find(|&word| private[word] != shared[word]);
    match word {
        Some(word) if word * 4 >= size_of::<Cond>() => {
            SHARED_WORD.store(word, Ordering::Relaxed);
            SHARED_BIT.store(shared[word] & !private[word], Ordering::Relaxed);
        }
        _ => die(&["this glibc's condition variables are of a kind not known here"]),
    }
}

/// Returns whether a condition variable is glibc's.
unsafe fn is_glibc(cond: *mut pthread_cond_t) -> bool {
    if chosen::is_glibc() {
        return true;
    }
    // SAFETY: one of the words of the variable; nobody writes this one after
    // its initialisation, as far as the bit is concerned.
    let word =
        unsafe { AtomicU32::from_ptr(cond.cast::<u32>().add(SHARED_WORD.load(Ordering::Relaxed))) };
    word.load(Ordering::Relaxed) & SHARED_BIT.load(Ordering::Relaxed) != 0
}

/// Returns the condition variable of ours that lies in the place of glibc's.
///
/// # Safety
/// `cond` is a condition variable of ours for as long as the reference is used.
unsafe fn of<'a>(cond: *mut pthread_cond_t) -> &'a Cond {
    const { assert!(size_of::<Cond>() <= size_of::<pthread_cond_t>()) };
    // SAFETY: of the caller; all fields are atomic.
    let cond: &Cond = unsafe { &*cond.cast() };
    let generation = generation::generation();
    generation::renew(
        &cond.tag,
        |tag| tag >> 1 == generation,
        || {
            // SAFETY: all others of this process wait for this.
            unsafe { cond.forget() };
            generation << 1 | cond.tag.load(Ordering::Relaxed) & 1
        },
    );
    cond
}

/// Wakes the first waiter, or all.
fn wake(cond: &Cond, all: bool) {
    if !cond.is_empty() {
        cond.wake::<Interposer>(all);
    }
}

unsafe extern "C-unwind" {
    fn locklab_wait_cancellable(
        word: *mut u32,
        operation: c_int,
        expected: u32,
        until: *const timespec,
        cancelled: unsafe extern "C-unwind" fn(*mut c_void),
        argument: *mut c_void,
    ) -> c_int;
}

/// The state that a cancelled waiter must restore.
struct Frame<'a> {
    cond: &'a Cond,
    waiter: &'a Waiter<Own>,
    mutex: *mut pthread_mutex_t,
}

unsafe extern "C-unwind" fn cancelled(frame: *mut c_void) {
    // SAFETY: on the stack of the wait being cancelled, below this frame.
    let frame = unsafe { &*frame.cast::<Frame<'_>>() };
    // SAFETY: appended by the wait.
    if !unsafe { frame.cond.leave(frame.waiter) } {
        // A signal must not be consumed by a thread that does not use it.
        wake(frame.cond, false);
    }
    // SAFETY: the mutex of the wait; POSIX requires it to be held in the
    // handlers.
    unsafe { short::lock(frame.mutex, 0, locking::lock) };
}

/// Waits for a signal, until a time if there is one.
///
/// # Safety
/// The conditions of POSIX for `pthread_cond_*`; they also apply to the
/// functions below.
unsafe fn wait_until(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    if !until.is_null() {
        // SAFETY: of the caller.
        let nanoseconds = unsafe { (*until).tv_nsec };
        if !(0..1_000_000_000).contains(&nanoseconds) {
            return EINVAL;
        }
    }
    // SAFETY: of the caller.
    let cond = unsafe { of(cond) };
    let waiter = Waiter::default();
    // SAFETY: it stays until this returns, when it is in no list any more.
    unsafe { cond.append(&waiter) };
    // SAFETY: of the caller.
    let refused = unsafe { short::unlock(mutex, 0, locking::unlock) };
    if refused != 0 {
        // SAFETY: appended above.
        unsafe { cond.leave(&waiter) };
        return refused;
    }
    let mut operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    if clock == libc::CLOCK_REALTIME {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let frame = Frame {
        cond,
        waiter: &waiter,
        mutex,
    };
    let sleep = |woken: &AtomicU32| {
        // SAFETY: all live until this returns, or is cancelled.
        let errno = unsafe {
            locklab_wait_cancellable(
                woken.as_ptr(),
                operation,
                0,
                until,
                cancelled,
                (&raw const frame).cast_mut().cast(),
            )
        };
        // A time before 1970 is invalid to the system, and past to POSIX.
        errno == ETIMEDOUT || errno == EINVAL
    };
    // SAFETY: appended above.
    let result = if waiter.wait(sleep) || !unsafe { cond.leave(&waiter) } {
        0
    } else {
        ETIMEDOUT
    };
    // SAFETY: of the caller.
    let relocked = unsafe { short::lock(mutex, 0, locking::lock) };
    if relocked != 0 { relocked } else { result }
}

/// glibc's mutexes for waits of interposed mutexes on process-shared condition
/// variables, which few programs use.
struct Helpers([UnsafeCell<pthread_mutex_t>; 16]);

// SAFETY: mutexes.
unsafe impl Sync for Helpers {}

static HELPERS: Helpers = Helpers([const { UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER) }; 16]);
/// Says whether there has been such a wait: until then, signals need no helper.
static MIXED: AtomicU32 = AtomicU32::new(0);
/// Held across a fork so that no helper is held.
static MIXING: Guarded = Guarded::new();

fn helper(cond: *mut pthread_cond_t) -> *mut pthread_mutex_t {
    HELPERS.0[(cond.addr() >> 4) % 16].get()
}

/// Repairs the state of a newly forked process: no helper is held.
pub(crate) fn forget() {
    // SAFETY: nobody else is in this process.
    unsafe { MIXING.reset() };
    for helper in &HELPERS.0 {
        // SAFETY: nobody else is in this process.
        unsafe { helper.get().write(libc::PTHREAD_MUTEX_INITIALIZER) };
    }
}

/// Waits on a condition variable of glibc's, by glibc's `wait`.
unsafe fn wait_at_glibc(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    wait: impl FnOnce(*mut pthread_mutex_t) -> c_int,
) -> c_int {
    // SAFETY: of the caller.
    let ours = unsafe { Mutex::of(mutex) };
    if chosen::is_glibc() || ours.kind_type() == Type::Glibc {
        let counted = chosen::is_glibc() && report::profiling() && ours.is_counted_of_glibc();
        if counted {
            report::releasing(ours);
        }
        let result = wait(mutex);
        if counted {
            report::acquired(ours, 0, None);
        }
        return result;
    }
    let helper = helper(cond);
    // The helper is acquired before the mutex is released, and by every signal
    // of this process from now on: none falls between the two.
    MIXED.store(1, Ordering::Relaxed);
    let mut state = 0;
    // SAFETY: our own mutex, glibc's functions; not cancelled in between.
    unsafe {
        pthread_setcancelstate(1, &raw mut state);
        (real::MUTEX_LOCK.get())(helper);
        let mut result = short::unlock(mutex, 0, locking::unlock);
        if result == 0 {
            result = wait(helper);
            (real::MUTEX_UNLOCK.get())(helper);
            short::lock(mutex, 0, locking::lock);
        } else {
            (real::MUTEX_UNLOCK.get())(helper);
        }
        pthread_setcancelstate(state, ptr::null_mut());
        result
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Wakes waiters of a condition variable of glibc's.
fn wake_at_glibc(cond: *mut pthread_cond_t, wake: impl FnOnce() -> c_int) -> c_int {
    if MIXED.load(Ordering::Relaxed) == 0 {
        return wake();
    }
    let helper = helper(cond);
    // SAFETY: our own mutex, glibc's functions.
    unsafe {
        (real::MUTEX_LOCK.get())(helper);
        let result = wake();
        (real::MUTEX_UNLOCK.get())(helper);
        result
    }
}

pub(crate) unsafe fn init(
    cond: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    // glibc judges the attributes and clears the memory.
    // SAFETY: of the caller, here and below.
    let result = unsafe { (real::COND_INIT.get())(cond, attributes) };
    // SAFETY: as above.
    if result != 0 || chosen::is_glibc() || unsafe { is_glibc(cond) } {
        if result == 0 && !chosen::is_glibc() {
            report::kept_condition_by_glibc();
        }
        return result;
    }
    let mut clock = libc::CLOCK_REALTIME;
    if !attributes.is_null() {
        // SAFETY: as above.
        unsafe { libc::pthread_condattr_getclock(attributes, &raw mut clock) };
    }
    // SAFETY: the part of the variable before the word that tells glibc's.
    unsafe {
        let monotonic = u32::from(clock == libc::CLOCK_MONOTONIC);
        cond.cast::<Cond>()
            .write(Cond::new(generation::generation() << 1 | monotonic));
    }
    0
}

pub(crate) unsafe fn destroy(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return (real::COND_DESTROY.get())(cond);
        }
        // A waking thread may still hold the list.
        of(cond).settle();
    }
    0
}

pub(crate) unsafe fn signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wake_at_glibc(cond, || (real::COND_SIGNAL.get())(cond));
        }
        wake(of(cond), false);
    }
    0
}

pub(crate) unsafe fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wake_at_glibc(cond, || (real::COND_BROADCAST.get())(cond));
        }
        wake(of(cond), true);
    }
    0
}

pub(crate) unsafe fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wait_at_glibc(cond, mutex, |mutex| (real::COND_WAIT.get())(cond, mutex));
        }
        wait_until(cond, mutex, libc::CLOCK_MONOTONIC, ptr::null())
    }
}

pub(crate) unsafe fn timed_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wait_at_glibc(cond, mutex, |mutex| {
                (real::COND_TIMEDWAIT.get())(cond, mutex, until)
            });
        }
        let clock = if of(cond).tag.load(Ordering::Relaxed) & 1 == 1 {
            libc::CLOCK_MONOTONIC
        } else {
            libc::CLOCK_REALTIME
        };
        wait_until(cond, mutex, clock, until)
    }
}

pub(crate) unsafe fn clock_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wait_at_glibc(cond, mutex, |mutex| {
                (real::COND_CLOCKWAIT.get())(cond, mutex, clock, until)
            });
        }
        if !is_clock(clock) {
            return EINVAL;
        }
        wait_until(cond, mutex, clock, until)
    }
}
