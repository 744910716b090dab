//! Test-and-set, and test-and-test-and-set: the whole lock is one byte.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Info, RawLock, TimedLock, take_until};

/// A test-and-set lock: 0 free, 1 held. A waiter swaps until it gets a 0.
///
/// **Papers:** L. Rudolph and Z. Segall, "Dynamic Decentralized Cache Schemes
/// for MIMD Parallel Processors", ISCA 1984 (test-and-test-and-set);
/// T. E. Anderson, "The Performance of Spin Lock Alternatives for
/// Shared-Memory Multiprocessors", IEEE TPDS 1(1), 1990 (both, measured).
///
/// **Size:** 1 byte. **Per waiter:** nothing. **Fairness:** none; a CPU can starve, and
/// the one whose cache holds the line has the advantage. A waiter on [`Tas`]
/// takes the line away from the holder with every attempt; on [`Ttas`] only
/// when the lock looks free.
#[repr(transparent)]
pub struct Tas<P: Platform = NativePlatform> {
    held: P::U8,
}

impl<P: Platform> Tas<P> {
    /// A free lock.
    pub const fn new() -> Self {
        Self { held: P::U8::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        loop {
            P::relax();
            // S1': as S1.
            if self.held.swap(1, Ordering::Acquire) == 0 {
                return;
            }
        }
    }
}

impl<P: Platform> Default for Tas<P> {
    fn default() -> Self {
        Self {
            held: P::U8::new(0),
        }
    }
}

// SAFETY: of the swaps between two unlocks one gets the 0.
unsafe impl<P: Platform> RawLock<P> for Tas<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "tas",
        summary: "one byte, swapped until it was free",
        timeout: true,
        shared_memory: true,
        paper: "Anderson 1990",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // S1: pairs with S2.
        if self.held.swap(1, Ordering::Acquire) != 0 {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // S1": as S1.
        self.held.swap(1, Ordering::Acquire) == 0
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.held.load(Ordering::Relaxed) != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // S2: pairs with S1, S1' and S1".
        self.held.store(0, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Tas);
crate::lock_api_impl::timed!(Tas);

// SAFETY: `true` after a swap that got the 0.
unsafe impl<P: Platform> TimedLock<P> for Tas<P> {
    unsafe fn lock_until(&self, _: &(), deadline: u64) -> bool {
        // S1''': as S1.
        take_until::<P, _, _>(&self.held, deadline, || {
            self.held.swap(1, Ordering::Acquire) == 0
        })
    }
}

/// A test-and-test-and-set lock: 0 free, 1 held. A waiter reads until it
/// sees a 0, and only then swaps.
///
/// Papers, size and fairness: see [`Tas`].
#[repr(transparent)]
pub struct Ttas<P: Platform = NativePlatform> {
    held: P::U8,
}

impl<P: Platform> Ttas<P> {
    /// A free lock.
    pub const fn new() -> Self {
        Self { held: P::U8::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        loop {
            self.held.spin_until(Ordering::Relaxed, |held| held == 0);
            // S3': as S3.
            if self.held.swap(1, Ordering::Acquire) == 0 {
                return;
            }
        }
    }
}

impl<P: Platform> Default for Ttas<P> {
    fn default() -> Self {
        Self {
            held: P::U8::new(0),
        }
    }
}

// SAFETY: of the swaps between two unlocks one gets the 0.
unsafe impl<P: Platform> RawLock<P> for Ttas<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "ttas",
        summary: "one byte, read until it is free, then swapped",
        timeout: true,
        shared_memory: true,
        paper: "Rudolph and Segall 1984",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // The first try is the swap alone: reading first would fetch the line
        // twice, once to share and once to own.
        // S3: pairs with S4.
        if self.held.swap(1, Ordering::Acquire) != 0 {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // S3": as S3.
        self.held.load(Ordering::Relaxed) == 0 && self.held.swap(1, Ordering::Acquire) == 0
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.held.load(Ordering::Relaxed) != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // S4: pairs with S3, S3' and S3".
        self.held.store(0, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Ttas);
crate::lock_api_impl::timed!(Ttas);

// SAFETY: `true` after a swap that got the 0.
unsafe impl<P: Platform> TimedLock<P> for Ttas<P> {
    unsafe fn lock_until(&self, _: &(), deadline: u64) -> bool {
        // S3''': as S3.
        take_until::<P, _, _>(&self.held, deadline, || {
            self.held.swap(1, Ordering::Acquire) == 0
        })
    }
}
