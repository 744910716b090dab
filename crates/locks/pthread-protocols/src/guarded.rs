//! The lock around tables that are not the program's.
//!
//! The algorithm is the catalogue's [`FutexAdaptive`]. It must never be held
//! while a lock of the program is awaited.

use locklab_locks::{FutexAdaptive, Platform, RawLock};

/// A lock without data, which a newly forked process can free.
pub struct Guarded<P: Platform>(FutexAdaptive<P>);

impl<P: Platform> Guarded<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self(FutexAdaptive::new())
    }

    /// Locks it; whoever has it runs no code of the program.
    pub fn lock(&self) {
        // SAFETY: its context is nothing.
        unsafe { self.0.lock(&()) }
    }

    /// Unlocks it. Without a `lock` before it, the next finds it free.
    pub fn unlock(&self) {
        // SAFETY: a lock that is free stays free; the callers hold it.
        unsafe { self.0.unlock(&()) }
    }

    /// Runs `f` while it is held.
    pub fn with<T>(&self, f: impl FnOnce() -> T) -> T {
        self.lock();
        let result = f();
        self.unlock();
        result
    }

    /// Frees it, whoever held it.
    ///
    /// # Safety
    /// No other thread is in this process, which has just been forked.
    pub unsafe fn reset(&self) {
        // SAFETY: of the caller; the memory is that of atomics, which can be
        // written.
        unsafe { (&raw const self.0).cast_mut().write(FutexAdaptive::new()) }
    }
}

impl<P: Platform> Default for Guarded<P> {
    fn default() -> Self {
        Self(FutexAdaptive::default())
    }
}
