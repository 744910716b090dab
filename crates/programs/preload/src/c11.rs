//! The mutexes and condition variables of C11, `mtx_*` and `cnd_*`.
//!
//! In glibc they are those of POSIX under another type and with other results;
//! here too. glibc's own functions would reach past the interposer.

use crate::mutex::Errno;
use crate::mutex::Mutex;
use crate::{chosen, cond, generation, real, report, site};
use libc::{EBUSY, ENOMEM, ETIMEDOUT, c_int, pthread_cond_t, pthread_mutex_t, timespec};

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// Returns what C11 says for a result of POSIX.
#[inline]
pub(crate) fn result(errno: Errno) -> c_int {
    match errno {
        0 => SUCCESS,
        EBUSY => BUSY,
        ENOMEM => NO_MEMORY,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// Initialises a mutex, for `mtx_init`.
///
/// # Safety
/// The conditions of C11 for `mtx_*` and `cnd_*`; the same holds below.
pub(crate) unsafe fn mutex_init(mutex: *mut pthread_mutex_t, kind: c_int, caller: usize) -> c_int {
    // glibc judges the kind and clears the memory.
    // SAFETY: of the caller.
    let result = unsafe { (real::MTX_INIT.get())(mutex, kind) };
    if result == SUCCESS {
        // SAFETY: of the caller.
        let mutex = unsafe { Mutex::of(mutex) };
        if !chosen::is_glibc() {
            mutex.adopt(generation::generation(), 0);
        }
        if report::profiling() {
            site::set(mutex, report::site(mutex, caller));
        }
    }
    result
}

/// Initialises a condition variable, for `cnd_init`.
///
/// # Safety
/// As above.
pub(crate) unsafe fn cond_init(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: of the caller, here and below.
    result(unsafe { cond::init(cond, core::ptr::null()) })
}

/// Wakes a waiter, for `cnd_signal`.
///
/// # Safety
/// As above.
pub(crate) unsafe fn cond_signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: as above.
    result(unsafe { cond::signal(cond) })
}

/// Wakes all waiters, for `cnd_broadcast`.
///
/// # Safety
/// As above.
pub(crate) unsafe fn cond_broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: as above.
    result(unsafe { cond::broadcast(cond) })
}

/// Waits for a signal, for `cnd_wait`.
///
/// # Safety
/// As above.
pub(crate) unsafe fn cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as above.
    result(unsafe { cond::wait(cond, mutex) })
}

/// Waits for a signal until a time, for `cnd_timedwait`.
///
/// # Safety
/// As above.
pub(crate) unsafe fn cond_timed_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as above.
    result(unsafe { cond::timed_wait(cond, mutex, until) })
}
