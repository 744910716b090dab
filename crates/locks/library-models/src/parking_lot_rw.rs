//! The reader-writer lock of the crate parking_lot, as it is described.

use crate::native::NativePlatform;
use crate::parking_lot::spin_round;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use crate::sleep_queue::{Choice, Found, first_only, sleep, wake};
use core::cell::Cell;
use core::ptr;

/// Readers and writers sleep in the queue of the lock's address.
const PARKED: usize = 1;
/// The writer sleeps that waits for the last reader, in the queue of the next address.
const WRITER_PARKED: usize = 2;
/// A writer holds it, or waits for the readers inside; no reader enters.
const WRITER: usize = 4;
/// Each reader adds one.
const READER: usize = 8;
/// The word is full of readers from here on.
const MOST: usize = usize::MAX - (READER - 1);

/// What a sleeper wants.
const TO_READ: u32 = 0;
const TO_WRITE: u32 = 1;
/// The words that a woken thread finds: the lock is its own, or it has to try again.
const GIVEN: u32 = 1;
const TRY_AGAIN: u32 = 0;

/// A word with two bits for who sleeps, one for a writer, and a count of readers.
///
/// A writer first closes the lock to readers, and then waits for those inside. Who finds a
/// writer spins for `ROUNDS` rounds while nobody sleeps, then sleeps in a queue. A writer's
/// release wakes the first of it: one writer, or all readers up to the next writer. They
/// try again; about every half millisecond they are given the lock instead.
///
/// **Follows:** `RwLock` of the crate parking_lot 0.12, from its documentation ("fairness":
/// task-fair, with eventual fairness). Upgradable reads are not part of it.
///
/// **Size:** a machine word. **Per waiter:** 40 bytes of its stack. **Fairness:** those who
/// sleep first are handed the lock by the first release of a writer after at most a
/// millisecond.
///
/// At most 2^61 - 1 readers hold it at once (2^29 - 1 where a word has 32 bits), including
/// leaked guards: [`ParkingLotRw::read`] panics beyond that, and [`ParkingLotRw::try_read`]
/// returns `false`.
#[repr(transparent)]
pub struct ParkingLotRw<P: Platform = NativePlatform, const ROUNDS: u32 = 10> {
    word: P::Usize,
}

impl<P: Platform, const ROUNDS: u32> ParkingLotRw<P, ROUNDS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            word: P::Usize::ZERO,
        }
    }

    /// Returns the queue of those who wait for a writer.
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Returns the queue of the writer that waits for readers.
    fn address_of_writer(&self) -> usize {
        self.address() + 1
    }

    #[inline(always)]
    fn change(&self, seen: usize, new: usize) -> bool {
        // Q1: pairs with Q3, Q4, Q5 and Q6.
        self.word
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Acquires for reading.
    ///
    /// # Panics
    /// If as many readers hold the lock as its word can count.
    #[inline(always)]
    pub fn read(&self) {
        if !self.try_read() {
            self.wait_for_writer(TO_READ);
        }
    }

    /// Acquires for reading if no writer holds it or waits for readers, and there is room;
    /// returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & WRITER == 0 && seen < MOST {
            // Q1': as Q1.
            let changed = self.word.compare_exchange(
                seen,
                seen + READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match changed {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        // Q3: pairs with Q1 and Q2.
        let was = self.word.fetch_sub(READER, Ordering::Release);
        if was & WRITER_PARKED != 0 && was < 2 * READER {
            self.wake_writer();
        }
    }

    /// Makes the writer a reader, without any other holder in between; readers that wait
    /// may enter as well.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        // Q6: pairs with Q1.
        let was = self.word.fetch_add(READER - WRITER, Ordering::Release);
        if was & PARKED != 0 {
            self.release_parked(true);
        }
    }

    /// Waits until no writer is there, and acquires; a writer may then have to wait for
    /// readers.
    #[cold]
    #[inline(never)]
    fn wait_for_writer(&self, wants: u32) {
        let mut rounds = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if seen & WRITER == 0 {
                let new = if wants == TO_READ {
                    assert!(
                        seen < MOST,
                        "a reader-writer lock has no room for a reader: guards have been leaked"
                    );
                    seen + READER
                } else {
                    seen | WRITER
                };
                if self.change(seen, new) {
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
                if !self.mark(seen, PARKED) {
                    continue;
                }
            }
            let still = || self.word.load(Ordering::Relaxed) & (WRITER | PARKED) == WRITER | PARKED;
            if sleep::<P>(self.address(), wants, false, still) == Some(GIVEN) {
                return;
            }
            rounds = 0;
        }
    }

    /// Says that some sleep.
    fn mark(&self, seen: usize, parked: usize) -> bool {
        // Nothing is published by it.
        self.word
            .compare_exchange(seen, seen | parked, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Waits until no reader is inside; the lock is closed to others.
    #[cold]
    #[inline(never)]
    fn wait_for_readers(&self) {
        let mut rounds = 0;
        loop {
            // Q2: pairs with Q3.
            let seen = self.word.load(Ordering::Acquire);
            if seen < READER {
                return;
            }
            if rounds < ROUNDS {
                rounds += 1;
                spin_round::<P>(rounds);
                continue;
            }
            if !self.mark(seen, WRITER_PARKED) {
                continue;
            }
            let still = || {
                let word = self.word.load(Ordering::Relaxed);
                word >= READER && word & WRITER_PARKED != 0
            };
            sleep::<P>(self.address_of_writer(), TO_WRITE, false, still);
            rounds = 0;
        }
    }

    /// Wakes the writer that waits for readers: the last is gone.
    #[cold]
    #[inline(never)]
    fn wake_writer(&self) {
        wake::<P>(self.address_of_writer(), first_only(), |_| {
            self.word.fetch_and(!WRITER_PARKED, Ordering::Relaxed);
            TRY_AGAIN
        });
    }

    /// Wakes those who sleep first: readers up to a writer, and that.
    #[cold]
    #[inline(never)]
    fn release_parked(&self, downgraded: bool) {
        let woken = Cell::new(0);
        let choose = |wants| {
            if woken.get() & WRITER != 0 {
                return Choice::Stop;
            }
            let one = if wants == TO_READ { READER } else { WRITER };
            woken.set(woken.get() + one);
            Choice::Wake
        };
        let address = self.address();
        wake::<P>(address, choose, |found: Found| {
            if downgraded {
                if !found.more {
                    self.word.fetch_and(!PARKED, Ordering::Relaxed);
                }
                return TRY_AGAIN;
            }
            let parked = if found.more { PARKED } else { 0 };
            if found.fair {
                // Q5: pairs with Q1. Who is given it has it by the queue.
                self.word.store(woken.get() | parked, Ordering::Release);
                return GIVEN;
            }
            // Q4: pairs with Q1.
            self.word.store(parked, Ordering::Release);
            TRY_AGAIN
        });
    }
}

impl<P: Platform, const ROUNDS: u32> Default for ParkingLotRw<P, ROUNDS> {
    fn default() -> Self {
        Self {
            word: P::Usize::new(0),
        }
    }
}

// SAFETY: a writer closes the lock to others by a compare-and-swap, and waits for the
// readers inside; a handoff leaves the word as it is when the woken threads hold the lock.
unsafe impl<P: Platform, const ROUNDS: u32> RawLock<P> for ParkingLotRw<P, ROUNDS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "parking_lot-rwlock",
        summary: "parking_lot's RwLock, as described: waiters sleep in a queue",
        fairness: Fairness::Bounded("handed to the first sleepers about every 0.5 ms"),
        parks: true,
        readers_share: true,
        touches_after_release: true,
        bytes_per_waiter: 40,
        paper: "crate parking_lot 0.12",
        promises: "writer tries, handed over, readers wait, readers try behind, reader asks, \
            readers at the limit, loses races",
        not_promised: "a place in the end",
        orderings_of: Some("library-models/src/parking_lot_rw.rs"),
        structure_of: &["library-models/src/parking_lot_rw.rs"],
        ..Info::BASE
    };

    /// Returns a lock that admits one more reader.
    fn about_to_wrap() -> Self {
        Self {
            word: P::Usize::new(MOST - READER),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.change(0, WRITER) {
            self.wait_for_writer(TO_WRITE);
            self.wait_for_readers();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        seen & WRITER == 0 && seen < READER && self.change(seen, seen | WRITER)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        let seen = self.word.load(Ordering::Relaxed);
        Some(seen & WRITER != 0 || seen >= READER)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // Q4': pairs with Q1.
        let freed = self
            .word
            .compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.release_parked(false);
        }
    }

    #[inline(always)]
    unsafe fn read_lock(&self, _: &()) {
        self.read();
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, _: &()) {
        // SAFETY: of the caller.
        unsafe { Self::read_unlock(self) }
    }
}

crate::lock_api_impl::shared!(ParkingLotRw, ROUNDS: u32);
