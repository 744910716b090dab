//! Locks of other libraries that readers share, for comparison: those of `std`,
//! `parking_lot` and `pthread`, the last with either preference.
//!
//! They are called as a program would call them, behind the interface of the
//! catalogue's locks; what the adapter adds is stated at each.

use crate::peers::BLOCKING;
use lock_api::RawRwLock as _;
use locklab_locks::{Fairness, Info, NativePlatform, RawLock};
use std::cell::{Cell, UnsafeCell};
use std::mem::transmute;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const SHARED: Info = Info {
    readers_share: true,
    ..BLOCKING
};

/// `std::sync::RwLock`. The guard is kept in the context: two stores to memory
/// of the thread's own.
#[derive(Default)]
pub(crate) struct StdRwLock(RwLock<()>);

/// The context, in which a thread keeps its guard.
#[derive(Default)]
pub(crate) struct StdRwGuard {
    read: Cell<Option<RwLockReadGuard<'static, ()>>>,
    write: Cell<Option<RwLockWriteGuard<'static, ()>>>,
}

// SAFETY: std's lock excludes; its guard, kept in the thread's own context, is
// what unlocks.
unsafe impl RawLock<NativePlatform> for StdRwLock {
    type Ctx = StdRwGuard;

    const INFO: Info = Info {
        name: "std-rwlock",
        summary: "the standard library's RwLock (futexes on Linux), for comparison",
        paper: "Rust standard library",
        ..SHARED
    };

    #[inline(always)]
    unsafe fn lock(&self, ctx: &StdRwGuard) {
        let guard = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller keeps the lock in place until `unlock`, which
        // drops the guard.
        let guard =
            unsafe { transmute::<RwLockWriteGuard<'_, ()>, RwLockWriteGuard<'_, ()>>(guard) };
        ctx.write.set(Some(guard));
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &StdRwGuard) -> bool {
        let Ok(guard) = self.0.try_write() else {
            return false;
        };
        // SAFETY: as in `lock`.
        let guard =
            unsafe { transmute::<RwLockWriteGuard<'_, ()>, RwLockWriteGuard<'_, ()>>(guard) };
        ctx.write.set(Some(guard));
        true
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &StdRwGuard) {
        drop(ctx.write.take());
    }

    #[inline(always)]
    unsafe fn read_lock(&self, ctx: &StdRwGuard) {
        let guard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as in `lock`.
        let guard = unsafe { transmute::<RwLockReadGuard<'_, ()>, RwLockReadGuard<'_, ()>>(guard) };
        ctx.read.set(Some(guard));
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, ctx: &StdRwGuard) {
        drop(ctx.read.take());
    }
}

/// `parking_lot::RawRwLock`; the adapter adds nothing.
pub(crate) struct ParkingLotRwLock(parking_lot::RawRwLock);

impl Default for ParkingLotRwLock {
    fn default() -> Self {
        Self(parking_lot::RawRwLock::INIT)
    }
}

// SAFETY: parking_lot's lock excludes.
unsafe impl RawLock<NativePlatform> for ParkingLotRwLock {
    type Ctx = ();

    const INFO: Info = Info {
        name: "parking_lot-rwlock",
        summary: "the RwLock of the crate parking_lot, for comparison",
        fairness: Fairness::Bounded("a fair handoff about every 0.5 ms"),
        paper: "crate parking_lot 0.12, after WebKit's WTF::Lock",
        ..SHARED
    };

    #[inline(always)]
    unsafe fn lock(&self, (): &()) {
        self.0.lock_exclusive();
    }

    #[inline(always)]
    unsafe fn try_lock(&self, (): &()) -> bool {
        self.0.try_lock_exclusive()
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): &()) {
        // SAFETY: the caller holds it.
        unsafe { self.0.unlock_exclusive() };
    }

    #[inline(always)]
    unsafe fn read_lock(&self, (): &()) {
        self.0.lock_shared();
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, (): &()) {
        // SAFETY: the caller reads.
        unsafe { self.0.unlock_shared() };
    }
}

/// `pthread_rwlock_t`, whose writers go first if `WRITERS` (the kind
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`), or else its readers (the
/// default). The result codes are ignored, since a correct caller meets no
/// error.
pub(crate) struct PthreadRwlock<const WRITERS: bool>(UnsafeCell<libc::pthread_rwlock_t>);

/// The readers go first.
pub(crate) type PthreadReaders = PthreadRwlock<false>;
/// The writers go first. musl has no such kind.
#[cfg(target_env = "gnu")]
pub(crate) type PthreadWriters = PthreadRwlock<true>;

impl<const WRITERS: bool> Default for PthreadRwlock<WRITERS> {
    fn default() -> Self {
        /// glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
        const PREFER_WRITER_NONRECURSIVE: libc::c_int = 2;
        let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
        if WRITERS {
            // SAFETY: both are ours; the attributes are initialised by the first
            // call, and own nothing that would have to be destroyed.
            unsafe {
                let mut attributes = std::mem::zeroed();
                libc::pthread_rwlockattr_init(&raw mut attributes);
                pthread_rwlockattr_setkind_np(&raw mut attributes, PREFER_WRITER_NONRECURSIVE);
                libc::pthread_rwlock_init(&raw mut lock, &raw const attributes);
            }
        }
        Self(UnsafeCell::new(lock))
    }
}

unsafe extern "C" {
    fn pthread_rwlockattr_setkind_np(
        attributes: *mut libc::pthread_rwlockattr_t,
        kind: libc::c_int,
    ) -> libc::c_int;
}

// SAFETY: made to be used by many threads at once.
unsafe impl<const WRITERS: bool> Send for PthreadRwlock<WRITERS> {}
// SAFETY: as above.
unsafe impl<const WRITERS: bool> Sync for PthreadRwlock<WRITERS> {}

// SAFETY: POSIX says that it excludes and orders memory. It is moved only before
// its first use; glibc's holds no pointer to itself.
unsafe impl<const WRITERS: bool> RawLock<NativePlatform> for PthreadRwlock<WRITERS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: if WRITERS {
            "pthread-rwlock-w"
        } else {
            "pthread-rwlock"
        },
        summary: if WRITERS {
            "pthread_rwlock_t that prefers writers, for comparison"
        } else {
            "pthread_rwlock_t of the default kind, for comparison"
        },
        paper: "POSIX threads, as the C library does them",
        ..SHARED
    };

    #[inline(always)]
    unsafe fn lock(&self, (): &()) {
        // SAFETY: initialised and in place, by the caller's promise.
        unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn try_lock(&self, (): &()) -> bool {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_rwlock_trywrlock(self.0.get()) == 0 }
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): &()) {
        // SAFETY: the caller holds it.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn read_lock(&self, (): &()) {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, (): &()) {
        // SAFETY: the caller reads.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that two readers enter at once, and no writer beside them.
    fn shares<L: RawLock<NativePlatform>>() {
        let lock = L::default();
        let [first, second, writer]: [L::Ctx; 3] = Default::default();
        // SAFETY: each context is in one acquisition, released below.
        unsafe {
            lock.read_lock(&first);
            lock.read_lock(&second);
            assert!(!lock.try_lock(&writer), "{}", L::INFO.name);
            lock.read_unlock(&first);
            assert!(!lock.try_lock(&writer), "{}", L::INFO.name);
            lock.read_unlock(&second);
            assert!(lock.try_lock(&writer), "{}", L::INFO.name);
            lock.unlock(&writer);
            lock.lock(&writer);
            lock.unlock(&writer);
            lock.read_lock(&first);
            lock.read_unlock(&first);
        }
    }

    #[test]
    fn readers_share_the_locks_of_others() {
        shares::<StdRwLock>();
        shares::<ParkingLotRwLock>();
        shares::<PthreadReaders>();
        #[cfg(target_env = "gnu")]
        shares::<PthreadWriters>();
    }
}
