//! Data behind any lock, queue nodes included.
//!
//! For a context-free lock `lock_api::Mutex` is the usual choice; this one
//! also serves locks that need a node, which lives on the caller's stack for
//! as long as the closure runs.

use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::raw_lock::RawLock;
use core::cell::UnsafeCell;
use core::marker::PhantomData;

/// A value that is only accessible while its lock is held.
///
/// Not for locks whose nodes circulate among threads: see [`StackContext`].
pub struct NodeMutex<L, T, P = NativePlatform> {
    lock: L,
    value: UnsafeCell<T>,
    platform: PhantomData<P>,
}

/// A lock whose contexts are idle, and may be dropped or moved, as soon as
/// `unlock` has returned.
///
/// # Safety
/// As stated above; it does not hold for CLH-like locks, whose nodes pass from
/// thread to thread.
pub unsafe trait StackContext {}

// SAFETY: one thread at a time reaches the value.
unsafe impl<L: Sync, T: Send, P> Sync for NodeMutex<L, T, P> {}
// SAFETY: an idle lock may move to another thread with its value.
unsafe impl<L: Send, T: Send, P> Send for NodeMutex<L, T, P> {}

impl<L, T, P> NodeMutex<L, T, P> {
    /// Makes a free lock around `value`.
    pub const fn new(lock: L, value: T) -> Self {
        Self {
            lock,
            value: UnsafeCell::new(value),
            platform: PhantomData,
        }
    }

    /// Returns the value, without locking: there is no other reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns the value, at the end of the lock's life.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// A lock that may move while it is held, because its guard was leaked.
///
/// # Safety
/// The lock stores no address of itself or of a part of itself.
pub unsafe trait LeakableGuard: StackContext {}

/// Ends the build for a lock of which safe code could get two holders. A closure
/// that acquires once more, or a leaked guard whose thread has ended, takes more
/// turns than a lock for a limited number of CPUs may survive; and a recursive lock
/// admits its holder again, which would have two exclusive references to one value.
pub(crate) const fn admits_one_guard<P: Platform, L: RawLock<P>>() {
    assert!(
        L::INFO.max_cpus >= crate::qnode::MAX_CPUS,
        "a lock for a limited number of CPUs admits two holders once safe code takes more turns"
    );
    assert!(
        !L::INFO.recursive,
        "two guards of a recursive lock would be two exclusive references to one value"
    );
}

/// Releases the lock when dropped, also when the closure panics.
struct Held<'a, P: Platform, L: RawLock<P>> {
    lock: &'a L,
    ctx: &'a L::Ctx,
}

impl<P: Platform, L: RawLock<P>> Drop for Held<'_, P, L> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: made only after an acquisition with this context.
        unsafe { self.lock.unlock(self.ctx) }
    }
}

impl<T, P: Platform, L: RawLock<P> + StackContext> NodeMutex<L, T, P> {
    /// Runs `f` on the value while holding the lock. A lock that serves a limited
    /// number of CPUs (`INFO.max_cpus`), or that is recursive, does not compile here.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        const { admits_one_guard::<P, L>() };
        let ctx = L::Ctx::default();
        // SAFETY: the context and the borrowed lock stay in place until `held`
        // is dropped.
        unsafe { self.lock.lock(&ctx) };
        let _held = Held {
            lock: &self.lock,
            ctx: &ctx,
        };
        // SAFETY: we hold the lock.
        f(unsafe { &mut *self.value.get() })
    }

    /// Runs `f` on the value if the lock can be acquired without waiting.
    #[inline]
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        const { admits_one_guard::<P, L>() };
        let ctx = L::Ctx::default();
        // SAFETY: as in `with`.
        if !unsafe { self.lock.try_lock(&ctx) } {
            return None;
        }
        let _held = Held {
            lock: &self.lock,
            ctx: &ctx,
        };
        // SAFETY: we hold the lock.
        Some(f(unsafe { &mut *self.value.get() }))
    }
}
