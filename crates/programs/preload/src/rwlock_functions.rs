//! The functions `pthread_rwlock_*` of POSIX: each is a method of a rwlock of ours,
//! or glibc's function.
//!
//! Any of them may be the first that a program calls, so each has the choice made
//! before it goes on. What a rwlock does is in [`crate::rwlock`], which the child of
//! a fork needs as well, and which therefore knows nothing of the choice.

use crate::mutex::Errno;
use crate::rwlock::{Mode, Rwlock};
use crate::{choice, real, shared};
use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

/// A function: a method of a rwlock of ours, or glibc's function.
macro_rules! operations {
    ($($name:ident($($argument:ident: $type:ty),*) => $method:ident($($given:expr),*)
        or $glibc:ident;)*) => {$(
        /// Does this operation on a rwlock of ours, or of glibc.
        ///
        /// # Safety
        /// The conditions of POSIX for `pthread_rwlock_*`.
        pub(crate) unsafe extern "C" fn $name(
            rwlock: *mut pthread_rwlock_t,
            $($argument: $type,)*
            caller: usize,
        ) -> Errno {
            choice::make();
            // SAFETY: of the caller, here and below.
            let rwlock = unsafe { Rwlock::of(rwlock) };
            match rwlock.ours() {
                // SAFETY: as above.
                Some(ops) => unsafe { rwlock.$method(ops, caller, $($given),*) },
                // SAFETY: as above.
                None => unsafe { (real::$glibc.get())(rwlock.as_glibc(), $($argument),*) },
            }
        }
    )*};
}

operations! {
    read() => lock(Mode::Read) or RWLOCK_RDLOCK;
    write() => lock(Mode::Write) or RWLOCK_WRLOCK;
    try_read() => try_lock(Mode::Read) or RWLOCK_TRYRDLOCK;
    try_write() => try_lock(Mode::Write) or RWLOCK_TRYWRLOCK;
    timed_read(until: *const timespec)
        => timed_lock(Mode::Read, libc::CLOCK_REALTIME, until) or RWLOCK_TIMEDRDLOCK;
    timed_write(until: *const timespec)
        => timed_lock(Mode::Write, libc::CLOCK_REALTIME, until) or RWLOCK_TIMEDWRLOCK;
    clock_read(clock: clockid_t, until: *const timespec)
        => timed_lock(Mode::Read, clock, until) or RWLOCK_CLOCKRDLOCK;
    clock_write(clock: clockid_t, until: *const timespec)
        => timed_lock(Mode::Write, clock, until) or RWLOCK_CLOCKWRLOCK;
    unlock() => release() or RWLOCK_UNLOCK;
}

/// Initialises a rwlock.
///
/// # Safety
/// `rwlock` points to memory for one, and `attributes` is null or valid.
pub(crate) unsafe extern "C" fn init(
    rwlock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
    caller: usize,
) -> Errno {
    choice::make();
    // glibc judges the attributes and clears the memory.
    // SAFETY: of the caller.
    let result = unsafe { (real::RWLOCK_INIT.get())(rwlock, attributes) };
    if result != 0 || shared::ops().is_none() {
        return result;
    }
    // SAFETY: of the caller.
    unsafe { Rwlock::of(rwlock) }.begin(caller);
    0
}

/// Destroys a rwlock.
///
/// # Safety
/// The conditions of POSIX.
pub(crate) unsafe extern "C" fn destroy(rwlock: *mut pthread_rwlock_t) -> Errno {
    choice::make();
    // SAFETY: of the caller, here and below.
    let rwlock = unsafe { Rwlock::of(rwlock) };
    let Some(ops) = rwlock.ours() else {
        // SAFETY: as above.
        return unsafe { (real::RWLOCK_DESTROY.get())(rwlock.as_glibc()) };
    };
    rwlock.end(ops);
    0
}
