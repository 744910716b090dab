//! The functions of the C library that this library replaces.
//!
//! They are exported without a version, which matches every version: a program
//! linked against glibc 2.34 or newer asks for `pthread_mutex_trylock` of
//! another version than one linked before.

use crate::choice::{self, PLAIN, SHORT, SHORT_ALONE};
use crate::mutex::{Errno, Mutex};
use crate::plain::Entry;
use crate::{cond, locking, real, spin};
use core::sync::atomic::{AtomicU8, Ordering};
use libc::{
    c_int, c_void, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t,
    pthread_mutexattr_t, timespec,
};
use locklab_pthread_protocols::publication::published;

/// Whether this is a plain mutex of this process, and the choice is made: a
/// thread that sees it sees which lock was chosen, and the lock as it was
/// repaired after a fork.
#[inline(always)]
fn short_way(mutex: &Mutex) -> bool {
    published(&mutex.state) == published(&PLAIN)
}

unsafe extern "C" {
    /// glibc's: not 0 while the process has one thread.
    static __libc_single_threaded: AtomicU8;
}

/// Continues with the operation of the chosen lock: a jump, not a call, if this
/// is the last thing a function does.
macro_rules! go_to {
    ($operation:ident, $mutex:expr) => {{
        // SAFETY: glibc's variable is there for the life of the process.
        let alone = unsafe { __libc_single_threaded.load(Ordering::Relaxed) } != 0;
        let short = if alone { &SHORT_ALONE } else { &SHORT };
        let entry = short.$operation.load(Ordering::Relaxed);
        // SAFETY: an `Entry`, set before a mutex could go the short way.
        let entry = unsafe { core::mem::transmute::<*mut (), Entry>(entry) };
        // SAFETY: the choice is made, and the mutex ours.
        unsafe { entry($mutex) }
    }};
}

pub(crate) unsafe extern "C" fn mutex_lock(mutex: *mut pthread_mutex_t, caller: usize) -> Errno {
    // SAFETY: of the caller, here and below.
    let mutex = unsafe { Mutex::of(mutex) };
    if short_way(mutex) {
        return go_to!(lock, mutex);
    }
    // SAFETY: as above.
    unsafe { locking::lock(mutex, caller) }
}

unsafe extern "C" fn mutex_trylock(mutex: *mut pthread_mutex_t, caller: usize) -> Errno {
    // SAFETY: of the caller.
    let mutex = unsafe { Mutex::of(mutex) };
    if short_way(mutex) {
        return go_to!(try_lock, mutex);
    }
    // SAFETY: as above.
    unsafe { locking::try_lock(mutex, caller) }
}

pub(crate) unsafe extern "C" fn mutex_unlock(mutex: *mut pthread_mutex_t, caller: usize) -> Errno {
    // SAFETY: of the caller.
    let mutex = unsafe { Mutex::of(mutex) };
    if short_way(mutex) {
        return go_to!(unlock, mutex);
    }
    // SAFETY: as above.
    unsafe { locking::unlock(mutex, caller) }
}

unsafe extern "C" fn mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> Errno {
    // SAFETY: of the caller.
    unsafe { locking::timed_lock(Mutex::of(mutex), caller, None, until) }
}

unsafe extern "C" fn mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> Errno {
    // SAFETY: of the caller.
    unsafe { locking::timed_lock(Mutex::of(mutex), caller, Some(clock), until) }
}

unsafe extern "C" fn mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
    caller: usize,
) -> Errno {
    // SAFETY: of the caller.
    unsafe { locking::init(mutex, attributes, caller) }
}

unsafe extern "C" fn mutex_destroy(mutex: *mut pthread_mutex_t) -> Errno {
    // SAFETY: of the caller.
    unsafe { locking::destroy(Mutex::of(mutex)) }
}

/// Exports functions under the names of the C library. Where `from` names
/// registers (one for each architecture), the function gets one more argument,
/// in that register: the address that the call returns to.
macro_rules! export {
    ($([$($symbol:ident)|+] $arguments:tt from $registers:tt => $function:path;)*) => {
        $($(export!(@one $symbol $arguments $registers => $function);)+)*
    };
    (@one $symbol:ident ($($argument:ident: $type:ty),*) [] => $function:path) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $symbol($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promises are those of POSIX.
            unsafe { $function($($argument),*) }
        }
    };
    (@one $symbol:ident ($($argument:ident: $type:ty),*) [$x86:literal $arm:literal]
        => $function:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $symbol($($argument: $type),*) -> c_int {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                concat!("mov ", $x86, ", qword ptr [rsp]"),
                "jmp {}",
                sym $function
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                concat!("mov ", $arm, ", x30"),
                "b {}",
                sym $function
            );
        }
    };
}

export! {
    [pthread_mutex_init | __pthread_mutex_init]
        (mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t)
        from ["rdx" "x2"] => mutex_init;
    [pthread_mutex_destroy | __pthread_mutex_destroy]
        (mutex: *mut pthread_mutex_t) from [] => mutex_destroy;
    [pthread_mutex_lock | __pthread_mutex_lock]
        (mutex: *mut pthread_mutex_t) from ["rsi" "x1"] => mutex_lock;
    [pthread_mutex_trylock | __pthread_mutex_trylock]
        (mutex: *mut pthread_mutex_t) from ["rsi" "x1"] => mutex_trylock;
    [pthread_mutex_timedlock]
        (mutex: *mut pthread_mutex_t, until: *const timespec)
        from ["rdx" "x2"] => mutex_timedlock;
    [pthread_mutex_clocklock]
        (mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec)
        from ["rcx" "x3"] => mutex_clocklock;
    [pthread_mutex_unlock | __pthread_mutex_unlock]
        (mutex: *mut pthread_mutex_t) from ["rsi" "x1"] => mutex_unlock;

    [pthread_cond_init]
        (cond: *mut pthread_cond_t, attributes: *const pthread_condattr_t) from [] => cond::init;
    [pthread_cond_destroy] (cond: *mut pthread_cond_t) from [] => cond::destroy;
    [pthread_cond_signal] (cond: *mut pthread_cond_t) from [] => cond::signal;
    [pthread_cond_broadcast] (cond: *mut pthread_cond_t) from [] => cond::broadcast;
    [pthread_cond_wait]
        (cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) from [] => cond::wait;
    [pthread_cond_timedwait]
        (cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec)
        from [] => cond::timed_wait;
    [pthread_cond_clockwait]
        (cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
         until: *const timespec) from [] => cond::clock_wait;

    [pthread_spin_init] (spin: *mut c_int, shared: c_int) from [] => spin::init;
    [pthread_spin_destroy] (spin: *mut c_int) from [] => spin::destroy;
    [pthread_spin_lock] (spin: *mut c_int) from ["rsi" "x1"] => spin::lock;
    [pthread_spin_trylock] (spin: *mut c_int) from ["rsi" "x1"] => spin::try_lock;
    [pthread_spin_unlock] (spin: *mut c_int) from ["rsi" "x1"] => spin::unlock;

    [__register_atfork]
        (prepare: Option<unsafe extern "C" fn()>, parent: Option<unsafe extern "C" fn()>,
         child: Option<unsafe extern "C" fn()>, object: *mut c_void) from [] => register_atfork;
}

/// Registers the interposer's own handlers before any other.
unsafe fn register_atfork(
    prepare: Option<unsafe extern "C" fn()>,
    parent: Option<unsafe extern "C" fn()>,
    child: Option<unsafe extern "C" fn()>,
    object: *mut c_void,
) -> c_int {
    choice::make();
    // SAFETY: of the caller.
    unsafe { (real::REGISTER_ATFORK.get())(prepare, parent, child, object) }
}
