//! The mutex of Go, as its comments describe it: a normal mode and one for starvation.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use crate::sleep_queue::{first_only, sleep, wake};
use core::ptr;

const HELD: u32 = 1;
/// A waiter sleeps in the queue.
const PARKED: u32 = 2;
/// A waiter that does not sleep will try next: none need be woken.
const WOKEN: u32 = 4;
/// The holder hands the lock over, and who comes joins the queue; it is held.
const STARVING: u32 = 8;

/// Pauses of one round of a spin.
const PAUSES: u32 = 30;
/// How long a waiter waits before it starves, in nanoseconds.
const PATIENCE: u64 = 1_000_000;

/// Tells a sleeper to try again.
const TRY_AGAIN: u32 = 0;
/// Tells a sleeper that it has the lock.
const GIVEN: u32 = 1;
/// Tells a sleeper that it has the lock, and that nobody sleeps any more.
const GIVEN_TO_LAST: u32 = 2;

/// A word of four bits and a queue beside it.
///
/// In the normal mode a release frees the lock and wakes the first of the queue, unless
/// another waiter is about to try; who comes may be faster, and then the woken one joins
/// the queue in front. A waiter that has not got it for a millisecond begins the mode for
/// starvation: releases hand the lock to the first of the queue, and who comes joins it at
/// the end. One that gets it after less than that, or as the last, ends the mode. Waiters
/// spin for `ROUNDS` rounds before they sleep, in the normal mode.
///
/// **Follows:** `sync.Mutex` of Go 1.9 and later, from the comment on its fairness and
/// Go's issue 13086. There the queue is that of a semaphore and the word counts its
/// waiters; here a waiter marks the word while it holds the queue. Goroutines are threads.
///
/// **Size:** 4 bytes. **Per waiter:** 40 bytes of its stack. **Fairness:** after a
/// millisecond a waiter is served in the order of the queue.
#[repr(transparent)]
pub struct GoMutex<P: Platform = NativePlatform, const ROUNDS: u32 = 4> {
    word: P::U32,
}

impl<P: Platform, const ROUNDS: u32> GoMutex<P, ROUNDS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline(always)]
    fn take(&self, seen: u32, new: u32) -> bool {
        // G1: pairs with G2 and G3.
        self.word
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Changes bits other than [`HELD`], by which nothing is published.
    fn mark(&self, seen: u32, new: u32) -> Result<u32, u32> {
        self.word
            .compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut began = None;
        let mut starves = false;
        // Says whether `WOKEN` is there for this waiter.
        let mut woken = false;
        let mut rounds = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if seen & HELD == 0 {
                if self.take(seen, without(woken, seen) | HELD) {
                    return;
                }
                P::relax();
                continue;
            }
            if seen & STARVING == 0 && rounds < ROUNDS {
                rounds += 1;
                if !woken && seen & (WOKEN | PARKED) == PARKED {
                    woken = self.mark(seen, seen | WOKEN).is_ok();
                }
                P::relax_for(PAUSES);
                continue;
            }
            let slept_before = began.is_some();
            let since = began.unwrap_or_else(P::now);
            let still = || self.says_that_one_sleeps(woken, starves);
            let Some(told) = sleep::<P>(self.address(), 0, slept_before, still) else {
                continue;
            };
            began = Some(since);
            starves |= P::now().saturating_sub(since) > PATIENCE;
            if told == TRY_AGAIN {
                woken = true;
                rounds = 0;
                continue;
            }
            if !starves || told == GIVEN_TO_LAST {
                self.word.fetch_and(!STARVING, Ordering::Relaxed);
            }
            return;
        }
    }

    /// Says, while the queue is locked, that a waiter sleeps, and in which mode; returns
    /// whether it has to, which is as long as the lock is held.
    fn says_that_one_sleeps(&self, woken: bool, starves: bool) -> bool {
        let starving = if starves { STARVING } else { 0 };
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & HELD != 0 {
            match self.mark(seen, without(woken, seen) | PARKED | starving) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn release_slowly(&self) {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & STARVING == 0 {
            let free = seen & !HELD;
            // G3: pairs with G1.
            match self
                .word
                .compare_exchange(seen, free, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return self.wake_one(free),
                Err(now) => seen = now,
            }
        }
        self.hand_over();
    }

    /// Wakes the first of the queue, unless there is none or another will try.
    fn wake_one(&self, mut seen: u32) {
        while seen & PARKED != 0 && seen & (HELD | WOKEN) == 0 {
            match self.mark(seen, seen | WOKEN) {
                Ok(_) => {
                    return wake::<P>(self.address(), first_only(), |found| {
                        if !found.more {
                            self.word.fetch_and(!PARKED, Ordering::Relaxed);
                        }
                        TRY_AGAIN
                    });
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Hands the lock to the first of the queue. There is one: who begins the mode for
    /// starvation has joined it, and is woken by nobody else.
    fn hand_over(&self) {
        wake::<P>(self.address(), first_only(), |found| {
            if found.more {
                return GIVEN;
            }
            self.word.fetch_and(!PARKED, Ordering::Relaxed);
            GIVEN_TO_LAST
        });
    }
}

/// Returns the word without the mark of a waiter that was woken, which gives it back as it
/// enters or sleeps.
fn without(woken: bool, seen: u32) -> u32 {
    if woken { seen & !WOKEN } else { seen }
}

impl<P: Platform, const ROUNDS: u32> Default for GoMutex<P, ROUNDS> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
        }
    }
}

// SAFETY: a compare-and-swap takes it when it is free, and a handoff leaves it held for one
// sleeper.
unsafe impl<P: Platform, const ROUNDS: u32> RawLock<P> for GoMutex<P, ROUNDS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "go-mutex",
        summary: "Go's sync.Mutex, as described: in order after a millisecond",
        fairness: Fairness::Bounded("in order once a waiter has waited for 1 ms"),
        parks: true,
        touches_after_release: true,
        bytes_per_waiter: 40,
        paper: "sync.Mutex of Go 1.9; Go issue 13086",
        promises: "handed over by starvation, loses races",
        not_promised: "a place in the end",
        orderings_of: Some("library-models/src/go_mutex.rs"),
        structure_of: &["library-models/src/go_mutex.rs"],
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take(0, HELD) {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        seen & HELD == 0 && self.take(seen, seen | HELD)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) & HELD != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // G2: pairs with G1.
        let freed = self
            .word
            .compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.release_slowly();
        }
    }
}

crate::lock_api_impl::context_free!(GoMutex, ROUNDS: u32);
