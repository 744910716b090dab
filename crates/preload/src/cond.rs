//! Condition variables, for mutexes that glibc's would not understand.
//!
//! A `pthread_cond_t` of the interposer is a list of waiters, first come first
//! woken, each sleeping on a word of its own stack. Once a waiter has been
//! woken it does not access the condition variable again, so that it may be
//! destroyed as soon as POSIX allows. Process-shared ones stay glibc's.

use crate::choice::{self, die};
use crate::exports::{mutex_lock, mutex_unlock};
use crate::futex::{self, Guarded};
use crate::locking::is_clock;
use crate::mutex::{Mutex, Type};
use crate::{fork, real, report};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::{
    EINVAL, ETIMEDOUT, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec,
};

/// The interposer's view of a `pthread_cond_t`. If zero, no thread waits, and
/// times are of the real-time clock.
#[repr(C)]
struct Cond {
    /// Guards the list. Low two bits as in [`Guarded`]; above them the
    /// generation: a value of an older generation is an unlocked, empty list.
    lock: AtomicU32,
    clock: AtomicU32,
    first: AtomicPtr<Waiter>,
    last: AtomicPtr<Waiter>,
}

/// A waiter, on the stack of the waiting thread.
struct Waiter {
    /// 1 once it has been woken and is in no list.
    woken: AtomicU32,
    next: AtomicPtr<Waiter>,
    previous: AtomicPtr<Waiter>,
}

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

/// Whether a condition variable is glibc's.
unsafe fn is_glibc(cond: *mut pthread_cond_t) -> bool {
    choice::make();
    if choice::is_glibc() {
        return true;
    }
    // SAFETY: one of the words of the variable; nobody writes this one after
    // its initialisation, as far as the bit is concerned.
    let word =
        unsafe { AtomicU32::from_ptr(cond.cast::<u32>().add(SHARED_WORD.load(Ordering::Relaxed))) };
    word.load(Ordering::Relaxed) & SHARED_BIT.load(Ordering::Relaxed) != 0
}

impl Cond {
    unsafe fn of<'a>(cond: *mut pthread_cond_t) -> &'a Self {
        const { assert!(size_of::<Self>() <= size_of::<pthread_cond_t>()) };
        // SAFETY: of the caller; all fields are atomic.
        unsafe { &*cond.cast() }
    }

    fn lock(&self) {
        let generation = fork::generation() << 2;
        loop {
            let seen = self.lock.load(Ordering::Relaxed);
            let old = seen & !3 != generation;
            if (old || seen & 3 == 0)
                // B1: pairs with B2.
                && self
                    .lock
                    .compare_exchange(seen, generation | 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                if old {
                    self.first.store(ptr::null_mut(), Ordering::Relaxed);
                    self.last.store(ptr::null_mut(), Ordering::Relaxed);
                }
                return;
            }
            if !old && seen & 3 != 0 {
                break;
            }
        }
        // B1': as B1.
        while self.lock.swap(generation | 2, Ordering::Acquire) & 3 != 0 {
            futex::wait(&self.lock, generation | 2);
        }
    }

    fn unlock(&self) {
        let generation = fork::generation() << 2;
        // B2: pairs with B1 and B1'.
        if self.lock.swap(generation, Ordering::Release) & 3 == 2 {
            futex::wake(&raw const self.lock, 1);
        }
    }

    /// Appends a waiter; requires the lock.
    fn append(&self, waiter: &Waiter) {
        let this = ptr::from_ref(waiter).cast_mut();
        let last = self.last.load(Ordering::Relaxed);
        waiter.previous.store(last, Ordering::Relaxed);
        // SAFETY: what is in the list is alive, here and below.
        match unsafe { last.as_ref() } {
            Some(last) => last.next.store(this, Ordering::Relaxed),
            None => self.first.store(this, Ordering::Relaxed),
        }
        self.last.store(this, Ordering::Relaxed);
    }

    /// Removes a waiter that is in the list; requires the lock.
    fn remove(&self, waiter: &Waiter) {
        let next = waiter.next.load(Ordering::Relaxed);
        let previous = waiter.previous.load(Ordering::Relaxed);
        // SAFETY: as in `append`.
        unsafe {
            match previous.as_ref() {
                Some(previous) => previous.next.store(next, Ordering::Relaxed),
                None => self.first.store(next, Ordering::Relaxed),
            }
            match next.as_ref() {
                Some(next) => next.previous.store(previous, Ordering::Relaxed),
                None => self.last.store(previous, Ordering::Relaxed),
            }
        }
    }

    /// Wakes the first waiter, or all.
    fn wake(&self, all: bool) {
        // No waiter: one appends itself before it releases the mutex, so
        // a thread that has acquired the mutex since sees it here.
        if self.first.load(Ordering::Relaxed).is_null() {
            return;
        }
        self.lock();
        loop {
            let first = self.first.load(Ordering::Relaxed);
            // SAFETY: as in `append`.
            let Some(waiter) = (unsafe { first.as_ref() }) else {
                break;
            };
            self.remove(waiter);
            let woken = &raw const waiter.woken;
            // From here on the waiter may no longer exist.
            // B3: pairs with B4.
            waiter.woken.store(1, Ordering::Release);
            futex::wake(woken, 1);
            if !all {
                break;
            }
        }
        self.unlock();
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
    waiter: &'a Waiter,
    mutex: *mut pthread_mutex_t,
}

unsafe extern "C-unwind" fn cancelled(frame: *mut c_void) {
    // SAFETY: on the stack of the wait being cancelled, below this frame.
    let frame = unsafe { &*frame.cast::<Frame<'_>>() };
    frame.cond.lock();
    let woken = frame.waiter.woken.load(Ordering::Relaxed) != 0;
    if !woken {
        frame.cond.remove(frame.waiter);
    }
    frame.cond.unlock();
    if woken {
        // A signal must not be consumed by a thread that does not use it.
        frame.cond.wake(false);
    }
    // SAFETY: the mutex of the wait; POSIX requires it to be held in the
    // handlers.
    unsafe { mutex_lock(frame.mutex, 0) };
}

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
    let cond = unsafe { Cond::of(cond) };
    let waiter = Waiter {
        woken: AtomicU32::new(0),
        next: AtomicPtr::new(ptr::null_mut()),
        previous: AtomicPtr::new(ptr::null_mut()),
    };
    cond.lock();
    cond.append(&waiter);
    cond.unlock();
    // SAFETY: of the caller.
    let refused = unsafe { mutex_unlock(mutex, 0) };
    if refused != 0 {
        cond.lock();
        if waiter.woken.load(Ordering::Relaxed) == 0 {
            cond.remove(&waiter);
        }
        cond.unlock();
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
    let mut result = 0;
    // B4: pairs with B3.
    while waiter.woken.load(Ordering::Acquire) == 0 {
        // SAFETY: all live until this returns, or is cancelled.
        let errno = unsafe {
            locklab_wait_cancellable(
                waiter.woken.as_ptr(),
                operation,
                0,
                until,
                cancelled,
                (&raw const frame).cast_mut().cast(),
            )
        };
        // A time before 1970 is invalid to the system, and past to POSIX.
        if errno == ETIMEDOUT || errno == EINVAL {
            cond.lock();
            if waiter.woken.load(Ordering::Relaxed) == 0 {
                cond.remove(&waiter);
                result = ETIMEDOUT;
            }
            cond.unlock();
            break;
        }
    }
    // SAFETY: of the caller.
    let relocked = unsafe { mutex_lock(mutex, 0) };
    if relocked != 0 { relocked } else { result }
}

/// glibc's mutexes for waits of interposed mutexes on process-shared condition
/// variables, which few programs use.
struct Helpers([UnsafeCell<pthread_mutex_t>; 16]);

// SAFETY: mutexes.
unsafe impl Sync for Helpers {}

static HELPERS: Helpers = Helpers([const { UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER) }; 16]);
/// Whether there has been such a wait: until then, signals need no helper.
static MIXED: AtomicU32 = AtomicU32::new(0);
/// Held across a fork so that no helper is held.
static MIXING: Guarded = Guarded::new();

fn helper(cond: *mut pthread_cond_t) -> *mut pthread_mutex_t {
    HELPERS.0[(cond.addr() >> 4) % 16].get()
}

/// Repairs the state of a newly forked process: no helper is held.
pub(crate) fn forget() {
    MIXING.reset();
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
    if choice::is_glibc() || ours.kind_type() == Type::Glibc {
        let counted = choice::is_glibc() && report::profiling() && ours.is_counted_of_glibc();
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
        let mut result = mutex_unlock(mutex, 0);
        if result == 0 {
            result = wait(helper);
            (real::MUTEX_UNLOCK.get())(helper);
            mutex_lock(mutex, 0);
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
    choice::make();
    // glibc judges the attributes and clears the memory.
    // SAFETY: of the caller, here and below.
    let result = unsafe { (real::COND_INIT.get())(cond, attributes) };
    // SAFETY: as above.
    if result != 0 || choice::is_glibc() || unsafe { is_glibc(cond) } {
        if result == 0 && !choice::is_glibc() {
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
        cond.cast::<Cond>().write(Cond {
            lock: AtomicU32::new(fork::generation() << 2),
            clock: AtomicU32::new(u32::from(clock == libc::CLOCK_MONOTONIC)),
            first: AtomicPtr::new(ptr::null_mut()),
            last: AtomicPtr::new(ptr::null_mut()),
        });
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
        let cond = Cond::of(cond);
        cond.lock();
        cond.unlock();
    }
    0
}

pub(crate) unsafe fn signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wake_at_glibc(cond, || (real::COND_SIGNAL.get())(cond));
        }
        Cond::of(cond).wake(false);
    }
    0
}

pub(crate) unsafe fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: of the caller.
    unsafe {
        if is_glibc(cond) {
            return wake_at_glibc(cond, || (real::COND_BROADCAST.get())(cond));
        }
        Cond::of(cond).wake(true);
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
        let clock = if Cond::of(cond).clock.load(Ordering::Relaxed) == 1 {
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
