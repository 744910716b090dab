//! `try_lock` for a lock that has none.
//!
//! A waiter of CLH that has put itself into the queue cannot leave, and a big
//! lock would admit its holder again. Under these locks a `try_lock` takes a
//! gate beside the lock, and the head of the queue must take it too. Most
//! mutexes are never tried, and an atomic operation more in each acquisition
//! would make a queue lock a quarter slower than glibc's; so the gate is shut
//! by the first `try_lock` of a mutex, and is open until then.
//!
//! Shutting it must not miss a head that is about to enter. The head announces
//! that it holds, then checks whether the gate is shut; a thread that shuts it
//! announces that, makes all CPUs of the process fence (`membarrier`), then
//! checks whether a thread holds. One of the two sees the other. (D. Dice, H.
//! Huang and M. Yang, "Asymmetric Dekker Synchronization", 2001.)
//!
//! A `try_lock` that finds a head must never be admitted: it returns busy
//! instead.

use crate::futex;
use core::sync::atomic::{AtomicU32, compiler_fence, fence};
use locklab_locks::Platform;
use locklab_locks::platform::{Atomic, Ordering};

// Of `held`.
const NOBODY: u32 = 0;
const HEAD: u32 = 1;

// Of `gate`.
const FREE: u32 = 0;
/// The head of the queue has the gate.
const QUEUED: u32 = 1;
/// A `try_lock` is checking whether it may enter.
const TRYING: u32 = 2;
/// A `try_lock` has succeeded.
const TRIED: u32 = 3;

// Of `gated`.
const OPEN: u32 = 0;
/// The gate is being shut: heads that arrive now may or may not know.
const SHUTTING: u32 = 1;
/// The gate is shut: every head inside knows.
const SHUT: u32 = 2;

/// `gated` of a new mutex: shut where other CPUs cannot be made to fence.
pub(crate) fn at_first() -> u32 {
    if futex::fences() { OPEN } else { SHUT }
}

/// Whether a thread holds through the gate.
pub(crate) fn is_held(gate: u32) -> bool {
    gate == QUEUED || gate == TRIED
}

/// The gate that separates the head of the queue from a `try_lock`.
pub(crate) struct Gate<'a, P: Platform> {
    held: &'a AtomicU32,
    gate: &'a P::U32,
    gated: &'a AtomicU32,
}

impl<'a, P: Platform> Gate<'a, P> {
    #[inline(always)]
    pub(crate) fn new(held: &'a AtomicU32, gate: &'a P::U32, gated: &'a AtomicU32) -> Self {
        Self { held, gate, gated }
    }

    /// Enters as the head of the queue, which the caller has just become.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        AtomicU32::store(self.held, HEAD, Ordering::Relaxed);
        // N1: pairs with N5, which makes a CPU that is here fence.
        compiler_fence(Ordering::SeqCst);
        if AtomicU32::load(self.gated, Ordering::Relaxed) != OPEN {
            self.enter_shut();
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_shut(&self) {
        // N2: pairs with N4.
        while self
            .gate
            .compare_exchange(FREE, QUEUED, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.gate.spin_until(Ordering::Relaxed, |gate| gate == FREE);
        }
    }

    /// Enters without queueing; returns whether it succeeded.
    pub(crate) fn try_enter(&self) -> bool {
        // N6: pairs with N5'.
        if AtomicU32::load(self.gated, Ordering::Acquire) != SHUT {
            self.shut();
        }
        // N2': pairs with N4.
        if self
            .gate
            .compare_exchange(FREE, TRYING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        // N3: pairs with N3': all that a head did that went in while the gate
        // stood open. One that is here and waits for the gate is busy too.
        let free = AtomicU32::load(self.held, Ordering::Acquire) == NOBODY;
        // N4': pairs with N2 and N2' if it gives the gate back.
        self.gate
            .store(if free { TRIED } else { FREE }, Ordering::Release);
        free
    }

    #[cold]
    #[inline(never)]
    fn shut(&self) {
        // Two may do this at once; each fences for itself.
        let _ = AtomicU32::compare_exchange(
            self.gated,
            OPEN,
            SHUTTING,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        // N5: pairs with N1.
        fence(Ordering::SeqCst);
        futex::keep_errno(futex::membarrier);
        // N5': pairs with N6.
        AtomicU32::store(self.gated, SHUT, Ordering::Release);
    }

    /// Whether a thread holds it or is about to. Others may arrive at any time.
    pub(crate) fn busy(&self) -> bool {
        // N3": as N3.
        AtomicU32::load(self.held, Ordering::Acquire) != NOBODY
            || self.gate.load(Ordering::Acquire) != FREE
    }

    /// Enters as the only thread, if no thread holds: as a `try_lock`, since
    /// there is no queue to maintain. The other ways of leaving understand the
    /// state that it leaves, in case a second thread appears before.
    #[inline(always)]
    pub(crate) fn enter_alone(&self) -> bool {
        if AtomicU32::load(self.held, Ordering::Relaxed) != NOBODY
            || self.gate.load(Ordering::Relaxed) != FREE
        {
            return false;
        }
        AtomicU32::store(self.gated, SHUT, Ordering::Relaxed);
        self.gate.store(TRIED, Ordering::Relaxed);
        true
    }

    /// Leaves as the only thread, if it entered by [`Gate::enter_alone`].
    /// The gate stays open, because there is no other thread.
    #[inline(always)]
    pub(crate) fn leave_alone(&self) -> bool {
        if self.gate.load(Ordering::Relaxed) != TRIED {
            return false;
        }
        self.gate.store(FREE, Ordering::Relaxed);
        AtomicU32::store(self.gated, at_first(), Ordering::Relaxed);
        true
    }

    /// Leaves as the holder, up to the lock itself; returns whether it entered
    /// by the queue, and so must release that now.
    #[inline(always)]
    pub(crate) fn leave(&self) -> bool {
        let gate = self.gate.load(Ordering::Relaxed);
        if gate == TRIED {
            // N4: pairs with N2 and N2'.
            self.gate.store(FREE, Ordering::Release);
            return false;
        }
        // N3': pairs with N3.
        AtomicU32::store(self.held, NOBODY, Ordering::Release);
        if gate == QUEUED {
            // N4'': as N4.
            self.gate.store(FREE, Ordering::Release);
        }
        true
    }
}
