//! Context-free locks as [`lock_api::RawMutex`], for `lock_api::Mutex<T, Ticket>`.
//!
//! Guards are not `Send`: a spinlock is released by the CPU that acquired it.
//! Locks that are first come, first served release fairly (`RawMutexFair`),
//! and those without a queue can be given up (`RawMutexTimed`).

/// Implements `lock_api::RawMutex` for `$lock<P>`, whose `Ctx` is `()`. Only
/// for locks that are not recursive: two guards of one would be two `&mut` to
/// the same value.
macro_rules! context_free {
    ($lock:ident $([$param:ident: $bound:path])? $(, $constant:ident: $type:ty)*) => {
        // SAFETY: mutual exclusion is the promise of `RawLock`; `()` is not
        // used by any other acquisition, and `lock_api` borrows the lock for
        // as long as it is held.
        unsafe impl<P: $crate::platform::Platform, $($param: $bound,)? $(const $constant: $type),*> lock_api::RawMutex
            for $lock<P, $($param,)? $($constant),*>
        {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = Self::new();
            type GuardMarker = lock_api::GuardNoSend;

            #[inline(always)]
            fn lock(&self) {
                // SAFETY: as above.
                unsafe { $crate::raw::RawLock::lock(self, &()) }
            }

            #[inline(always)]
            fn try_lock(&self) -> bool {
                // SAFETY: as above.
                unsafe { $crate::raw::RawLock::try_lock(self, &()) }
            }

            #[inline(always)]
            fn is_locked(&self) -> bool {
                // Every context-free lock can say.
                $crate::raw::RawLock::is_locked(self).unwrap_or(true)
            }

            #[inline(always)]
            unsafe fn unlock(&self) {
                // SAFETY: the caller holds the lock.
                unsafe { $crate::raw::RawLock::unlock(self, &()) }
            }
        }
    };
}
pub(crate) use context_free;

/// Implements `lock_api::RawMutexFair` for a lock of the macro above that is
/// first come, first served: every release of it is fair.
macro_rules! fair {
    ($lock:ident $([$param:ident: $bound:path])? $(, $constant:ident: $type:ty)*) => {
        // SAFETY: as `unlock`.
        unsafe impl<P: $crate::platform::Platform, $($param: $bound,)? $(const $constant: $type),*>
            lock_api::RawMutexFair for $lock<P, $($param,)? $($constant),*>
        {
            #[inline(always)]
            unsafe fn unlock_fair(&self) {
                // SAFETY: the caller holds the lock.
                unsafe { $crate::raw::RawLock::unlock(self, &()) }
            }
        }
    };
}
pub(crate) use fair;

/// Implements `lock_api::RawMutexTimed` for a lock of the macros above that is
/// a [`crate::TimedLock`].
macro_rules! timed {
    ($lock:ident $([$param:ident: $bound:path])? $(, $constant:ident: $type:ty)*) => {
        // SAFETY: as `RawMutex`: `lock_until` answers `true` to the holder.
        unsafe impl<P: $crate::platform::Platform, $($param: $bound,)? $(const $constant: $type),*>
            lock_api::RawMutexTimed for $lock<P, $($param,)? $($constant),*>
        {
            type Duration = core::time::Duration;
            type Instant = $crate::instant::Instant;

            fn try_lock_for(&self, timeout: Self::Duration) -> bool {
                self.try_lock_until($crate::instant::Instant::after::<P>(timeout))
            }

            fn try_lock_until(&self, timeout: Self::Instant) -> bool {
                // SAFETY: no context; `lock_api` borrows the lock while held.
                unsafe { $crate::raw::TimedLock::lock_until(self, &(), timeout.0) }
            }
        }
    };
}
pub(crate) use timed;

/// The methods of `lock_api::RawRwLock` for a lock with `read`, `try_read` and
/// `read_unlock`, whose [`crate::RawLock`] is its exclusive mode.
macro_rules! shared_methods {
    () => {
        #[inline(always)]
        fn lock_shared(&self) {
            self.read();
        }

        #[inline(always)]
        fn try_lock_shared(&self) -> bool {
            self.try_read()
        }

        #[inline(always)]
        unsafe fn unlock_shared(&self) {
            // SAFETY: of the caller.
            unsafe { self.read_unlock() }
        }

        #[inline(always)]
        fn lock_exclusive(&self) {
            // SAFETY: no context.
            unsafe { $crate::raw::RawLock::lock(self, &()) }
        }

        #[inline(always)]
        fn try_lock_exclusive(&self) -> bool {
            // SAFETY: no context.
            unsafe { $crate::raw::RawLock::try_lock(self, &()) }
        }

        #[inline(always)]
        unsafe fn unlock_exclusive(&self) {
            // SAFETY: of the caller.
            unsafe { $crate::raw::RawLock::unlock(self, &()) }
        }

        #[inline(always)]
        fn is_locked(&self) -> bool {
            // Every reader-writer lock can say.
            $crate::raw::RawLock::is_locked(self).unwrap_or(true)
        }
    };
}
pub(crate) use shared_methods;

/// Implements `lock_api::RawRwLock` and its downgrade for `$lock<P>`, which has
/// the methods named above and `downgrade`.
macro_rules! shared {
    ($lock:ident $(, $constant:ident: $type:ty)*) => {
        // SAFETY: readers and the writer exclude each other; `lock_api` borrows
        // the lock for as long as it is held.
        unsafe impl<P: $crate::platform::Platform, $(const $constant: $type),*>
            lock_api::RawRwLock for $lock<P, $($constant),*>
        {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = Self::new();
            type GuardMarker = lock_api::GuardNoSend;

            $crate::lock_api_impl::shared_methods!();
        }

        // SAFETY: `downgrade` leaves a reader where the writer was.
        unsafe impl<P: $crate::platform::Platform, $(const $constant: $type),*>
            lock_api::RawRwLockDowngrade for $lock<P, $($constant),*>
        {
            #[inline(always)]
            unsafe fn downgrade(&self) {
                // SAFETY: of the caller.
                unsafe { Self::downgrade(self) }
            }
        }
    };
}
pub(crate) use shared;
