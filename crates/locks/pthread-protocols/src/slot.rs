//! Says whether a slot is in use: its owner takes it, any thread frees it.
//!
//! What belongs to a slot is the context of one acquisition, which ends on
//! whichever thread unlocks. Only the owner of a slot may take it or set it
//! aside, so taking it is no read-modify-write.

use locklab_locks::Platform;
use locklab_locks::platform::{Atomic, Ordering};

const FREE: u32 = 0;
const USED: u32 = 1;
/// The acquisition was abandoned, and its node is still in a queue.
const ASIDE: u32 = 2;

/// The use of one slot. Zero is free.
#[repr(transparent)]
pub struct Use<P: Platform>(P::U32);

impl<P: Platform> Use<P> {
    /// Returns that of a free slot.
    #[must_use]
    pub const fn new() -> Self {
        Self(P::U32::ZERO)
    }

    /// Takes the slot if it is free; returns whether it was. Called by the
    /// owner only. (A signal handler between the load and the store takes and
    /// frees, or keeps, another slot; it does not return with this one in use.)
    #[inline(always)]
    pub fn take(&self) -> bool {
        // U2: pairs with U1.
        if self.0.load(Ordering::Acquire) != FREE {
            return false;
        }
        self.0.store(USED, Ordering::Relaxed);
        true
    }

    /// Frees the slot; called by any thread, after `unlock`.
    #[inline(always)]
    pub fn free(&self) {
        // U1: pairs with U2: the last use of the context comes before its
        // next.
        self.0.store(FREE, Ordering::Release);
    }

    /// Keeps the slot from use; called by the owner.
    pub fn set_aside(&self) {
        self.0.store(ASIDE, Ordering::Relaxed);
    }

    /// Returns whether the owner has set it aside; called by the owner.
    pub fn is_aside(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASIDE
    }
}

impl<P: Platform> Default for Use<P> {
    fn default() -> Self {
        Self(P::U32::new(FREE))
    }
}
