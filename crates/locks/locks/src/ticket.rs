//! The ticket lock: draw a number, wait until it is served.

use crate::native::NativePlatform;
use crate::platform::{Atomic, LockWord, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};

/// One ticket: the high half of the word counts the tickets drawn.
const TICKET: u32 = 1 << 16;

/// A ticket lock in one 32-bit word: `next` in the high half, `owner` (the
/// number being served) in the low half. Equal halves mean free.
///
/// ```
/// use locklab_locks::spin::TicketMutex;
///
/// static COUNT: TicketMutex<u32> = TicketMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TicketMutex`](crate::spin::TicketMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts
/// and Sequencers", Communications of the ACM 22(2), 1979; as a spinlock:
/// J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable
/// Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991,
/// section 2.2.
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** first come, first served.
/// Every waiter spins on the one word, so each handoff invalidates it in
/// every waiter's cache: throughput falls with the number of waiters.
///
/// What four bytes cost: back to back, 4.3 ns on AMD's Zen 3, where a form of two
/// words of 32 bits takes 2.2 ns (on Zen 4 2.0 and 1.9 ns). With 3, 10 or 30 ns of
/// other work between, the two are equal on Zen 3, so that form is not offered.
///
/// At most 32,768 CPUs may wait at once. Beyond 65,535, tickets would repeat
/// and two CPUs enter, so a CPU that draws a ticket that far back ends the
/// program.
#[repr(transparent)]
pub struct Ticket<P: Platform = NativePlatform> {
    word: P::U32,
}

/// Returns the number of CPUs to be served before `ticket`.
///
/// Ends the program if they are more than half of what 16 bits can count: the
/// other half is for CPUs that draw tickets before the program has ended.
#[inline(always)]
pub(crate) fn before(ticket: u16, word: u32) -> u16 {
    let before = ticket.wrapping_sub(word as u16);
    if before > 1 << 15 {
        too_many();
    }
    before
}

/// Aborts: a ticket that is drawn must be served, so this must not unwind.
#[cold]
#[cfg(feature = "std")]
fn too_many() -> ! {
    std::eprintln!("locklab: more than 32,768 CPUs wait for a ticket lock");
    std::process::abort()
}

/// Does the same by a panic, which without `std` is the end. (It must not unwind out
/// of a function of the C ABI, which would ask a freestanding program for an
/// unwinder.)
#[cold]
#[cfg(not(feature = "std"))]
fn too_many() -> ! {
    panic!("more than 32,768 CPUs wait for a ticket lock");
}

impl<P: Platform> Ticket<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    /// Returns the number of waiting CPUs, for a composition (the cohort locks). Exact
    /// for those that arrived before the call, by the holder.
    #[inline(always)]
    pub(crate) fn waiters(&self) -> u16 {
        let word = self.word.load(Ordering::Relaxed);
        ((word >> 16) as u16)
            .wrapping_sub(word as u16)
            .wrapping_sub(1)
    }

    /// Waits for `ticket`, out of line: the inlined fast path is kept small.
    /// Public for the C header, whose fast path draws the ticket.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn wait(&self, ticket: u16) {
        // T2: pairs with T3, the holder before us.
        self.word
            .spin_until(Ordering::Acquire, |word| before(ticket, word) == 0);
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
        summary: "one word, take a number, wait; +2 ns back to back on Zen 3",
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
    fn is_locked(&self) -> Option<bool> {
        let word = self.word.load(Ordering::Relaxed);
        Some((word >> 16) as u16 != word as u16)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // T3: pairs with T1, T1' and T2. Only the holder writes `owner`.
        self.word.increment_low_half(Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Ticket);
crate::lock_api_impl::fair!(Ticket);

#[cfg(all(test, feature = "std", not(miri)))]
mod tests {
    use super::*;
    use crate::native::NativePlatform as N;
    use crate::ticket_prop::TicketProp;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// Set in the child process, to the kind of lock.
    const CHILD: &str = "LOCKLAB_TICKETS_RUN_OUT";

    /// As many as are documented may wait.
    #[test]
    fn the_last_that_may_wait_is_counted() {
        assert_eq!(before(1 << 15, 0), 1 << 15);
        assert_eq!(before(0, 1 << 15), 1 << 15);
    }

    /// The 32,769th waiter ends the program: 32,767 more, and one would be
    /// given the ticket of the holder.
    #[test]
    fn a_ticket_too_far_back_ends_the_program() {
        if let Ok(lock) = std::env::var(CHILD) {
            // Ticket 0 holds, and 32,768 wait.
            let word = 0x8001_0000;
            // SAFETY: does not come back.
            unsafe {
                if lock == "ticket" {
                    Ticket::<N> { word: word.into() }.lock(&());
                } else {
                    TicketProp::<N>::with_word(word).lock(&());
                }
            }
            std::process::exit(0);
        }
        for lock in ["ticket", "ticket-prop"] {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "ticket::tests::a_ticket_too_far_back_ends_the_program",
                ])
                .env(CHILD, lock)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            let status = loop {
                match child.try_wait().unwrap() {
                    Some(status) => break Some(status),
                    None if Instant::now() > deadline => break None,
                    None => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            let _ = child.kill();
            let _ = child.wait();
            let status = status.expect("a waiter that may not wait is gone");
            assert!(!status.success(), "{lock}: {status}");
        }
    }
}
