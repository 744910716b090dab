//! The slow path: every type of mutex, timed locks, forks, profiles.

use crate::deadline::{Deadline, back_off};
use crate::mutex::{Errno, Mutex, Type, this_thread};
use crate::{chosen, generation, real, report, site};
use core::sync::atomic::Ordering;
use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, clockid_t, timespec};

/// Returns the type of a mutex, which is then ready for use.
#[inline]
fn prepare(mutex: &Mutex) -> Type {
    if chosen::is_glibc() {
        return Type::Glibc;
    }
    let kind = mutex.kind_type();
    if kind == Type::Glibc {
        report::kept_by_glibc();
    } else {
        generation::refresh(mutex);
    }
    kind
}

/// Returns `Some(result)` if the owner locks again.
#[inline]
fn relock(mutex: &Mutex, kind: Type, errno: Errno) -> Option<Errno> {
    // Only the owner finds itself here, so no other thread writes meanwhile.
    if kind == Type::Normal || mutex.owner.load(Ordering::Relaxed) != this_thread() {
        return None;
    }
    if kind == Type::ErrorChecking {
        return Some(errno);
    }
    let depth = mutex.depth.load(Ordering::Relaxed);
    if depth == u32::MAX {
        return Some(EAGAIN);
    }
    mutex.depth.store(depth + 1, Ordering::Relaxed);
    Some(0)
}

/// Records the calling thread as the owner.
#[inline]
fn own(mutex: &Mutex, kind: Type) -> Errno {
    if kind != Type::Normal {
        mutex.owner.store(this_thread(), Ordering::Relaxed);
        mutex.depth.store(1, Ordering::Relaxed);
    }
    0
}

/// Locks a mutex.
///
/// # Safety
/// `mutex` is a mutex in the sense of POSIX; the same holds below.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn lock(mutex: &Mutex, caller: usize) -> Errno {
    let kind = prepare(mutex);
    if kind == Type::Glibc {
        if counts_glibc(mutex) {
            // SAFETY: of the caller.
            return unsafe { lock_glibc(mutex, caller) };
        }
        // SAFETY: of the caller.
        return unsafe { (real::MUTEX_LOCK.get())(mutex.as_glibc()) };
    }
    if let Some(result) = relock(mutex, kind, EDEADLK) {
        return result;
    }
    if report::profiling() {
        // SAFETY: a mutex of ours.
        let first = || unsafe { (chosen::ops().lock_if_free)(mutex) };
        let wait = || {
            // SAFETY: as above.
            unsafe { (chosen::ops().lock)(mutex) };
        };
        let began = report::wait_for(mutex, first, wait);
        report::acquired(mutex, caller, began);
    } else {
        // SAFETY: as above.
        unsafe { (chosen::ops().lock)(mutex) };
    }
    own(mutex, kind)
}

/// Returns whether this mutex, which is glibc's, is profiled.
fn counts_glibc(mutex: &Mutex) -> bool {
    report::profiling() && chosen::is_glibc() && mutex.is_counted_of_glibc()
}

/// Locks a mutex that is glibc's, and counts that.
///
/// # Safety
/// The same conditions as for `lock`.
unsafe fn lock_glibc(mutex: &Mutex, caller: usize) -> Errno {
    let mutex_of = mutex.as_glibc();
    let mut result = 0;
    // SAFETY: of the caller.
    let first = || unsafe { (real::MUTEX_TRYLOCK.get())(mutex_of) } == 0;
    // SAFETY: as above.
    let wait = || result = unsafe { (real::MUTEX_LOCK.get())(mutex_of) };
    let began = report::wait_for(mutex, first, wait);
    if result == 0 && !mutex.is_nested_of_glibc() {
        report::acquired(mutex, caller, began);
    }
    result
}

/// Locks a mutex if it is free.
///
/// # Safety
/// The same conditions as for `lock`.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn try_lock(mutex: &Mutex, caller: usize) -> Errno {
    let kind = prepare(mutex);
    if kind == Type::Glibc {
        // SAFETY: of the caller.
        let result = unsafe { (real::MUTEX_TRYLOCK.get())(mutex.as_glibc()) };
        if result == 0 && counts_glibc(mutex) && !mutex.is_nested_of_glibc() {
            report::acquired(mutex, caller, None);
        }
        return result;
    }
    if let Some(result) = relock(mutex, kind, EBUSY) {
        return result;
    }
    // SAFETY: a mutex of ours.
    if unsafe { (chosen::ops().try_lock)(mutex) } != 0 {
        return EBUSY;
    }
    if report::profiling() {
        report::acquired(mutex, caller, None);
    }
    own(mutex, kind)
}

/// Locks, or gives up at `until`, a time of `clock`: in the queue where
/// the lock has waiters that can give up ([`crate::timed`]). Otherwise it
/// polls, and sleeps between attempts, so queued waiters go first.
///
/// # Safety
/// The same conditions as for `lock`; `until` points to a time.
pub(crate) unsafe fn timed_lock(
    mutex: &Mutex,
    caller: usize,
    clock: Option<clockid_t>,
    until: *const timespec,
) -> Errno {
    let kind = prepare(mutex);
    if kind == Type::Glibc {
        // SAFETY: of the caller.
        let result = unsafe {
            match clock {
                Some(clock) => (real::MUTEX_CLOCKLOCK.get())(mutex.as_glibc(), clock, until),
                None => (real::MUTEX_TIMEDLOCK.get())(mutex.as_glibc(), until),
            }
        };
        if result == 0 && counts_glibc(mutex) && !mutex.is_nested_of_glibc() {
            report::acquired(mutex, caller, None);
        }
        return result;
    }
    let clock = clock.unwrap_or(libc::CLOCK_REALTIME);
    if !is_clock(clock) {
        return EINVAL;
    }
    if let Some(result) = relock(mutex, kind, EDEADLK) {
        return result;
    }
    // SAFETY: a mutex of ours.
    let try_lock = || unsafe { (chosen::ops().try_lock)(mutex) } == 0;
    let began = report::profiling().then(report::ticks);
    if !try_lock() {
        // SAFETY: of the caller. Checked only now: by POSIX a lock that
        // need not wait succeeds whatever the time.
        let until = unsafe { *until };
        if !(0..1_000_000_000).contains(&until.tv_nsec) {
            return EINVAL;
        }
        let deadline = Deadline { clock, until };
        let acquired = match chosen::ops().timed_lock {
            // SAFETY: a mutex of ours.
            Some(timed_lock) => unsafe { timed_lock(mutex, &deadline) },
            None => poll(&deadline, try_lock),
        };
        if !acquired {
            return ETIMEDOUT;
        }
        if report::profiling() {
            report::acquired(mutex, caller, began);
        }
    } else if report::profiling() {
        report::acquired(mutex, caller, None);
    }
    own(mutex, kind)
}

/// Tries until the deadline; returns whether an attempt succeeded.
pub(crate) fn poll(deadline: &Deadline, try_lock: impl Fn() -> bool) -> bool {
    let mut tries = 0;
    while deadline.left().is_some() {
        back_off(&mut tries);
        if try_lock() {
            return true;
        }
    }
    false
}

/// Returns whether a wait can be measured by this clock.
pub(crate) fn is_clock(clock: clockid_t) -> bool {
    clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC
}

/// Unlocks a mutex.
///
/// # Safety
/// The same conditions as for `lock`.
#[cold]
#[inline(never)]
pub(crate) unsafe extern "C" fn unlock(mutex: &Mutex, caller: usize) -> Errno {
    let kind = prepare(mutex);
    if kind == Type::Glibc {
        let released = (counts_glibc(mutex) && !mutex.is_nested_of_glibc())
            .then(|| report::releasing(mutex))
            .flatten();
        // SAFETY: of the caller.
        let result = unsafe { (real::MUTEX_UNLOCK.get())(mutex.as_glibc()) };
        report::released(released, caller);
        return result;
    }
    if kind != Type::Normal {
        if mutex.owner.load(Ordering::Relaxed) != this_thread() {
            return EPERM;
        }
        let depth = mutex.depth.load(Ordering::Relaxed);
        if depth > 1 {
            mutex.depth.store(depth - 1, Ordering::Relaxed);
            return 0;
        }
        mutex.owner.store(0, Ordering::Relaxed);
    }
    let released = report::profiling()
        .then(|| report::releasing(mutex))
        .flatten();
    // SAFETY: of the caller.
    let result = unsafe { (chosen::ops().unlock)(mutex) };
    report::released(released, caller);
    result
}

/// Initialises a mutex.
///
/// # Safety
/// `mutex` points to memory for a mutex, and `attributes` is null or valid.
pub(crate) unsafe fn init(
    mutex: *mut libc::pthread_mutex_t,
    attributes: *const libc::pthread_mutexattr_t,
    caller: usize,
) -> Errno {
    // glibc judges the attributes and clears the memory.
    // SAFETY: of the caller.
    let result = unsafe { (real::MUTEX_INIT.get())(mutex, attributes) };
    if result == 0 && chosen::is_glibc() {
        // SAFETY: of the caller.
        let mutex = unsafe { Mutex::of(mutex) };
        if counts_glibc(mutex) {
            site::set(mutex, report::site(mutex, caller));
        }
    } else if result == 0 {
        // SAFETY: of the caller.
        let mutex = unsafe { Mutex::of(mutex) };
        if mutex.kind_type() == Type::Glibc {
            report::kept_one_by_glibc();
        } else {
            let site = if report::profiling() {
                report::site(mutex, caller)
            } else {
                0
            };
            mutex.adopt(generation::generation(), site);
        }
    }
    result
}

/// Destroys a mutex.
///
/// # Safety
/// `mutex` is a mutex in the sense of POSIX.
pub(crate) unsafe fn destroy(mutex: &Mutex) -> Errno {
    if prepare(mutex) == Type::Glibc {
        // SAFETY: of the caller.
        return unsafe { (real::MUTEX_DESTROY.get())(mutex.as_glibc()) };
    }
    let ops = chosen::ops();
    // SAFETY: a mutex of ours.
    if unsafe { (ops.busy)(mutex) } {
        return EBUSY;
    }
    (ops.retire)(mutex);
    mutex.destroy();
    0
}
