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
    slot: Cell<usize>,
}

impl AndersonSlot {
    /// A context that is in no queue.
    pub const fn new() -> Self {
        Self { slot: Cell::new(0) }
    }
}

/// Anderson's lock for at most `SLOTS` CPUs, a power of two.
///
/// **Paper:** T. E. Anderson, "The Performance of Spin Lock Alternatives for
/// Shared-Memory Multiprocessors", IEEE TPDS 1(1), 1990.
///
/// **Size:** one 64-byte line, and one for each slot. **Per waiter:** 64 bytes
/// that hold its slot. **Fairness:** first come, first served from the
/// fetch-and-add on. A handoff touches one line of one waiter.
///
/// The slot of the holder is kept in its context and not in the lock: a word
/// there would be one more line that moves with each handoff.
///
/// With more than `SLOTS` CPUs two would wait on one slot and both enter.
/// [`crate::Mutex`] panics in that case; users of [`RawLock`] must ensure it
/// themselves.
#[repr(C)]
pub struct Anderson<P: Platform = NativePlatform, const SLOTS: usize = 512> {
    /// Number of arrivals; modulo `SLOTS`, the slot of the next one.
    next: CacheLine<P::Usize>,
    slots: [CacheLine<P::U32>; SLOTS],
}

/// Flag of a slot: its waiter may enter.
pub(crate) const GO: u32 = 1;
/// Flag of a slot: its waiter must wait.
pub(crate) const WAIT: u32 = 2;

/// Whether the waiter of a slot may enter. A slot that was never used holds 0,
/// so that a lock of zeros is free: the first arrival finds its turn already
/// granted, and every other one waits.
#[inline(always)]
pub(crate) fn may_go(flag: u32, slot: usize) -> bool {
    flag == GO || (flag == 0 && slot == 0)
}

/// The flag of `slot` when the lock is free and the turn of the last slot comes
/// next.
pub(crate) fn last_turn(slot: usize, slots: usize) -> u32 {
    if slot == slots - 1 { GO } else { WAIT }
}

impl<P: Platform, const SLOTS: usize> Anderson<P, SLOTS> {
    const POWER_OF_TWO: () = assert!(
        SLOTS.is_power_of_two() && SLOTS >= 2 && SLOTS < crate::MAX_CPUS,
        "the slots go round as the counter wraps only if their number is a power of two; at least 2, at most 8192"
    );

    /// A free lock.
    pub const fn new() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            next: CacheLine(P::Usize::ZERO),
            slots: [const { CacheLine(P::U32::ZERO) }; SLOTS],
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, slot: usize) {
        // A3: pairs with A5, the holder before us.
        self.slots[slot].spin_until(Ordering::Acquire, |flag| may_go(flag, slot));
    }
}

impl<P: Platform, const SLOTS: usize> Default for Anderson<P, SLOTS> {
    fn default() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            next: CacheLine(P::Usize::new(0)),
            slots: core::array::from_fn(|_| CacheLine(P::U32::new(0))),
        }
    }
}

// SAFETY: a turn is given to one CPU (fetch_add) and is called after the
// holder of the turn before it has released; with at most SLOTS CPUs, a slot
// serves one turn at a time.
unsafe impl<P: Platform, const SLOTS: usize> RawLock<P> for Anderson<P, SLOTS> {
    type Ctx = AndersonSlot;

    const INFO: Info = Info {
        name: "anderson",
        summary: "an array of flags in the lock, each waiter spinning on one",
        fairness: Fairness::Fifo,
        shared_memory: true,
        max_cpus: SLOTS,
        bytes_per_waiter: 64,
        paper: "Anderson 1990",
        ..Info::BASE
    };

    const COUNTS: bool = true;

    fn about_to_wrap() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            next: CacheLine(P::Usize::new(usize::MAX)),
            slots: core::array::from_fn(|slot| CacheLine(P::U32::new(last_turn(slot, SLOTS)))),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, ctx: &AndersonSlot) {
        // A1: pairs with itself. When the slots have gone round, a CPU that
        // never held the lock must see the slot re-armed (A4): its last user
        // may have come back (Release) before us (Acquire) without anything
        // else between.
        let slot = self.next.fetch_add(1, Ordering::AcqRel) % SLOTS;
        ctx.slot.set(slot);
        // A2: pairs with A5. (Only the first of all finds a 0; `wait` sees to
        // that.)
        if self.slots[slot].load(Ordering::Acquire) != GO {
            self.wait(slot);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &AndersonSlot) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let slot = next % SLOTS;
        if !may_go(self.slots[slot].load(Ordering::Relaxed), slot)
            // A1': as A1.
            || self
                .next
                .compare_exchange(
                    next,
                    next.wrapping_add(1),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_err()
        {
            return false;
        }
        ctx.slot.set(slot);
        // A2': as A2. Ours already, unless the counter went all the way round
        // between the two reads above.
        if self.slots[slot].load(Ordering::Acquire) != GO {
            self.wait(slot);
        }
        true
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        let slot = self.next.load(Ordering::Relaxed) % SLOTS;
        Some(!may_go(self.slots[slot].load(Ordering::Relaxed), slot))
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &AndersonSlot) {
        let slot = ctx.slot.get() % SLOTS;
        let next = (slot + 1) % SLOTS;
        // A4: re-armed before the next can enter, see A1.
        self.slots[slot].store(WAIT, Ordering::Relaxed);
        // A5: pairs with A2, A2' and A3.
        self.slots[next].store(GO, Ordering::Release);
    }
}

// SAFETY: the context is only a number.
unsafe impl<P: Platform, const SLOTS: usize> crate::mutex::StackContext for Anderson<P, SLOTS> {}
// SAFETY: slots are numbers.
unsafe impl<P: Platform, const SLOTS: usize> crate::mutex::LeakableGuard for Anderson<P, SLOTS> {}
