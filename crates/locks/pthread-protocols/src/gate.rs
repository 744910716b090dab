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
//! announces that, makes all CPUs of the process fence
//! ([`ParkingWorld::heavy_fence`]), then checks whether a thread holds. One of
//! the two sees the other. (D. Dice, H. Huang and M. Yang, "Asymmetric Dekker
//! Synchronization", 2001.)
//!
//! A `try_lock` that finds a head must never be admitted: it returns busy
//! instead.

use locklab_locks::platform::{Atomic, Ordering};
use locklab_locks::{Platform, host::NO_HEAVY_FENCE, host::ParkingWorld};

// These are the values of `held`.
const NOBODY: u32 = 0;
const HEAD: u32 = 1;

// These are the values of `gate`.
const FREE: u32 = 0;
/// The head of the queue has the gate.
const QUEUED: u32 = 1;
/// A `try_lock` is checking whether it may enter.
const TRYING: u32 = 2;
/// A `try_lock` has succeeded.
const TRIED: u32 = 3;

// These are the values of `gated`.
const OPEN: u32 = 0;
/// The gate is being shut: heads that arrive now may or may not know.
const SHUTTING: u32 = 1;
/// The gate is shut: every head inside knows.
const SHUT: u32 = 2;

type Word<W> = <<W as ParkingWorld>::Base as Platform>::U32;

/// Returns the value of `gated` in a new mutex: shut where other CPUs cannot be made to fence.
#[must_use]
pub fn at_first<W: ParkingWorld>() -> u32 {
    if W::parked().load(Ordering::Relaxed) & NO_HEAVY_FENCE == 0 {
        OPEN
    } else {
        SHUT
    }
}

/// Returns whether a thread holds through the gate.
#[must_use]
pub fn is_held(gate: u32) -> bool {
    gate == QUEUED || gate == TRIED
}

/// The gate that separates the head of the queue from a `try_lock`. Those who
/// wait for it wait on the platform `P`, as those in the queue do; nobody waits
/// for the other two words.
pub struct Gate<'a, W: ParkingWorld, P: Platform> {
    held: &'a Word<W>,
    gate: &'a P::U32,
    gated: &'a Word<W>,
}

impl<'a, W: ParkingWorld, P: Platform> Gate<'a, W, P> {
    /// Returns the gate of three words that are zero, but for `gated`, which is
    /// [`at_first`].
    #[inline(always)]
    pub fn new(held: &'a Word<W>, gate: &'a P::U32, gated: &'a Word<W>) -> Self {
        Self { held, gate, gated }
    }

    /// Enters as the head of the queue, which the caller has just become.
    #[inline(always)]
    pub fn enter(&self) {
        self.held.store(HEAD, Ordering::Relaxed);
        // N1: pairs with N5, which makes a CPU that is here fence.
        W::light_fence();
        if self.gated.load(Ordering::Relaxed) != OPEN {
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
    pub fn try_enter(&self) -> bool {
        // N6: pairs with N5'.
        if self.gated.load(Ordering::Acquire) != SHUT {
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
        let free = self.held.load(Ordering::Acquire) == NOBODY;
        // N4': pairs with N2 and N2' if it gives the gate back.
        self.gate
            .store(if free { TRIED } else { FREE }, Ordering::Release);
        free
    }

    #[cold]
    #[inline(never)]
    fn shut(&self) {
        // Two may do this at once; each fences for itself. One that comes late
        // makes it known again that the gate is being shut: heads take it for
        // shut either way.
        self.gated.store(SHUTTING, Ordering::Relaxed);
        // N5: pairs with N1.
        W::heavy_fence();
        // N5': pairs with N6.
        self.gated.store(SHUT, Ordering::Release);
    }

    /// Returns whether a thread holds it or is about to. Others may arrive at any time.
    #[must_use]
    pub fn busy(&self) -> bool {
        // N3": as N3; the gate pairs with N4.
        self.held.load(Ordering::Acquire) != NOBODY || self.gate.load(Ordering::Acquire) != FREE
    }

    /// Enters as the only thread, if no thread holds: as a `try_lock`, since
    /// there is no queue to maintain. The other ways of leaving understand the
    /// state that it leaves, in case a second thread appears before.
    #[inline(always)]
    pub fn enter_alone(&self) -> bool {
        if self.held.load(Ordering::Relaxed) != NOBODY || self.gate.load(Ordering::Relaxed) != FREE
        {
            return false;
        }
        self.gated.store(SHUT, Ordering::Relaxed);
        self.gate.store(TRIED, Ordering::Relaxed);
        true
    }

    /// Leaves as the only thread, if it entered by [`Gate::enter_alone`].
    /// The gate stays open, because there is no other thread.
    #[inline(always)]
    pub fn leave_alone(&self) -> bool {
        if self.gate.load(Ordering::Relaxed) != TRIED {
            return false;
        }
        self.gate.store(FREE, Ordering::Relaxed);
        self.gated.store(at_first::<W>(), Ordering::Relaxed);
        true
    }

    /// Leaves as the holder, up to the lock itself; returns whether it entered
    /// by the queue, and so must release that now.
    #[inline(always)]
    pub fn leave(&self) -> bool {
        let gate = self.gate.load(Ordering::Relaxed);
        if gate == TRIED {
            // N4: pairs with N2 and N2'.
            self.gate.store(FREE, Ordering::Release);
            return false;
        }
        // N3': pairs with N3.
        self.held.store(NOBODY, Ordering::Release);
        if gate == QUEUED {
            // N4": as N4.
            self.gate.store(FREE, Ordering::Release);
        }
        true
    }
}
