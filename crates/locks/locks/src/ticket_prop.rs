//! The ticket lock with proportional backoff: the further back in the queue,
//! the longer a waiter pauses between reads.

use crate::native::NativePlatform;
use crate::platform::{Atomic, LockWord, Ordering, Patience, Platform, Poll};
use crate::raw::{Fairness, Info, RawLock};
use crate::ticket::before;

/// One ticket: the high half of the word counts the tickets drawn.
const TICKET: u32 = 1 << 16;

/// A ticket lock whose waiters relax once, and `RELAXES` times more for each
/// other waiter before them, between two reads. That should be about as long as
/// the shortest time the lock is held and handed over: with more, a waiter is
/// late. The next in line waits for one release only and reads as often as that
/// of [`crate::Ticket`]: it alone would gain nothing by a longer pause, since
/// rereading a word that nobody writes moves no line.
///
/// ```
/// use locklab_locks::spin::TicketPropMutex;
///
/// static COUNT: TicketPropMutex<u32> = TicketPropMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TicketPropMutex`](crate::spin::TicketPropMutex) lists them.
///
/// # Properties
///
/// **Paper:** J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable
/// Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991,
/// section 2.2: a waiter knows how many are before it, so it need not guess.
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** first come, first served.
/// Every waiter still reads the one word, but those far back read it seldom,
/// so a handoff invalidates fewer caches than [`crate::Ticket`]'s.
///
/// At most 32,768 CPUs may wait at once, as for [`crate::Ticket`].
#[repr(transparent)]
pub struct TicketProp<P: Platform = NativePlatform, const RELAXES: u32 = 4> {
    word: P::U32,
}

impl<P: Platform, const RELAXES: u32> TicketProp<P, RELAXES> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[cfg(test)]
    pub(crate) fn with_word(word: u32) -> Self {
        Self {
            word: P::U32::new(word),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, ticket: u16) {
        // P2: pairs with P3, the holder before us.
        self.word
            .spin(Ordering::Acquire, Patience::Forever, |word| {
                match before(ticket, word) {
                    0 => Poll::Done,
                    before_us => Poll::Relax(1 + u32::from(before_us - 1) * RELAXES),
                }
            });
    }
}

impl<P: Platform, const RELAXES: u32> Default for TicketProp<P, RELAXES> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
        }
    }
}

// SAFETY: a ticket is given to one CPU (atomic addition) and is served after
// the holder of the ticket before it has released.
unsafe impl<P: Platform, const RELAXES: u32> RawLock<P> for TicketProp<P, RELAXES> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "ticket-prop",
        summary: "a ticket lock; waits in proportion to the line before it",
        fairness: Fairness::Fifo,
        shared_memory: true,
        paper: "Mellor-Crummey and Scott 1991",
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
        // P1: pairs with P3 where the lock is free at once.
        if let Err(ticket) = self.word.draw_ticket(Ordering::Acquire) {
            self.wait(ticket);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // P1': as P1. If the word is unchanged, its halves are still equal.
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
    fn is_locked(&self) -> Option<bool> {
        let word = self.word.load(Ordering::Relaxed);
        Some((word >> 16) as u16 != word as u16)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // P3: pairs with P1, P1' and P2. Only the holder writes `owner`.
        self.word.increment_low_half(Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(TicketProp, RELAXES: u32);
crate::lock_api_impl::fair!(TicketProp, RELAXES: u32);
