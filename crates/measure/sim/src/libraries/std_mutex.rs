//! The mutex of Rust's standard library on Linux.

use super::common::SLEEPS;
use crate::platform::{Sim, Word};
use locklab_locks::platform::{Atomic, Ordering, Patience, Platform, Poll};
use locklab_locks::{Info, RawLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the release must wake a waiter.
const AWAITED: u32 = 2;
/// Reads of a waiter before it sleeps, with a pause after each but the last.
const READS: u32 = 101;

/// A futex in three states whose waiters spin first, a hundred times, but only while
/// nobody sleeps: who would overtake sleepers by spinning sleeps at once.
pub(crate) struct Std(Word<u32>);

impl Default for Std {
    fn default() -> Self {
        Self(Word::new(FREE))
    }
}

impl Std {
    fn take_if_free(&self) -> bool {
        // Pairs with the swap of `unlock`.
        self.0
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// The word once it is not held without sleepers, or after all reads.
    fn spin(&self) -> u32 {
        let patience = Patience::Reads(READS);
        self.0.spin(Ordering::Relaxed, patience, |word| {
            if word == HELD {
                Poll::Relax(1)
            } else {
                Poll::Done
            }
        })
    }

    #[cold]
    fn wait(&self) {
        let mut seen = self.spin();
        if seen == FREE {
            if self.take_if_free() {
                return;
            }
            seen = self.0.load(Ordering::Relaxed);
        }
        loop {
            // Pairs with the swap of `unlock`. Who gets it by this swap leaves it
            // awaited, since others may sleep.
            if seen != AWAITED && self.0.swap(AWAITED, Ordering::Acquire) == FREE {
                return;
            }
            Sim::wait(&self.0, AWAITED);
            seen = self.spin();
        }
    }
}

// SAFETY: of the swaps and compare-and-swaps between two releases one finds the word
// free.
unsafe impl RawLock<Sim> for Std {
    type Ctx = ();

    const INFO: Info = Info {
        name: "std",
        summary: "the standard library's mutex, as described",
        paper: "Rust standard library",
        ..SLEEPS
    };

    unsafe fn lock(&self, (): &()) {
        if !self.take_if_free() {
            self.wait();
        }
    }

    unsafe fn try_lock(&self, (): &()) -> bool {
        self.take_if_free()
    }

    unsafe fn unlock(&self, (): &()) {
        // Pairs with the acquisitions above.
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            Sim::wake(&self.0);
        }
    }
}
