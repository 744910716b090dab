//! The mutex of Rust's standard library on Linux, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the release must wake a waiter.
const AWAITED: u32 = 2;
/// Number of reads of a waiter before it sleeps, with a pause after each but the last.
const READS: u32 = 101;

/// A futex in three states whose waiters spin first, but only while nobody sleeps: who
/// would overtake sleepers by spinning sleeps at once.
///
/// **Follows:** `std::sync::Mutex` of Rust 1.62 and later on Linux, from M. Bos, "Rust
/// Atomics and Locks", O'Reilly 2023, chapter 9, and the announcement of that version. The
/// poison flag is not part of it. (Drepper's `mutex3`, with a spin.)
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** none.
#[repr(transparent)]
pub struct StdMutex<P: Platform = NativePlatform> {
    word: P::U32,
}

impl<P: Platform> StdMutex<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[inline(always)]
    fn take_if_free(&self) -> bool {
        // B1: pairs with B3.
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the word once it is not held without sleepers, or after all reads.
    fn spin(&self) -> u32 {
        let patience = Patience::Reads(READS);
        self.word.spin(Ordering::Relaxed, patience, |word| {
            if word == HELD {
                Poll::Relax(1)
            } else {
                Poll::Done
            }
        })
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut seen = self.spin();
        if seen == FREE {
            if self.take_if_free() {
                return;
            }
            seen = self.word.load(Ordering::Relaxed);
        }
        loop {
            // B2: pairs with B3. Who gets it by this swap leaves it awaited, since others
            // may sleep.
            if seen != AWAITED && self.word.swap(AWAITED, Ordering::Acquire) == FREE {
                return;
            }
            P::wait(&self.word, AWAITED);
            seen = self.spin();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        P::wake(&self.word);
    }
}

impl<P: Platform> Default for StdMutex<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(FREE),
        }
    }
}

// SAFETY: of the swaps and compare-and-swaps between two releases one finds the word free.
unsafe impl<P: Platform> RawLock<P> for StdMutex<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "std",
        summary: "Rust's Mutex, as described: spins while nobody sleeps",
        parks: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "std::sync::Mutex of Rust 1.62 on Linux; Bos 2023",
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take_if_free() {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.take_if_free()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != FREE)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // B3: pairs with B1 and B2.
        if self.word.swap(FREE, Ordering::Release) == AWAITED {
            self.wake();
        }
    }
}

crate::lock_api_impl::context_free!(StdMutex);
