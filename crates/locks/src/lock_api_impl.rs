//! Context-free locks as [`lock_api::RawMutex`], for `lock_api::Mutex<T, Ticket>`.
//!
//! Guards are not `Send`: a spinlock is released by the CPU that took it.

/// Implements `lock_api::RawMutex` for `$lock<P>`, whose `Ctx` is `()`. Only
/// for locks that are not recursive: two guards of one would be two `&mut` to
/// the same value.
macro_rules! context_free {
    ($lock:ident $(, $constant:ident: $type:ty)*) => {
        // SAFETY: mutual exclusion is the promise of `RawLock`; `()` is not
        // used by any other acquisition, and `lock_api` borrows the lock for
        // as long as it is held.
        unsafe impl<P: $crate::platform::Platform, $(const $constant: $type),*> lock_api::RawMutex
            for $lock<P, $($constant),*>
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
            unsafe fn unlock(&self) {
                // SAFETY: the caller holds the lock.
                unsafe { $crate::raw::RawLock::unlock(self, &()) }
            }
        }
    };
}
pub(crate) use context_free;
