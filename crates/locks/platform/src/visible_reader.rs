//! The entry in which a CPU publishes that it reads a lock.
//!
//! It belongs to the CPU and not to a lock, so that a reader-writer lock of
//! the kind of BRAVO writes no line that other CPUs use. The lock says what is
//! in it and when; here it only has its place.

use crate::platform::{Atomic, Platform};

/// The entry in which a CPU publishes which lock it reads, on a cache line of
/// its own.
///
/// Who clears the entry of a reader lets a writer in beside it, so that needs
/// `unsafe`:
///
/// ```compile_fail,E0616
/// use locklab_locks::platform::{Atomic, Ordering};
/// use locklab_locks::{NativePlatform, Platform};
/// NativePlatform::visible_readers()[0].lock.store(0, Ordering::Relaxed);
/// ```
#[repr(C, align(64))]
pub struct VisibleReader<P: Platform> {
    /// The address of the lock that this CPU reads; 0 for none.
    lock: P::Usize,
}

impl<P: Platform> VisibleReader<P> {
    /// An entry that reads no lock.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NONE: Self = Self {
        lock: P::Usize::ZERO,
    };

    /// Returns the address of the lock that this CPU reads; 0 for none.
    ///
    /// # Safety
    /// The caller is the lock of that kind, and writes its own CPU's entry only.
    #[doc(hidden)]
    #[inline(always)]
    pub const unsafe fn lock(&self) -> &P::Usize {
        &self.lock
    }
}

impl<P: Platform> Default for VisibleReader<P> {
    fn default() -> Self {
        Self {
            lock: P::Usize::new(0),
        }
    }
}
