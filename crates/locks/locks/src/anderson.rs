//! Anderson's array lock: each waiter spins on a cache line of its own, and
//! the lines are in the lock.

use crate::line::CacheLine;
use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use core::cell::Cell;

/// The place of a CPU in the queue of an [`Anderson`] lock. It is private to
/// that CPU: a number, which stays in a register where everything is inlined.
#[derive(Default)]
#[repr(C, align(64))]
pub struct AndersonSlot {
    turn: Cell<usize>,
}

impl AndersonSlot {
    /// Returns a context that is in no queue.
    pub const fn new() -> Self {
        Self { turn: Cell::new(0) }
    }
}

/// Anderson's lock with `SLOTS` slots, a power of two.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Anderson;
///
/// static COUNT: NodeMutex<Anderson, u32> = NodeMutex::new(Anderson::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`AndersonMutex`](crate::queue::AndersonMutex) lists them.
///
/// # Properties
///
/// **Paper:** T. E. Anderson, "The Performance of Spin Lock Alternatives for
/// Shared-Memory Multiprocessors", IEEE TPDS 1(1), 1990.
///
/// **Size:** one 64-byte line, and one for each slot. **Per waiter:** 64 bytes
/// that hold its turn. **Fairness:** first come, first served from the
/// fetch-and-add on. A handoff touches one line of one waiter.
///
/// Where the paper has a flag in each slot, here is the number of the turn that
/// was last called there: nothing is re-armed, and with more acquisitions at
/// once than slots (more CPUs, or guards that were leaked) two wait at one slot,
/// each for its own number. That costs speed only.
///
/// The turn of the holder is kept in its context and not in the lock: a word
/// there would be one more line that moves with each handoff.
#[repr(C)]
pub struct Anderson<P: Platform = NativePlatform, const SLOTS: usize = 512> {
    /// Number of arrivals: the turn of the next one, whose slot is that modulo
    /// `SLOTS`.
    next: CacheLine<P::Usize>,
    /// The turn that was last called in each slot. A slot that was never used
    /// holds 0, so that a lock of zeros is free: turn 0 is called already.
    slots: [CacheLine<P::Usize>; SLOTS],
}

impl<P: Platform, const SLOTS: usize> Anderson<P, SLOTS> {
    const POWER_OF_TWO: () = assert!(
        SLOTS.is_power_of_two() && SLOTS >= 2 && SLOTS < crate::MAX_CPUS,
        "the slots go round as the counter wraps only if their number is a power of two; at least 2, at most 8192"
    );

    /// Returns a free lock.
    pub const fn new() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            next: CacheLine(P::Usize::ZERO),
            slots: [const { CacheLine(P::Usize::ZERO) }; SLOTS],
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, turn: usize) {
        // A2: pairs with A3, the holder before us.
        self.slots[turn % SLOTS].spin_until(Ordering::Acquire, |called| called == turn);
    }
}

impl<P: Platform, const SLOTS: usize> Default for Anderson<P, SLOTS> {
    fn default() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            next: CacheLine(P::Usize::new(0)),
            slots: core::array::from_fn(|_| CacheLine(P::Usize::new(0))),
        }
    }
}

// SAFETY: a turn is given to one acquisition (fetch_add) and is called after
// the holder of the turn before it has released.
unsafe impl<P: Platform, const SLOTS: usize> RawLock<P> for Anderson<P, SLOTS> {
    type Ctx = AndersonSlot;

    const INFO: Info = Info {
        name: "anderson",
        summary: "an array of turns in the lock, each waiter spinning on one",
        fairness: Fairness::Fifo,
        shared_memory: true,
        bytes_per_waiter: 64,
        paper: "Anderson 1990",
        promises: "anderson of two slots",
        ..Info::BASE
    };

    const COUNTS: bool = true;

    fn about_to_wrap() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            next: CacheLine(P::Usize::new(usize::MAX)),
            // The last turn that each slot had.
            slots: core::array::from_fn(|slot| CacheLine(P::Usize::new(slot.wrapping_sub(SLOTS)))),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, ctx: &AndersonSlot) {
        // Relaxed: no slot holds our turn's number before it is called (A3).
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        ctx.turn.set(turn);
        // A1: pairs with A3.
        if self.slots[turn % SLOTS].load(Ordering::Acquire) != turn {
            self.wait(turn);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &AndersonSlot) -> bool {
        let turn = self.next.load(Ordering::Relaxed);
        let called = &self.slots[turn % SLOTS];
        if called.load(Ordering::Relaxed) != turn
            || self
                .next
                .compare_exchange(
                    turn,
                    turn.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_err()
        {
            return false;
        }
        ctx.turn.set(turn);
        // A1': as A1. Called already, unless the counter went all the way round
        // between the two reads above.
        called.spin_until(Ordering::Acquire, |called| called == turn);
        true
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        let turn = self.next.load(Ordering::Relaxed);
        Some(self.slots[turn % SLOTS].load(Ordering::Relaxed) != turn)
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &AndersonSlot) {
        let next = ctx.turn.get().wrapping_add(1);
        // A3: pairs with A1, A1' and A2.
        self.slots[next % SLOTS].store(next, Ordering::Release);
    }
}

// SAFETY: the context is only a number.
unsafe impl<P: Platform, const SLOTS: usize> crate::mutex::StackContext for Anderson<P, SLOTS> {}
// SAFETY: turns are numbers.
unsafe impl<P: Platform, const SLOTS: usize> crate::mutex::LeakableGuard for Anderson<P, SLOTS> {}
