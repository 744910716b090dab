//! The second mutex of "Futexes Are Tricky": three states, by compare-and-swap.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Info, RawLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the release must wake a waiter.
const AWAITED: u32 = 2;

/// A word in three states. A waiter marks it awaited and sleeps; who was woken takes it
/// as awaited, since others may sleep. The release counts down, and writes and wakes only
/// if the word was awaited.
///
/// **Paper:** U. Drepper, "Futexes Are Tricky", 2004 to 2011, section 5, `mutex2`. (His
/// `mutex3`, section 6, which swaps where this one compares, is [`crate::Futex`].)
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** none.
#[repr(transparent)]
pub struct Drepper2<P: Platform = NativePlatform> {
    word: P::U32,
}

impl<P: Platform> Drepper2<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[inline(always)]
    fn take(&self, state: u32) -> Result<u32, u32> {
        // D1: pairs with D3 and D4.
        self.word
            .compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, mut seen: u32) {
        loop {
            // D2: nothing is published by it.
            let awaited = seen == AWAITED
                || self
                    .word
                    .compare_exchange(HELD, AWAITED, Ordering::Relaxed, Ordering::Relaxed)
                    != Err(FREE);
            if awaited {
                P::wait(&self.word, AWAITED);
            }
            match self.take(AWAITED) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn release_awaited(&self) {
        // D4: pairs with D1.
        self.word.store(FREE, Ordering::Release);
        P::wake(&self.word);
    }
}

impl<P: Platform> Default for Drepper2<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(FREE),
        }
    }
}

// SAFETY: only a compare-and-swap that finds the word free takes it.
unsafe impl<P: Platform> RawLock<P> for Drepper2<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "drepper2",
        summary: "Drepper's mutex2: three states, by compare-and-swap",
        parks: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "Drepper 2011, section 5",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if let Err(seen) = self.take(HELD) {
            self.wait(seen);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.take(HELD).is_ok()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != FREE)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // D3: pairs with D1.
        if self.word.fetch_sub(1, Ordering::Release) != HELD {
            self.release_awaited();
        }
    }
}

crate::lock_api_impl::context_free!(Drepper2);
