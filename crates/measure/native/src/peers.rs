//! Mutexes of other libraries, for comparison: `std`, `parking_lot`, `pthread`.
//! Their locks with readers are in `peers_with_readers`.
//!
//! They are called as a program would call them, behind the interface of the
//! catalogue's locks; what the adapter adds is stated at each. They are not in
//! the lock library, because they serve for comparison only.

use lock_api::RawMutex as _;
use locklab_locks::{Fairness, Info, NativePlatform, RawLock};
use std::cell::{Cell, UnsafeCell};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const BLOCKING: Info = Info {
    parks: true,
    max_cpus: usize::MAX,
    ..Info::BASE
};

/// `std::sync::Mutex`. The guard is kept in the context: two stores to
/// memory of the thread's own.
#[derive(Default)]
pub struct Std(Mutex<()>);

/// The context, in which a thread keeps its guard.
#[derive(Default)]
pub struct StdGuard(Cell<Option<MutexGuard<'static, ()>>>);

// SAFETY: std's mutex excludes; its guard, kept in the thread's own context,
// is what unlocks.
unsafe impl RawLock<NativePlatform> for Std {
    type Ctx = StdGuard;

    const INFO: Info = Info {
        name: "std",
        summary: "the standard library's mutex (a futex on Linux), for comparison",
        paper: "Rust standard library",
        ..BLOCKING
    };

    #[inline(always)]
    unsafe fn lock(&self, ctx: &StdGuard) {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller keeps the lock in place until `unlock`, which
        // drops the guard.
        let guard =
            unsafe { std::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        ctx.0.set(Some(guard));
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &StdGuard) -> bool {
        let Ok(guard) = self.0.try_lock() else {
            return false;
        };
        // SAFETY: as in `lock`.
        let guard =
            unsafe { std::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        ctx.0.set(Some(guard));
        true
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &StdGuard) {
        drop(ctx.0.take());
    }
}

/// `parking_lot::RawMutex`; the adapter adds nothing.
pub struct ParkingLot(parking_lot::RawMutex);

impl Default for ParkingLot {
    fn default() -> Self {
        Self(parking_lot::RawMutex::INIT)
    }
}

// SAFETY: parking_lot's mutex excludes.
unsafe impl RawLock<NativePlatform> for ParkingLot {
    type Ctx = ();

    const INFO: Info = Info {
        name: "parking_lot",
        summary: "the mutex of the crate parking_lot, for comparison",
        fairness: Fairness::Bounded("a fair handoff about every 0.5 ms"),
        paper: "crate parking_lot 0.12, after WebKit's WTF::Lock",
        ..BLOCKING
    };

    #[inline(always)]
    unsafe fn lock(&self, (): &()) {
        self.0.lock();
    }

    #[inline(always)]
    unsafe fn try_lock(&self, (): &()) -> bool {
        self.0.try_lock()
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): &()) {
        // SAFETY: the caller holds it.
        unsafe { self.0.unlock() };
    }
}

/// `pthread_mutex_t` of the default kind. Called through the C library, as C
/// programs do; the result codes are ignored, since the default kind
/// has no error that a correct caller can meet.
pub struct Pthread(UnsafeCell<libc::pthread_mutex_t>);

impl Default for Pthread {
    fn default() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}

// SAFETY: made to be used by many threads at once.
unsafe impl Send for Pthread {}
// SAFETY: as above.
unsafe impl Sync for Pthread {}

// SAFETY: POSIX says that it excludes and orders memory. It is moved only
// before its first use, when it is still its initializer.
unsafe impl RawLock<NativePlatform> for Pthread {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread",
        summary: "pthread_mutex_t of the C library, for comparison",
        paper: "POSIX threads, as the C library does them",
        ..BLOCKING
    };

    #[inline(always)]
    unsafe fn lock(&self, (): &()) {
        // SAFETY: initialised and in place, by the caller's promise.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn try_lock(&self, (): &()) -> bool {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): &()) {
        // SAFETY: the caller holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// `pthread_mutex_t` of glibc's adaptive kind, which spins before it sleeps.
#[cfg(target_env = "gnu")]
pub struct PthreadAdaptive(Pthread);

#[cfg(target_env = "gnu")]
impl Default for PthreadAdaptive {
    fn default() -> Self {
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        // SAFETY: the attributes are initialised first; all are on this stack. What is
        // moved is not in use yet, and glibc's mutex does not point to itself.
        unsafe {
            let mut kind = std::mem::zeroed::<libc::pthread_mutexattr_t>();
            libc::pthread_mutexattr_init(&raw mut kind);
            libc::pthread_mutexattr_settype(&raw mut kind, libc::PTHREAD_MUTEX_ADAPTIVE_NP);
            libc::pthread_mutex_init(&raw mut mutex, &raw const kind);
            libc::pthread_mutexattr_destroy(&raw mut kind);
        }
        Self(Pthread(UnsafeCell::new(mutex)))
    }
}

// SAFETY: as `Pthread`.
#[cfg(target_env = "gnu")]
unsafe impl RawLock<NativePlatform> for PthreadAdaptive {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread-adaptive",
        summary: "pthread_mutex_t of glibc's adaptive kind, for comparison",
        paper: "PTHREAD_MUTEX_ADAPTIVE_NP of the GNU C library",
        ..BLOCKING
    };

    #[inline(always)]
    unsafe fn lock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(ctx) };
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.try_lock(ctx) }
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(ctx) };
    }
}
