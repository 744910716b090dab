//! The big lock on Anderson's array: each CPU spins on a line of its own.

use super::Queue;
use crate::line::CacheLine;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};

/// Flag of a slot: its waiter may enter.
const GO: u32 = 1;
/// Flag of a slot: its waiter must wait.
const WAIT: u32 = 2;

/// Returns whether the waiter of a slot may enter. A slot that was never used holds 0, so
/// that a lock of zeros is free: the first arrival finds its turn already granted, and
/// every other one waits.
#[inline(always)]
fn may_go(flag: u32, slot: usize) -> bool {
    flag == GO || (flag == 0 && slot == 0)
}

/// Returns the flag of `slot` when the lock is free and the turn of the last slot comes
/// next.
fn last_turn(slot: usize, slots: usize) -> u32 {
    if slot == slots - 1 { GO } else { WAIT }
}

/// The state of a CPU: the slot with which it waits or holds, and its
/// recursion depth.
#[repr(C)]
struct Place<P: Platform> {
    slot: P::Usize,
    depth: P::U32,
}

/// Anderson's lock, with the slots of its CPUs stored inside.
///
/// **Paper:** Anderson 1990, as [`Anderson`](crate::queue::Anderson); proposed for OpenBSD's
/// kernel lock on its tech list, 21 December 2025.
///
/// **Size:** one line, and two for each CPU (its flag's, and its state's). Per
/// waiter: nothing. **Fairness:** first come, first served.
#[repr(C)]
pub struct AndersonQueue<P: Platform, const MAXCPUS: usize> {
    next: CacheLine<P::Usize>,
    flags: [CacheLine<P::U32>; MAXCPUS],
    cpus: [CacheLine<Place<P>>; MAXCPUS],
}

impl<P: Platform, const MAXCPUS: usize> AndersonQueue<P, MAXCPUS> {
    #[cold]
    #[inline(never)]
    fn wait(&self, slot: usize) {
        // D3: pairs with D5.
        self.flags[slot].spin_until(Ordering::Acquire, |flag| may_go(flag, slot));
    }

    #[inline(always)]
    fn slot_of(&self, cpu: usize) -> usize {
        self.cpus[cpu].slot.load(Ordering::Relaxed) % MAXCPUS
    }
}

impl<P: Platform, const MAXCPUS: usize> Default for AndersonQueue<P, MAXCPUS> {
    fn default() -> Self {
        Self {
            next: CacheLine(P::Usize::new(0)),
            flags: core::array::from_fn(|_| CacheLine(P::U32::new(0))),
            cpus: core::array::from_fn(|_| {
                CacheLine(Place {
                    slot: P::Usize::new(0),
                    depth: P::U32::new(0),
                })
            }),
        }
    }
}

// SAFETY: a turn is given to one CPU (fetch_add) and is called after the
// holder of the turn before it has released; CPU numbers are below MAXCPUS, so
// a slot serves one turn at a time.
unsafe impl<P: Platform, const MAXCPUS: usize> Queue<P> for AndersonQueue<P, MAXCPUS> {
    const NAME: &'static str = "mplock-anderson";
    const SUMMARY: &'static str = "the big lock; an array of flags, one line a CPU";
    const PROMISES: &'static str = "mplock-anderson of two slots, wraps, in order again";
    const PAPER: &'static str = "Anderson 1990; OpenBSD tech list, December 2025";
    const TRY: bool = true;
    const MAXCPUS: usize = MAXCPUS;
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        next: CacheLine(P::Usize::ZERO),
        flags: [const { CacheLine(P::U32::ZERO) }; MAXCPUS],
        cpus: [const {
            CacheLine(Place {
                slot: P::Usize::ZERO,
                depth: P::U32::ZERO,
            })
        }; MAXCPUS],
    };
    const COUNTS: bool = true;

    fn about_to_wrap() -> Self {
        Self {
            next: CacheLine(P::Usize::new(usize::MAX)),
            flags: core::array::from_fn(|slot| CacheLine(P::U32::new(last_turn(slot, MAXCPUS)))),
            ..Self::default()
        }
    }

    unsafe fn init(&self) {
        self.next.store(0, Ordering::Relaxed);
        for flag in &self.flags {
            flag.store(0, Ordering::Relaxed);
        }
        for cpu in &self.cpus {
            cpu.slot.store(0, Ordering::Relaxed);
            cpu.depth.store(0, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn depth(&self, cpu: usize) -> &P::U32 {
        &self.cpus[cpu].depth
    }

    #[inline(always)]
    unsafe fn enter(&self, cpu: usize) {
        // D1: pairs with itself. When the slots have gone round, a CPU that
        // never held the lock must see the slot re-armed (D4): its last user
        // may have come back (Release) before us (Acquire) without anything
        // else between.
        let slot = self.next.fetch_add(1, Ordering::AcqRel) % MAXCPUS;
        self.cpus[cpu].slot.store(slot, Ordering::Relaxed);
        // D2: pairs with D5.
        if self.flags[slot].load(Ordering::Acquire) != GO {
            self.wait(slot);
        }
    }

    #[inline(always)]
    unsafe fn try_enter(&self, cpu: usize) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let slot = next % MAXCPUS;
        if !may_go(self.flags[slot].load(Ordering::Relaxed), slot)
            // D1': as D1.
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
        self.cpus[cpu].slot.store(slot, Ordering::Relaxed);
        // D2': as D2. Ours already, unless the counter went all the way round
        // between the two reads above.
        if self.flags[slot].load(Ordering::Acquire) != GO {
            self.wait(slot);
        }
        true
    }

    #[inline(always)]
    fn served(&self, cpu: usize) -> bool {
        let slot = self.slot_of(cpu);
        may_go(self.flags[slot].load(Ordering::Relaxed), slot)
    }

    #[inline(always)]
    unsafe fn leave(&self, cpu: usize) {
        let slot = self.slot_of(cpu);
        let next = (slot + 1) % MAXCPUS;
        // D4: re-armed before the next can enter, see D1.
        self.flags[slot].store(WAIT, Ordering::Relaxed);
        // D5: pairs with D2, D2' and D3.
        self.flags[next].store(GO, Ordering::Release);
    }
}
