//! A mutex of one byte whose waiters sleep in a queue beside it: that of the crate
//! parking_lot, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use crate::sleep_queue::{first_only, sleep, wake};
use core::ptr;

const HELD: u8 = 1;
/// A waiter sleeps in the queue.
const PARKED: u8 = 2;

/// Tells a sleeper that it has the lock.
const GIVEN: u32 = 1;
/// Tells a sleeper to try again.
const TRY_AGAIN: u32 = 0;

/// Rounds of a spin of parking_lot in which it pauses, each twice as long as the one
/// before; in the others it gives its CPU to another thread.
const PAUSES: u32 = 3;

/// Waits for one round of a spin.
pub(crate) fn spin_round<P: Platform>(round: u32) {
    if round <= PAUSES {
        P::relax_for(1 << round);
    } else {
        P::yield_cpu();
    }
}

/// A mutex of one byte: held, and whether waiters sleep in the queue of its address.
///
/// A waiter spins for `ROUNDS` rounds while nobody sleeps, then it sleeps. A release frees
/// the byte and wakes the first of the queue, which tries again; about every half
/// millisecond it hands the lock over instead.
///
/// **Follows:** the mutex of parking_lot 0.12, from its documentation ("fair unlocking",
/// "eventual fairness") and A. D'Antras' description of it in Rust's pull request 56410, 2018.
///
/// **Size:** 1 byte. **Per waiter:** 40 bytes of its stack. **Fairness:** a sleeper that is
/// first is handed the lock by the first release after at most a millisecond.
#[repr(transparent)]
pub struct ParkingLotMutex<P: Platform = NativePlatform, const ROUNDS: u32 = 10> {
    word: P::U8,
}

impl<P: Platform, const ROUNDS: u32> ParkingLotMutex<P, ROUNDS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U8::ZERO }
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Takes it if it is as it was seen, free; the other bit stays.
    #[inline(always)]
    fn take(&self, seen: u8) -> bool {
        // L1: pairs with L3 and L4.
        self.word
            .compare_exchange(seen, seen | HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut rounds = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if seen & HELD == 0 {
                if self.take(seen) {
                    return;
                }
                P::relax();
                continue;
            }
            if seen & PARKED == 0 {
                if rounds < ROUNDS {
                    rounds += 1;
                    spin_round::<P>(rounds);
                    continue;
                }
                // L2: nothing is published by it.
                let marked = self.word.compare_exchange(
                    HELD,
                    HELD | PARKED,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if marked.is_err() {
                    continue;
                }
            }
            let still = || self.word.load(Ordering::Relaxed) == HELD | PARKED;
            if sleep::<P>(self.address(), 0, false, still) == Some(GIVEN) {
                return;
            }
            rounds = 0;
        }
    }

    #[cold]
    #[inline(never)]
    fn release_parked(&self) {
        wake::<P>(self.address(), first_only(), |found| {
            let given = found.woken && found.fair;
            let held = if given { HELD } else { 0 };
            let parked = if found.more { PARKED } else { 0 };
            // L4: pairs with L1. Who is given it has it by the queue.
            self.word.store(held | parked, Ordering::Release);
            if given { GIVEN } else { TRY_AGAIN }
        });
    }
}

impl<P: Platform, const ROUNDS: u32> Default for ParkingLotMutex<P, ROUNDS> {
    fn default() -> Self {
        Self {
            word: P::U8::new(0),
        }
    }
}

// SAFETY: a compare-and-swap takes it when it is free, and a handoff leaves it held for one
// sleeper.
unsafe impl<P: Platform, const ROUNDS: u32> RawLock<P> for ParkingLotMutex<P, ROUNDS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "parking_lot",
        summary: "parking_lot's Mutex, as described: one byte, and a queue",
        fairness: Fairness::Bounded("handed to the first sleeper about every 0.5 ms"),
        parks: true,
        bytes_per_waiter: 40,
        paper: "crate parking_lot 0.12, after WebKit's WTF::Lock",
        promises: "handed over, loses races",
        not_promised: "a place in the end",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take(0) {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        seen & HELD == 0 && self.take(seen)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) & HELD != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // L3: pairs with L1.
        let freed = self
            .word
            .compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.release_parked();
        }
    }
}

crate::lock_api_impl::context_free!(ParkingLotMutex, ROUNDS: u32);
