//! The first mutex of Swift's Synchronization module on Linux, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Info, RawLock};

const FREE: u32 = 0;

/// A word with the id of the thread that owns it. Who finds it owned tries `TRIES` times, a pause
/// after each, and then waits in the kernel, which hands it over in order of priority and then
/// of arrival, and lends the owner the priority of those who wait.
///
/// While anybody waits there, the word never becomes free: who comes later can take nothing by
/// spinning, and each handover costs a wake-up. The owner that the kernel chose releases by the
/// kernel too, even if nobody waits any more.
///
/// **Follows:** `Synchronization.Mutex` of Swift 6.0 to 6.2 on Linux, from Swift's issue 88440,
/// pull request 88523, which replaced it by [`SwiftMutex`](crate::SwiftMutex), and futex(2)
/// (`FUTEX_LOCK_PI`). There it tries 1000 times on x86 and 100 times on Arm, here the former. A
/// platform without such a call tries until the word is free ([`Platform::lock_pi`]).
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** none among those who spin; those
/// who wait in the kernel are served before them.
#[repr(transparent)]
pub struct SwiftMutexPi<P: Platform = NativePlatform, const TRIES: u32 = 1000> {
    word: P::U32,
}

impl<P: Platform, const TRIES: u32> SwiftMutexPi<P, TRIES> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[inline(always)]
    fn take_if_free(&self) -> bool {
        // K1: pairs with K2, and with the platform's release.
        self.word
            .compare_exchange(FREE, P::thread_id(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        for _ in 0..TRIES {
            if self.word.load(Ordering::Relaxed) == FREE && self.take_if_free() {
                return;
            }
            P::relax();
        }
        P::lock_pi(&self.word);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self) {
        P::unlock_pi(&self.word);
    }
}

impl<P: Platform, const TRIES: u32> Default for SwiftMutexPi<P, TRIES> {
    fn default() -> Self {
        Self {
            word: P::U32::new(FREE),
        }
    }
}

// SAFETY: who does not find the word free waits for the platform to make it its own; it is free
// again, or another's, only when its owner has released it.
unsafe impl<P: Platform, const TRIES: u32> RawLock<P> for SwiftMutexPi<P, TRIES> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "swift-mutex-pi",
        summary: "Swift's first on Linux, as described: handed by the kernel",
        parks: true,
        shared_memory: true,
        paper: "Swift's Synchronization.Mutex on Linux, 6.0 to 6.2; futex(2)",
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
        // K2: pairs with K1, and with the platform's acquisition.
        let released =
            self.word
                .compare_exchange(P::thread_id(), FREE, Ordering::Release, Ordering::Relaxed);
        if released.is_err() {
            self.hand_over();
        }
    }
}

crate::lock_api_impl::context_free!(SwiftMutexPi, TRIES: u32);
