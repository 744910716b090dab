//! A lock as `locklab run` has it by default: a word in front of it, which threads that run
//! take, by the interposer's own protocol ([`Front`]).
//!
//! It must never decide who may pass: the protocol does.

use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Fairness, Info, RawLock};
use locklab_pthread_protocols::front::Front;

/// A lock behind a word that running threads take.
#[repr(C)]
pub(crate) struct Barging<L, P: Platform> {
    word: P::U32,
    passed: P::U32,
    behind: Behind<L>,
}

/// Holds the lock in lines of its own, as beside a mutex.
#[derive(Default)]
#[repr(C, align(64))]
struct Behind<L>(L);

impl<L: RawLock<P>, P: Platform> Default for Barging<L, P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
            passed: P::U32::new(0),
            behind: Behind::default(),
        }
    }
}

impl<L, P: Platform> Barging<L, P> {
    fn front(&self) -> Front<'_, P> {
        Front::new(&self.word, &self.passed)
    }
}

// SAFETY: whoever holds the word holds the lock, and the protocol gives it to one at a time.
unsafe impl<L: RawLock<P>, P: Platform> RawLock<P> for Barging<L, P> {
    type Ctx = L::Ctx;

    const INFO: Info = Info {
        fairness: Fairness::Unfair,
        overtakes: None,
        // The word is one mutex, for readers too.
        readers_share: false,
        try_lock: true,
        ..L::INFO
    };

    fn settle(&self) {
        self.behind.0.settle();
    }

    unsafe fn lock(&self, ctx: &L::Ctx) {
        if self.front().try_enter() {
            return;
        }
        // SAFETY: the caller's promise is the same, here and below.
        unsafe { self.behind.0.lock(ctx) };
        self.front().enter_as_head();
        // SAFETY: locked above; the word is ours, so the next may be the head.
        unsafe { self.behind.0.unlock(ctx) };
    }

    unsafe fn try_lock(&self, _: &L::Ctx) -> bool {
        self.front().try_enter()
    }

    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != 0)
    }

    unsafe fn unlock(&self, _: &L::Ctx) {
        self.front().leave();
    }
}
