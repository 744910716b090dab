//! TWA: a ticket lock whose far waiters wait on an array.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};

/// The greatest distance from the front at which a waiter spins on the lock
/// word.
const NEAR: u32 = 1;

/// Neighbouring tickets map to slots this far apart, so that they do not
/// share a line (odd, so that all slots are used).
const STRIDE: u32 = 17;

/// A ticket lock with a waiting array of `SLOTS` words, a power of two.
///
/// ```
/// use locklab_locks::spin::TwaMutex;
///
/// static COUNT: TwaMutex<u32> = TwaMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TwaMutex`](crate::spin::TwaMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice and A. Kogan, "TWA: Ticket Locks Augmented with a Waiting
/// Array", Euro-Par 2019.
///
/// **Size:** one 64-byte line and `SLOTS` 4-byte words. (The paper shares one array among all
/// locks of a program; a lock that may run in a kernel has its own.) Per
/// waiter: nothing. **Fairness:** first come, first served. Only the next in line
/// spins on the lock word; a CPU further back waits for a change of the slot
/// that its ticket maps to, so a handoff invalidates the word in one cache
/// and one slot, not in all.
#[repr(C, align(64))]
pub struct Twa<P: Platform = NativePlatform, const SLOTS: usize = 64> {
    /// Number of tickets drawn.
    next: P::U32,
    /// The ticket being served.
    owner: P::U32,
    /// Words that change when the ticket that maps to them comes near.
    slots: Slots<P, SLOTS>,
}

#[repr(C, align(64))]
struct Slots<P: Platform, const SLOTS: usize>([P::U32; SLOTS]);

impl<P: Platform, const SLOTS: usize> Twa<P, SLOTS> {
    const MAPPABLE: () = assert!(SLOTS.is_power_of_two(), "SLOTS is a power of two");

    /// Returns a free lock.
    pub const fn new() -> Self {
        let () = Self::MAPPABLE;
        Self {
            next: P::U32::ZERO,
            owner: P::U32::ZERO,
            slots: Slots([const { P::U32::ZERO }; SLOTS]),
        }
    }

    fn slot(&self, ticket: u32) -> &P::U32 {
        &self.slots.0[ticket.wrapping_mul(STRIDE) as usize % SLOTS]
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, ticket: u32) {
        let slot = self.slot(ticket);
        loop {
            // W3: pairs with W6. Read before the owner: if the owner read
            // next is still far, the change of this slot that announces us
            // is still to come.
            let seen = slot.load(Ordering::Acquire);
            // Only says how near we are: W2 reads it again, with Acquire.
            let owner = self.owner.load(Ordering::Relaxed);
            if ticket.wrapping_sub(owner) <= NEAR {
                break;
            }
            slot.spin_until(Ordering::Relaxed, |now| now != seen);
        }
        // W2: pairs with W5.
        self.owner
            .spin_until(Ordering::Acquire, |owner| owner == ticket);
    }
}

impl<P: Platform, const SLOTS: usize> Default for Twa<P, SLOTS> {
    fn default() -> Self {
        let () = Self::MAPPABLE;
        Self {
            next: P::U32::new(0),
            owner: P::U32::new(0),
            slots: Slots(core::array::from_fn(|_| P::U32::new(0))),
        }
    }
}

// SAFETY: a ticket is given to one CPU and is served after the holder of the
// ticket before it has released.
unsafe impl<P: Platform, const SLOTS: usize> RawLock<P> for Twa<P, SLOTS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "twa",
        summary: "a ticket lock whose far waiters wait in an array",
        fairness: Fairness::Fifo,
        shared_memory: true,
        touches_after_release: true,
        paper: "Dice and Kogan 2019 (TWA)",
        promises: "twa of four slots, wraps, in order again",
        ..Info::BASE
    };

    const COUNTS: bool = true;

    /// Returns a lock whose second to come waits for the last ticket.
    fn about_to_wrap() -> Self {
        Self {
            next: P::U32::new(u32::MAX - 1),
            owner: P::U32::new(u32::MAX - 1),
            ..Self::default()
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // W1: pairs with W5.
        if self.owner.load(Ordering::Acquire) != ticket {
            self.wait(ticket);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // W1': pairs with W5. If `next` still equals it, the lock is free.
        let owner = self.owner.load(Ordering::Acquire);
        self.next
            .compare_exchange(
                owner,
                owner.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.next.load(Ordering::Relaxed) != self.owner.load(Ordering::Relaxed))
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        let next = self.owner.load(Ordering::Relaxed).wrapping_add(1);
        // W5: pairs with W1, W1' and W2.
        self.owner.store(next, Ordering::Release);
        // The one behind the new owner comes near. Its slot may be shared
        // with other tickets, whose CPUs look again and wait on.
        // W6: pairs with W3: who sees the change sees the owner.
        self.slot(next.wrapping_add(NEAR))
            .fetch_add(1, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Twa, SLOTS: usize);
crate::lock_api_impl::fair!(Twa, SLOTS: usize);
