//! The mutex of Swift's Synchronization module on Linux, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Info, RawLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the release must wake a waiter.
const AWAITED: u32 = 2;

/// The fewest pauses between two attempts of a waiter, a power of two; by the clock it makes
/// up to twice as many, so that waiters do not try in step.
const PAUSES: u32 = 64;
/// With so many asleep, who comes does not look again before it sleeps.
const DEEP: u32 = 4;

/// A futex in three states whose waiters try `ROUNDS` times before they sleep, with long
/// pauses in between, but only while nobody sleeps. A count beside the word says how many do.
///
/// **Follows:** `Synchronization.Mutex` of Swift on Linux since pull request 88523 (2026), from
/// its text and Swift's docs/SynchronizationMutexLinux.md. (The mutex before it was handed over
/// by the kernel, `FUTEX_LOCK_PI`.) The pauses are drawn there by the cycle counter (x86 only),
/// here by the platform's clock.
///
/// **Size:** 8 bytes. **Per waiter:** nothing. **Fairness:** none.
#[repr(C)]
pub struct SwiftMutex<P: Platform = NativePlatform, const ROUNDS: u32 = 20> {
    word: P::U32,
    /// How many sleep, about: a hint.
    sleepers: P::U32,
}

impl<P: Platform, const ROUNDS: u32> SwiftMutex<P, ROUNDS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            word: P::U32::ZERO,
            sleepers: P::U32::ZERO,
        }
    }

    /// Takes it if it is free; returns what it found if not.
    #[inline(always)]
    fn take_if_free(&self) -> Result<u32, u32> {
        // I1: pairs with I3.
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let seen = self.word.load(Ordering::Relaxed);
        let deep = self.sleepers.load(Ordering::Relaxed) >= DEEP;
        if (seen != AWAITED || !deep) && self.spin() {
            return;
        }
        self.sleep();
    }

    /// Tries until somebody sleeps or all rounds are over; returns whether it got the lock.
    fn spin(&self) -> bool {
        let pauses = PAUSES + P::now() as u32 % PAUSES;
        for _ in 0..ROUNDS {
            let mut seen = self.word.load(Ordering::Relaxed);
            if seen == FREE {
                match self.take_if_free() {
                    Ok(_) => return true,
                    Err(now) => seen = now,
                }
            }
            if seen == AWAITED {
                break;
            }
            P::relax_for(pauses);
        }
        false
    }

    /// Sleeps until the lock is acquired. It is then marked awaited, since others may sleep.
    fn sleep(&self) {
        let mut counted = false;
        // I2: pairs with I3.
        while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
            if !counted {
                self.sleepers.fetch_add(1, Ordering::Relaxed);
                counted = true;
            }
            P::wait(&self.word, AWAITED);
        }
        if counted {
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        P::wake(&self.word);
    }
}

impl<P: Platform, const ROUNDS: u32> Default for SwiftMutex<P, ROUNDS> {
    fn default() -> Self {
        Self {
            word: P::U32::new(FREE),
            sleepers: P::U32::new(0),
        }
    }
}

// SAFETY: of the swaps and compare-and-swaps between two releases one finds the word free.
unsafe impl<P: Platform, const ROUNDS: u32> RawLock<P> for SwiftMutex<P, ROUNDS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "swift-mutex",
        summary: "Swift's on Linux, as described: pauses long, then sleeps",
        parks: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "Swift's Synchronization.Mutex on Linux, pull request 88523",
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if self.take_if_free().is_err() {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.take_if_free().is_ok()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != FREE)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // I3: pairs with I1 and I2.
        if self.word.swap(FREE, Ordering::Release) == AWAITED {
            self.wake();
        }
    }
}

crate::lock_api_impl::context_free!(SwiftMutex, ROUNDS: u32);
