//! Test-and-set, and test-and-test-and-set: the whole lock is one byte, or four.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Info, RawLock, TimedLock, take_until};

/// Describes how wide the one word of a [`Tas`] or [`Ttas`] is: [`Byte`] or [`Word`].
///
/// An acquisition back to back with the release before it waits for that store.
/// On AMD's Zen 3 the two take 4.3 ns where both are one byte wide, and 2.3 ns
/// where both are four; on Zen 4 (2.1 ns) and Intel's it makes no difference, and
/// with 10 ns of other work between on none of them.
pub trait Width<P: Platform>: sealed::Sealed + Send + Sync + 'static {
    /// Names what the word holds.
    #[doc(hidden)]
    type Value: Copy + PartialEq + Default;
    /// The word.
    #[doc(hidden)]
    type Word: Atomic<Self::Value> + 'static;
    /// The lock is free: the value of [`Atomic::ZERO`].
    #[doc(hidden)]
    const FREE: Self::Value;
    /// The lock is held.
    #[doc(hidden)]
    const HELD: Self::Value;
    /// [`Tas`] and [`Ttas`] of this width: name and summary.
    #[doc(hidden)]
    const NAMED: [(&'static str, &'static str); 2];
}

mod sealed {
    /// Keeps others from adding widths: another could call one value free and held.
    pub trait Sealed {}
    impl Sealed for super::Byte {}
    impl Sealed for super::Word {}
}

/// One byte: where locks are many.
pub struct Byte;

/// Four bytes, released as wide as acquired on every processor: where the
/// lock's size is not the point.
pub struct Word;

impl<P: Platform> Width<P> for Byte {
    type Value = u8;
    type Word = P::U8;
    const FREE: u8 = 0;
    const HELD: u8 = 1;
    const NAMED: [(&'static str, &'static str); 2] = [
        (
            "tas",
            "one byte, swapped until free; +2 ns back to back on Zen 3",
        ),
        (
            "ttas",
            "one byte, read, then taken; +2 ns back to back on Zen 3",
        ),
    ];
}

impl<P: Platform> Width<P> for Word {
    type Value = u32;
    type Word = P::U32;
    const FREE: u32 = 0;
    const HELD: u32 = 1;
    const NAMED: [(&'static str, &'static str); 2] = [
        ("tas-word", "four bytes, swapped until it was free"),
        ("ttas-word", "four bytes, read until it is free, then taken"),
    ];
}

/// [`Tas`] in four bytes.
///
/// ```
/// use locklab_locks::spin::TasWordMutex;
///
/// static COUNT: TasWordMutex<u32> = TasWordMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TasWordMutex`](crate::spin::TasWordMutex) lists them.
pub type TasWord<P = NativePlatform> = Tas<P, Word>;
/// [`Ttas`] in four bytes.
///
/// ```
/// use locklab_locks::spin::TtasWordMutex;
///
/// static COUNT: TtasWordMutex<u32> = TtasWordMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TtasWordMutex`](crate::spin::TtasWordMutex) lists them.
pub type TtasWord<P = NativePlatform> = Ttas<P, Word>;

/// A test-and-set lock: 0 free, 1 held. A waiter swaps until it gets a 0.
///
/// ```
/// use locklab_locks::spin::TasMutex;
///
/// static COUNT: TasMutex<u32> = TasMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TasMutex`](crate::spin::TasMutex) lists them.
///
/// # Properties
///
/// **Papers:** L. Rudolph and Z. Segall, "Dynamic Decentralized Cache Schemes
/// for MIMD Parallel Processors", ISCA 1984 (test-and-test-and-set);
/// T. E. Anderson, "The Performance of Spin Lock Alternatives for
/// Shared-Memory Multiprocessors", IEEE TPDS 1(1), 1990 (both, measured).
///
/// **Size:** 1 byte, or 4 ([`Width`]). **Per waiter:** nothing. **Fairness:** none; a CPU can starve, and
/// the one whose cache holds the line has the advantage. A waiter on [`Tas`]
/// takes the line away from the holder with every attempt; on [`Ttas`] only
/// when the lock looks free.
#[repr(transparent)]
pub struct Tas<P: Platform = NativePlatform, W: Width<P> = Byte> {
    held: W::Word,
}

impl<P: Platform, W: Width<P>> Tas<P, W> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            held: W::Word::ZERO,
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        loop {
            P::relax();
            // S1': as S1.
            if self.held.swap(W::HELD, Ordering::Acquire) == W::FREE {
                return;
            }
        }
    }
}

impl<P: Platform, W: Width<P>> Default for Tas<P, W> {
    fn default() -> Self {
        Self {
            held: W::Word::new(W::FREE),
        }
    }
}

// SAFETY: of the swaps between two unlocks one gets the 0.
unsafe impl<P: Platform, W: Width<P>> RawLock<P> for Tas<P, W> {
    type Ctx = ();

    const INFO: Info = Info {
        name: W::NAMED[0].0,
        summary: W::NAMED[0].1,
        timeout: true,
        shared_memory: true,
        paper: "Anderson 1990",
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // S1: pairs with S2.
        if self.held.swap(W::HELD, Ordering::Acquire) != W::FREE {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // S1": as S1.
        self.held.swap(W::HELD, Ordering::Acquire) == W::FREE
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.held.load(Ordering::Relaxed) != W::FREE)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // S2: pairs with S1, S1' and S1".
        self.held.store(W::FREE, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Tas[W: Width<P>]);
crate::lock_api_impl::timed!(Tas[W: Width<P>]);

// SAFETY: `true` after a swap that got the 0.
unsafe impl<P: Platform, W: Width<P>> TimedLock<P> for Tas<P, W> {
    unsafe fn lock_until(&self, _: &(), deadline: u64) -> bool {
        // S1''': as S1.
        take_until::<P, _, _>(&self.held, deadline, || {
            self.held.swap(W::HELD, Ordering::Acquire) == W::FREE
        })
    }
}

/// A test-and-test-and-set lock: 0 free, 1 held. A waiter reads until it
/// sees a 0, and only then tries to make it a 1.
///
/// ```
/// use locklab_locks::spin::TtasMutex;
///
/// static COUNT: TtasMutex<u32> = TtasMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`TtasMutex`](crate::spin::TtasMutex) lists them.
///
/// # Properties
///
/// Papers, size and fairness: see [`Tas`].
#[repr(transparent)]
pub struct Ttas<P: Platform = NativePlatform, W: Width<P> = Byte> {
    held: W::Word,
}

impl<P: Platform, W: Width<P>> Ttas<P, W> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            held: W::Word::ZERO,
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        loop {
            P::relax();
            self.held
                .spin_until(Ordering::Relaxed, |held| held == W::FREE);
            // S3': as S3. One that comes too late leaves the word as it is: with a
            // swap here, two CPUs of AMD's Zen 5 did half as many operations.
            if self
                .held
                .compare_exchange(W::FREE, W::HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }
}

impl<P: Platform, W: Width<P>> Default for Ttas<P, W> {
    fn default() -> Self {
        Self {
            held: W::Word::new(W::FREE),
        }
    }
}

// SAFETY: of the swaps between two unlocks one gets the 0.
unsafe impl<P: Platform, W: Width<P>> RawLock<P> for Ttas<P, W> {
    type Ctx = ();

    const INFO: Info = Info {
        name: W::NAMED[1].0,
        summary: W::NAMED[1].1,
        timeout: true,
        shared_memory: true,
        paper: "Rudolph and Segall 1984",
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // The first try is the swap alone: reading first would fetch the line
        // twice, once to share and once to own.
        // S3: pairs with S4.
        if self.held.swap(W::HELD, Ordering::Acquire) != W::FREE {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // S3": as S3.
        self.held.load(Ordering::Relaxed) == W::FREE
            && self.held.swap(W::HELD, Ordering::Acquire) == W::FREE
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.held.load(Ordering::Relaxed) != W::FREE)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // S4: pairs with S3, S3' and S3".
        self.held.store(W::FREE, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Ttas[W: Width<P>]);
crate::lock_api_impl::timed!(Ttas[W: Width<P>]);

// SAFETY: `true` after a swap that got the 0.
unsafe impl<P: Platform, W: Width<P>> TimedLock<P> for Ttas<P, W> {
    unsafe fn lock_until(&self, _: &(), deadline: u64) -> bool {
        // S3''': as S3.
        take_until::<P, _, _>(&self.held, deadline, || {
            self.held.swap(W::HELD, Ordering::Acquire) == W::FREE
        })
    }
}
