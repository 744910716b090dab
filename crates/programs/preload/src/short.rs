//! The short way: plain mutexes of this process, straight to the chosen lock.

use crate::alone::is_alone;
use crate::chosen::{self, Entries, Entry, FRONTED, PLAIN, SHORT, SHORT_ALONE};
use crate::mutex::{Errno, Mutex};
use crate::{fronted, generation, real, report};
use core::sync::atomic::Ordering;
use libc::{EBUSY, pthread_mutex_t};
use locklab_pthread_protocols::publication::{publish, published};

/// Returns whether this is a plain mutex of this process, and the choice is made: a
/// thread that sees it sees which lock was chosen, and the lock as it was repaired after
/// a fork.
#[inline(always)]
fn short_way(mutex: &Mutex) -> bool {
    published(&mutex.state) == published(&PLAIN)
}

/// Returns whether this is such a mutex, and is held by the word in front of a queue.
#[inline(always)]
fn is_fronted(mutex: &Mutex) -> bool {
    published(&mutex.state) == published(&FRONTED)
}

/// Continues with the operation of the chosen lock: a jump, not a call, if this
/// is the last thing a function does.
macro_rules! go_to {
    ($operation:ident, $mutex:expr) => {{
        let short = if is_alone() { &SHORT_ALONE } else { &SHORT };
        let entry = short.$operation.load(Ordering::Relaxed);
        // SAFETY: an `Entry`, set before a mutex could go the short way.
        let entry = unsafe { core::mem::transmute::<*mut (), Entry>(entry) };
        // SAFETY: the choice is made, and the mutex ours.
        unsafe { entry($mutex) }
    }};
}

/// Defines operations on a mutex, each as the C library's function of this name
/// for `caller`, with what it does where the word in front of a queue decides
/// it; what does not go the short way goes `slowly`.
macro_rules! operations {
    ($($operation:ident($mutex:ident) fronted $fronted:block)*) => {$(
        /// Does this operation on a mutex by the shortest path.
        ///
        /// # Safety
        /// `mutex` is a mutex in the sense of POSIX.
        #[inline(always)]
        pub(crate) unsafe fn $operation(
            mutex: *mut pthread_mutex_t,
            caller: usize,
            slowly: unsafe extern "C" fn(&Mutex, usize) -> Errno,
        ) -> Errno {
            // SAFETY: of the caller, here and below.
            let $mutex = unsafe { Mutex::of(mutex) };
            if is_fronted($mutex) {
                $fronted
            }
            if short_way($mutex) {
                return go_to!($operation, $mutex);
            }
            // SAFETY: as above.
            unsafe { slowly($mutex, caller) }
        }
    )*};
}

operations! {
    lock(mutex) fronted {
        if fronted::try_enter(mutex) {
            return 0;
        }
        return go_to!(lock, mutex);
    }
    try_lock(mutex) fronted {
        return if fronted::try_enter(mutex) { 0 } else { EBUSY };
    }
    unlock(mutex) fronted {
        fronted::leave(mutex);
        return 0;
    }
}

/// Lets mutexes of the plain type, touched since the last fork, take the fast
/// path.
pub(crate) fn allow() {
    if report::profiling() {
        return;
    }
    // glibc's own say nothing of forks.
    let generation = if chosen::is_glibc() {
        0
    } else {
        generation::generation()
    };
    let state = (generation as usize) << 32;
    publish(
        if chosen::is_fronted() {
            &FRONTED
        } else {
            &PLAIN
        },
        state,
    );
}

/// The targets of the fast path where every mutex is glibc's own.
pub(crate) const GLIBC: Entries = [glibc_lock, glibc_try_lock, glibc_unlock];

unsafe extern "C" fn glibc_lock(mutex: &Mutex) -> Errno {
    // SAFETY: of the caller, here and below.
    unsafe { (real::MUTEX_LOCK.get())(mutex.as_glibc()) }
}

unsafe extern "C" fn glibc_try_lock(mutex: &Mutex) -> Errno {
    // SAFETY: as above.
    unsafe { (real::MUTEX_TRYLOCK.get())(mutex.as_glibc()) }
}

unsafe extern "C" fn glibc_unlock(mutex: &Mutex) -> Errno {
    // SAFETY: as above.
    unsafe { (real::MUTEX_UNLOCK.get())(mutex.as_glibc()) }
}
