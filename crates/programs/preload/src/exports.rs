//! The functions of the C library that this library replaces.
//!
//! They are exported without a version, which matches every version: a program
//! linked against glibc 2.34 or newer asks for `pthread_mutex_trylock` of
//! another version than one linked before.
//!
//! Any of them may be the first that a program calls, so each has the choice made
//! before it goes on.

use crate::mutex::{Errno, Mutex};
use crate::{c11, choice, cond, locking, real, rwlock_functions, short, spin};
use libc::{
    c_int, c_void, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t,
    pthread_mutexattr_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec,
};

/// Does what `locking::lock`, whether or not the choice has been made.
#[cold]
#[inline(never)]
unsafe extern "C" fn lock_slowly(mutex: &Mutex, caller: usize) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::lock(mutex, caller) }
}

unsafe extern "C" fn mutex_lock(mutex: *mut pthread_mutex_t, caller: usize) -> Errno {
    // SAFETY: of the caller.
    unsafe { short::lock(mutex, caller, lock_slowly) }
}

/// Does what `locking::try_lock`, whether or not the choice has been made.
#[cold]
#[inline(never)]
unsafe extern "C" fn try_lock_slowly(mutex: &Mutex, caller: usize) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::try_lock(mutex, caller) }
}

unsafe extern "C" fn mutex_trylock(mutex: *mut pthread_mutex_t, caller: usize) -> Errno {
    // SAFETY: of the caller.
    unsafe { short::try_lock(mutex, caller, try_lock_slowly) }
}

/// Does what `locking::unlock`, whether or not the choice has been made.
#[cold]
#[inline(never)]
unsafe extern "C" fn unlock_slowly(mutex: &Mutex, caller: usize) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::unlock(mutex, caller) }
}

unsafe extern "C" fn mutex_unlock(mutex: *mut pthread_mutex_t, caller: usize) -> Errno {
    // SAFETY: of the caller.
    unsafe { short::unlock(mutex, caller, unlock_slowly) }
}

unsafe extern "C" fn mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::timed_lock(Mutex::of(mutex), caller, None, until) }
}

unsafe extern "C" fn mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::timed_lock(Mutex::of(mutex), caller, Some(clock), until) }
}

unsafe extern "C" fn mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
    caller: usize,
) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::init(mutex, attributes, caller) }
}

unsafe extern "C" fn mutex_destroy(mutex: *mut pthread_mutex_t) -> Errno {
    choice::make();
    // SAFETY: of the caller.
    unsafe { locking::destroy(Mutex::of(mutex)) }
}

unsafe extern "C" fn c11_init(mutex: *mut pthread_mutex_t, kind: c_int, caller: usize) -> c_int {
    choice::make();
    // SAFETY: of the caller.
    unsafe { c11::mutex_init(mutex, kind, caller) }
}

unsafe extern "C" fn c11_lock(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    // SAFETY: of the caller.
    c11::result(unsafe { mutex_lock(mutex, caller) })
}

unsafe extern "C" fn c11_trylock(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    // SAFETY: of the caller.
    c11::result(unsafe { mutex_trylock(mutex, caller) })
}

unsafe extern "C" fn c11_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: of the caller.
    c11::result(unsafe { mutex_timedlock(mutex, until, caller) })
}

unsafe extern "C" fn c11_unlock(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    // SAFETY: of the caller.
    c11::result(unsafe { mutex_unlock(mutex, caller) })
}

unsafe extern "C" fn spin_lock(spin: *mut c_int, caller: usize) -> c_int {
    choice::make();
    // SAFETY: of the caller.
    unsafe { spin::lock(spin, caller) }
}

unsafe extern "C" fn spin_try_lock(spin: *mut c_int, caller: usize) -> c_int {
    choice::make();
    // SAFETY: of the caller.
    unsafe { spin::try_lock(spin, caller) }
}

unsafe extern "C" fn spin_unlock(spin: *mut c_int, caller: usize) -> c_int {
    choice::make();
    // SAFETY: of the caller.
    unsafe { spin::unlock(spin, caller) }
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
            choice::make();
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
                // Aligns the whole section, whose beginning this is: a function
                // that lies on two lines costs a tenth of a lock.
                ".balign 32",
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

    [pthread_rwlock_init | __pthread_rwlock_init]
        (rwlock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t)
        from ["rdx" "x2"] => rwlock_functions::init;
    [pthread_rwlock_destroy | __pthread_rwlock_destroy]
        (rwlock: *mut pthread_rwlock_t) from [] => rwlock_functions::destroy;
    [pthread_rwlock_rdlock | __pthread_rwlock_rdlock]
        (rwlock: *mut pthread_rwlock_t) from ["rsi" "x1"] => rwlock_functions::read;
    [pthread_rwlock_wrlock | __pthread_rwlock_wrlock]
        (rwlock: *mut pthread_rwlock_t) from ["rsi" "x1"] => rwlock_functions::write;
    [pthread_rwlock_tryrdlock | __pthread_rwlock_tryrdlock]
        (rwlock: *mut pthread_rwlock_t) from ["rsi" "x1"] => rwlock_functions::try_read;
    [pthread_rwlock_trywrlock | __pthread_rwlock_trywrlock]
        (rwlock: *mut pthread_rwlock_t) from ["rsi" "x1"] => rwlock_functions::try_write;
    [pthread_rwlock_timedrdlock]
        (rwlock: *mut pthread_rwlock_t, until: *const timespec)
        from ["rdx" "x2"] => rwlock_functions::timed_read;
    [pthread_rwlock_timedwrlock]
        (rwlock: *mut pthread_rwlock_t, until: *const timespec)
        from ["rdx" "x2"] => rwlock_functions::timed_write;
    [pthread_rwlock_clockrdlock]
        (rwlock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec)
        from ["rcx" "x3"] => rwlock_functions::clock_read;
    [pthread_rwlock_clockwrlock]
        (rwlock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec)
        from ["rcx" "x3"] => rwlock_functions::clock_write;
    [pthread_rwlock_unlock | __pthread_rwlock_unlock]
        (rwlock: *mut pthread_rwlock_t) from ["rsi" "x1"] => rwlock_functions::unlock;

    [mtx_init] (mutex: *mut pthread_mutex_t, kind: c_int) from ["rdx" "x2"] => c11_init;
    [mtx_destroy] (mutex: *mut pthread_mutex_t) from [] => mutex_destroy;
    [mtx_lock] (mutex: *mut pthread_mutex_t) from ["rsi" "x1"] => c11_lock;
    [mtx_trylock] (mutex: *mut pthread_mutex_t) from ["rsi" "x1"] => c11_trylock;
    [mtx_timedlock]
        (mutex: *mut pthread_mutex_t, until: *const timespec) from ["rdx" "x2"] => c11_timedlock;
    [mtx_unlock] (mutex: *mut pthread_mutex_t) from ["rsi" "x1"] => c11_unlock;
    [cnd_init] (cond: *mut pthread_cond_t) from [] => c11::cond_init;
    [cnd_destroy] (cond: *mut pthread_cond_t) from [] => cond::destroy;
    [cnd_signal] (cond: *mut pthread_cond_t) from [] => c11::cond_signal;
    [cnd_broadcast] (cond: *mut pthread_cond_t) from [] => c11::cond_broadcast;
    [cnd_wait]
        (cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) from [] => c11::cond_wait;
    [cnd_timedwait]
        (cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec)
        from [] => c11::cond_timed_wait;

    [pthread_spin_init] (spin: *mut c_int, shared: c_int) from [] => spin::init;
    [pthread_spin_destroy] (spin: *mut c_int) from [] => spin::destroy;
    [pthread_spin_lock] (spin: *mut c_int) from ["rsi" "x1"] => spin_lock;
    [pthread_spin_trylock] (spin: *mut c_int) from ["rsi" "x1"] => spin_try_lock;
    [pthread_spin_unlock] (spin: *mut c_int) from ["rsi" "x1"] => spin_unlock;

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
    // SAFETY: of the caller.
    unsafe { (real::REGISTER_ATFORK.get())(prepare, parent, child, object) }
}
