//! The mutex in three states: free, held, and held while a waiter sleeps.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the release must wake a waiter.
const AWAITED: u32 = 2;

/// A futex mutex in one word: a CPU that finds it held marks it and sleeps.
///
/// ```
/// use locklab_locks::spin::FutexMutex;
///
/// static COUNT: FutexMutex<u32> = FutexMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`FutexMutex`](crate::spin::FutexMutex) lists them.
///
/// # Properties
///
/// **Papers:** H. Franke, R. Russell and M. Kirkwood, "Fuss, Futexes and
/// Furwocks: Fast Userlevel Locking in Linux", Ottawa Linux Symposium 2002; in
/// three states: U. Drepper, "Futexes Are Tricky", 2004 to 2011, section 6.
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** none; a CPU that
/// arrives while the lock is free acquires it past the sleepers, and a sleeper
/// that was woken may find it held again. That keeps throughput up where
/// threads outnumber CPUs. A release without waiters makes no system call; one
/// with waiters wakes one.
///
/// The wake-up comes after the release, by the address of the word: see
/// [`Info::touches_after_release`].
#[repr(transparent)]
pub struct Futex<P: Platform = NativePlatform> {
    word: P::U32,
}

impl<P: Platform> Futex<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[inline(always)]
    fn take_if_free(&self) -> bool {
        // U1: pairs with U3.
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Sleeps until the lock is acquired. It is then marked awaited, whether or
    /// not another waiter sleeps: that is not known, and a superfluous wake-up
    /// is harmless.
    #[cold]
    #[inline(never)]
    fn sleep(&self) {
        // U2: pairs with U3.
        while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
            P::wait(&self.word, AWAITED);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        P::wake(&self.word);
    }
}

impl<P: Platform> Default for Futex<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(FREE),
        }
    }
}

// SAFETY: of the swaps and compare-and-swaps between two releases one finds
// the word free.
unsafe impl<P: Platform> RawLock<P> for Futex<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "futex",
        summary: "one word in three states; who finds it held sleeps",
        parks: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "Franke, Russell and Kirkwood 2002; Drepper 2011",
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take_if_free() {
            self.sleep();
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
        // U3: pairs with U1 and U2.
        if self.word.swap(FREE, Ordering::Release) == AWAITED {
            self.wake();
        }
    }
}

crate::lock_api_impl::context_free!(Futex);

/// Reads between two attempts of a spinning waiter.
const ROUND: u32 = 16;
/// The most rounds that a waiter spins: about as long as a sleep and its
/// wake-up take.
const MOST: u32 = 64;
/// Rounds beyond twice the expected number.
const MARGIN: u32 = 2;

/// [`Futex`] that spins before it sleeps, for about as long as it took others
/// to get the lock by spinning.
///
/// ```
/// use locklab_locks::spin::FutexAdaptiveMutex;
///
/// static COUNT: FutexAdaptiveMutex<u32> = FutexAdaptiveMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`FutexAdaptiveMutex`](crate::spin::FutexAdaptiveMutex) lists them.
///
/// # Properties
///
/// **Papers:** as [`Futex`]; A. R. Karlin, K. Li, M. S. Manasse and S. Owicki,
/// "Empirical Studies of Competitive Spinning for a Shared-Memory
/// Multiprocessor", SOSP 1991, for adapting the spin to earlier waits. (The
/// rule here is simpler than theirs: the average follows each wait that ended
/// in time by an eighth, and halves when a spin was in vain.)
///
/// **Size:** 8 bytes. **Per waiter:** nothing. **Fairness:** none, as
/// [`Futex`].
#[repr(C)]
pub struct FutexAdaptive<P: Platform = NativePlatform> {
    futex: Futex<P>,
    /// Expected rounds of a wait, times 8. Waiters write it without
    /// synchronisation: a lost update only loses a hint.
    expected: P::U32,
}

impl<P: Platform> FutexAdaptive<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            futex: Futex::new(),
            expected: P::U32::ZERO,
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let expected = self.expected.load(Ordering::Relaxed);
        let rounds = (expected / 4 + MARGIN).min(MOST);
        for round in 1..=rounds {
            let word = self
                .futex
                .word
                .spin(Ordering::Relaxed, Patience::Reads(ROUND), |word| {
                    if word == FREE {
                        Poll::Done
                    } else {
                        Poll::Relax(1)
                    }
                });
            if word == FREE && self.futex.take_if_free() {
                let mean = expected - expected / 8 + round;
                self.expected.store(mean, Ordering::Relaxed);
                return;
            }
        }
        self.expected.store(expected / 2, Ordering::Relaxed);
        self.futex.sleep();
    }
}

impl<P: Platform> Default for FutexAdaptive<P> {
    fn default() -> Self {
        Self {
            futex: Futex::default(),
            expected: P::U32::new(0),
        }
    }
}

// SAFETY: as `Futex`.
unsafe impl<P: Platform> RawLock<P> for FutexAdaptive<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "futex-adaptive",
        summary: "futex that spins first, for as long as was worth it",
        paper: "Drepper 2011; Karlin et al. 1991",
        promises: "loses races",
        ..<Futex<P> as RawLock<P>>::INFO
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.futex.take_if_free() {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.futex.take_if_free()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.futex.is_locked()
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.futex.unlock(ctx) }
    }
}

crate::lock_api_impl::context_free!(FutexAdaptive);
