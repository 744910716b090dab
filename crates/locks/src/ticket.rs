//! The ticket lock: take a number, wait until it is called.
//!
//! Paper: D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts
//! and Sequencers", Communications of the ACM 22(2), 1979; as a spinlock:
//! J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991,
//! section 2.2.
//!
//! Size: 4 bytes. Per waiter: nothing. Fairness: first come, first served.
//! Every waiter spins on the one word, so each handoff invalidates it in
//! every waiter's cache: throughput falls with the number of waiters.

use crate::native::NativePlatform;
use crate::platform::{Atomic, LockWord, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};

/// One ticket: the high half of the word counts tickets given out.
const TICKET: u32 = 1 << 16;

/// A ticket lock in one 32-bit word: `next` in the high half, `owner` (the
/// number being served) in the low half. Equal halves mean free.
///
/// At most 65,535 CPUs may wait at once: beyond that, tickets repeat.
#[repr(transparent)]
pub struct Ticket<P: Platform = NativePlatform> {
    word: P::U32,
}

impl<P: Platform> Ticket<P> {
    /// A free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    /// How many CPUs wait, for a composition (the cohort locks). Exact for
    /// those that came before; the holder asks.
    #[inline(always)]
    pub(crate) fn waiters(&self) -> u16 {
        let word = self.word.load(Ordering::Relaxed);
        ((word >> 16) as u16)
            .wrapping_sub(word as u16)
            .wrapping_sub(1)
    }

    /// Waits for `ticket`, out of line: the way in is kept small where it is
    /// inlined.
    /// Public for the C header, whose fast path draws the ticket.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn wait(&self, ticket: u16) {
        // T2: pairs with T3, the holder before us.
        self.word
            .spin_until(Ordering::Acquire, |word| word as u16 == ticket);
    }
}

impl<P: Platform> Default for Ticket<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
        }
    }
}

// SAFETY: a ticket is given to one CPU (atomic addition) and is served after
// the holder of the ticket before it has released.
unsafe impl<P: Platform> RawLock<P> for Ticket<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "ticket",
        summary: "take a number, wait until it is called; one word",
        fairness: Fairness::Fifo,
        shared_memory: true,
        paper: "Reed and Kanodia 1979; Mellor-Crummey and Scott 1991",
        ..Info::BASE
    };

    const COUNTS: bool = true;

    fn about_to_wrap() -> Self {
        Self {
            word: P::U32::new(u32::MAX),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // T1: pairs with T3 where the lock is free at once.
        if let Err(ticket) = self.word.draw_ticket(Ordering::Acquire) {
            self.wait(ticket);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // T1': as T1. If the word is unchanged, its halves are still equal.
        (word >> 16) as u16 == word as u16
            && self
                .word
                .compare_exchange(
                    word,
                    word.wrapping_add(TICKET),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // T3: pairs with T1, T1' and T2. Only the holder writes `owner`.
        self.word.increment_low_half(Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Ticket);
