//! The lock of a virtual machine without help from its hypervisor: a word
//! that any running vCPU may take, with three ways to wait.

use crate::native::NativePlatform;
use crate::platform::{Atomic, LockWord, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock, TimedLock, take_until};

/// Waits until the word could be changed from 0 to 1: reads it, tries a
/// compare-and-swap if it is 0, relaxes, and repeats. A wait is `relaxes` long,
/// also while the lock is held, and doubles up to `most` only after a
/// compare-and-swap that was tried and lost: a lock seen held depends on how
/// long the holder takes, a lost race on how many CPUs compete. As published,
/// the loser relaxes for as long as before, and doubles the next wait.
#[inline(always)]
pub(crate) fn contend<P: Platform>(word: &P::U32, mut relaxes: u32, most: u32) {
    loop {
        word.spin(Ordering::Relaxed, Patience::Forever, |word| {
            if word == 0 {
                Poll::Done
            } else {
                Poll::Relax(relaxes)
            }
        });
        // V2: pairs with V3.
        if word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
        P::relax_for(relaxes);
        relaxes = relaxes.saturating_mul(2).min(most);
    }
}

/// A word that is 0 when free and 1 when held. A waiter relaxes `FIRST`
/// times between attempts, and up to `MOST` times after lost races; by
/// default, once.
///
/// ```
/// use locklab_locks::spin::VirtSpinMutex;
///
/// static COUNT: VirtSpinMutex<u32> = VirtSpinMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`VirtSpinMutex`](crate::spin::VirtSpinMutex) lists them.
///
/// # Properties
///
/// A fair lock collapses when the vCPU that is next in line is not running;
/// here any running vCPU makes progress. Described in two threads of the Linux
/// kernel list: 4 September 2015 (the plain one and the delay) and 18 June 2025
/// (bounded exponential backoff). Backoff itself: T. E. Anderson, "The
/// Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors",
/// IEEE TPDS 1(1), 1990.
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** none; a CPU can starve, and
/// the more a CPU has backed off, the more seldom it tries.
///
/// The first attempt is the compare-and-swap alone, inlined at the call site;
/// losing that one does not lengthen the wait.
#[repr(transparent)]
pub struct VirtSpin<P: Platform = NativePlatform, const FIRST: u32 = 1, const MOST: u32 = 1> {
    word: P::U32,
}

/// [`VirtSpin`] with a fixed short delay between attempts, in relaxes. (The
/// thread of 2015 puts a delay of one tick there: two ordered reads of the
/// time-stamp counter, which took about as long as eight relaxes did then.)
///
/// ```
/// use locklab_locks::spin::VirtSpinDelayMutex;
///
/// static COUNT: VirtSpinDelayMutex<u32> = VirtSpinDelayMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`VirtSpinDelayMutex`](crate::spin::VirtSpinDelayMutex) lists them.
pub type VirtSpinDelay<P = NativePlatform, const DELAY: u32 = 8> = VirtSpin<P, DELAY, DELAY>;

/// [`VirtSpin`] with bounded exponential backoff: one relax between attempts,
/// and twice as many after each lost race, up to `MAX`.
///
/// ```
/// use locklab_locks::spin::VirtSpinBackoffMutex;
///
/// static COUNT: VirtSpinBackoffMutex<u32> = VirtSpinBackoffMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`VirtSpinBackoffMutex`](crate::spin::VirtSpinBackoffMutex) lists them.
pub type VirtSpinBackoff<P = NativePlatform, const MAX: u32 = 64> = VirtSpin<P, 1, MAX>;

impl<P: Platform, const FIRST: u32, const MOST: u32> VirtSpin<P, FIRST, MOST> {
    const BOUNDS: () = assert!(
        1 <= FIRST && FIRST <= MOST,
        "a wait is at least one relax long, and the first is not the longest"
    );

    /// Returns a free lock.
    pub const fn new() -> Self {
        const { Self::BOUNDS };
        Self { word: P::U32::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        contend::<P>(&self.word, FIRST, MOST);
    }
}

impl<P: Platform, const FIRST: u32, const MOST: u32> Default for VirtSpin<P, FIRST, MOST> {
    fn default() -> Self {
        const { Self::BOUNDS };
        Self {
            word: P::U32::new(0),
        }
    }
}

// SAFETY: only the compare-and-swap that finds a 0 acquires.
unsafe impl<P: Platform, const FIRST: u32, const MOST: u32> RawLock<P>
    for VirtSpin<P, FIRST, MOST>
{
    type Ctx = ();

    const INFO: Info = Info {
        name: if FIRST < MOST {
            "virt-spin-backoff"
        } else if FIRST > 1 {
            "virt-spin-delay"
        } else {
            "virt-spin"
        },
        summary: if FIRST < MOST {
            "read, compare-and-swap, back off after a lost race"
        } else if FIRST > 1 {
            "read, compare-and-swap, a short delay between tries"
        } else {
            "read, compare-and-swap, one relax between tries"
        },
        timeout: true,
        shared_memory: true,
        paper: if FIRST < MOST {
            "Anderson 1990; LKML, June 2025"
        } else {
            "LKML, September 2015"
        },
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // V1: pairs with V3.
        if self
            .word
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // V1': as V1.
        self.word.take_if_zero(1, Ordering::Acquire)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // V3: pairs with V1, V1' and V2.
        self.word.store(0, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(VirtSpin, FIRST: u32, MOST: u32);
crate::lock_api_impl::timed!(VirtSpin, FIRST: u32, MOST: u32);

// SAFETY: `true` after a compare-and-swap that found a 0.
unsafe impl<P: Platform, const FIRST: u32, const MOST: u32> TimedLock<P>
    for VirtSpin<P, FIRST, MOST>
{
    /// Acquires without backoff: a CPU with a deadline tries as often as it can.
    unsafe fn lock_until(&self, _: &(), deadline: u64) -> bool {
        // V1'': as V1.
        take_until::<P, _, _>(&self.word, deadline, || {
            self.word.take_if_zero(1, Ordering::Acquire)
        })
    }
}
