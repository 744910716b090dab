//! A raw lock that is recorded.

use crate::hooks::Lock;

/// A raw lock of `lock_api` that `locklab record` sees, around any other.
///
/// ```
/// use locklab_record::Recorded;
/// type Mutex<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;
/// let mutex = Mutex::new(1);
/// *mutex.lock() += 1;
/// ```
#[derive(Debug)]
pub struct Recorded<R>(R);

// SAFETY: whoever holds it holds the lock within.
unsafe impl<R: lock_api::RawMutex> lock_api::RawMutex for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(R::INIT);
    type GuardMarker = R::GuardMarker;

    #[inline]
    fn lock(&self) {
        let once = || self.0.try_lock();
        Lock::at(self).acquire(false, once, || {
            self.0.lock();
            true
        });
    }

    #[inline]
    fn try_lock(&self) -> bool {
        Lock::at(self).attempt(false, || self.0.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: of the caller.
        Lock::at(self).release(|| unsafe { self.0.unlock() });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: whoever holds it holds the lock within, in the same way.
unsafe impl<R: lock_api::RawRwLock> lock_api::RawRwLock for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(R::INIT);
    type GuardMarker = R::GuardMarker;

    #[inline]
    fn lock_shared(&self) {
        let once = || self.0.try_lock_shared();
        Lock::at(self).acquire(true, once, || {
            self.0.lock_shared();
            true
        });
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        Lock::at(self).attempt(true, || self.0.try_lock_shared())
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: of the caller.
        Lock::at(self).release(|| unsafe { self.0.unlock_shared() });
    }

    #[inline]
    fn lock_exclusive(&self) {
        let once = || self.0.try_lock_exclusive();
        Lock::at(self).acquire(false, once, || {
            self.0.lock_exclusive();
            true
        });
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        Lock::at(self).attempt(false, || self.0.try_lock_exclusive())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: of the caller.
        Lock::at(self).release(|| unsafe { self.0.unlock_exclusive() });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}
