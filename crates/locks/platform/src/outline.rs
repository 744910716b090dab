//! The choice not to inline an unlock, as a type.

use crate::platform::Platform;
use crate::raw_lock::{Info, RawLock};

/// `L` with its unlock out of line: each call site is one call, and the
/// program holds one copy of the release. `lock_api::Mutex<Outline<Ticket>, T>`
/// and `lock_api::Mutex<Ticket, T>` differ in nothing else.
#[derive(Default)]
#[repr(transparent)]
pub struct Outline<L>(L);

impl<L> Outline<L> {
    /// Wraps a free lock.
    pub const fn new(lock: L) -> Self {
        Self(lock)
    }
}

// SAFETY: the lock is `L`.
unsafe impl<P: Platform, L: RawLock<P>> RawLock<P> for Outline<L> {
    type Ctx = L::Ctx;
    const INFO: Info = L::INFO;

    #[inline(always)]
    unsafe fn lock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(ctx) }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &L::Ctx) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.try_lock(ctx) }
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.0.is_locked()
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock_outline(ctx) }
    }

    #[inline(always)]
    unsafe fn read_lock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.read_lock(ctx) }
    }

    #[inline(never)]
    unsafe fn read_unlock(&self, ctx: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.read_unlock(ctx) }
    }
}

// SAFETY: `L` excludes, and the guard marker is its own.
unsafe impl<L: lock_api::RawMutex> lock_api::RawMutex for Outline<L> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(L::INIT);
    type GuardMarker = L::GuardMarker;

    #[inline(always)]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline(always)]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.unlock() }
    }
}
