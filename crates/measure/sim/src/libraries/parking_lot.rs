//! The mutex of the crate parking_lot.

use super::common::SLEEPS;
use crate::engine::engine;
use crate::platform::{Sim, Word};
use crate::scheduler::yield_to_others;
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Fairness, Futex, Info, RawLock};

const HELD: u32 = 1;
/// A waiter sleeps in the queue.
const PARKED: u32 = 2;

/// Rounds of a waiter's spin in which it pauses, each twice as long as the one before.
const PAUSES: u32 = 3;
/// All rounds of a waiter's spin; in the last ones it gives its CPU to others.
const ROUNDS: u32 = 10;

/// The longest time from one handoff that is fair to the next, in nanoseconds; it is
/// drawn evenly, so about half of this on average.
const FAIR_NS: usize = 1_000_000;

/// One word, held or not, with a bit that says whether waiters sleep. A waiter spins ten
/// rounds while nobody sleeps, then joins the queue of its address and sleeps. A release
/// frees the word and wakes the first of the queue, which tries again; about every
/// half millisecond it hands the lock to it instead.
///
/// There the queues are a table that all locks share, by a hash of the address; here each
/// lock has its own bucket, as if no two had the same hash.
#[derive(Default)]
#[repr(C)]
pub(crate) struct ParkingLot {
    /// One byte there; alone on its line here.
    word: Word<u32>,
    bucket: Bucket,
}

/// A queue of sleepers.
#[repr(C, align(64))]
struct Bucket {
    /// Protects the rest. There it is a lock of one word whose waiters sleep too.
    lock: Futex<Sim>,
    /// Holds what the next time is drawn from.
    drawn: Word<u32>,
    first: Word<*mut Sleeper>,
    last: Word<*mut Sleeper>,
    /// The time at which a handoff is to be fair again, in nanoseconds.
    fair_at: Word<usize>,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            lock: Futex::default(),
            drawn: Word::new(1),
            first: Word::new(std::ptr::null_mut()),
            last: Word::new(std::ptr::null_mut()),
            fair_at: Word::new(0),
        }
    }
}

/// A thread in a queue.
pub(crate) struct Sleeper {
    next: Word<*mut Sleeper>,
    /// 1 while it sleeps.
    parked: Word<u32>,
    /// Says whether it has been given the lock.
    given: Word<u32>,
}

impl Default for Sleeper {
    fn default() -> Self {
        Self {
            next: Word::new(std::ptr::null_mut()),
            parked: Word::new(0),
            given: Word::new(0),
        }
    }
}

impl Bucket {
    fn with<'a, R>(&'a self, does: impl FnOnce(&'a Self) -> R) -> R {
        // SAFETY: nothing moves, and it is released below.
        unsafe { self.lock.lock(&()) };
        let done = does(self);
        // SAFETY: it is held.
        unsafe { self.lock.unlock(&()) };
        done
    }

    /// Adds a thread at the end; the bucket is locked.
    fn push(&self, sleeper: &Sleeper) {
        let pointer = std::ptr::from_ref(sleeper).cast_mut();
        sleeper.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        sleeper.parked.store(1, Ordering::Relaxed);
        // SAFETY: who is in the queue sleeps, and its context stays in the arena.
        match unsafe { self.last.load(Ordering::Relaxed).as_ref() } {
            Some(last) => last.next.store(pointer, Ordering::Relaxed),
            None => self.first.store(pointer, Ordering::Relaxed),
        }
        self.last.store(pointer, Ordering::Relaxed);
    }

    /// Takes the first, and says whether there are more; the bucket is locked.
    fn pop(&self) -> Option<(&Sleeper, bool)> {
        // SAFETY: as in `push`.
        let first = unsafe { self.first.load(Ordering::Relaxed).as_ref() }?;
        let next = first.next.load(Ordering::Relaxed);
        self.first.store(next, Ordering::Relaxed);
        if next.is_null() {
            self.last.store(next, Ordering::Relaxed);
        }
        Some((first, !next.is_null()))
    }

    /// Returns whether this handoff is to be fair; the bucket is locked.
    fn is_fair(&self) -> bool {
        let now = Sim::now() as usize;
        if now <= self.fair_at.load(Ordering::Relaxed) {
            return false;
        }
        // This is Marsaglia's generator of 32 bits.
        let mut drawn = self.drawn.load(Ordering::Relaxed);
        drawn ^= drawn << 13;
        drawn ^= drawn >> 17;
        drawn ^= drawn << 5;
        self.drawn.store(drawn, Ordering::Relaxed);
        let until = drawn as usize % FAIR_NS;
        self.fair_at.store(now + until, Ordering::Relaxed);
        true
    }
}

impl ParkingLot {
    /// Takes it if it is free, and leaves the other bit as it is. Pairs with the
    /// releases below.
    fn take(&self, seen: u32) -> Result<(), u32> {
        let taken =
            self.word
                .compare_exchange(seen, seen | HELD, Ordering::Acquire, Ordering::Relaxed);
        taken.map(drop)
    }

    #[cold]
    fn wait(&self, sleeper: &Sleeper) {
        let mut round = 0;
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen & HELD == 0 {
                match self.take(seen) {
                    Ok(()) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            if seen & PARKED == 0 {
                if round < ROUNDS {
                    round += 1;
                    match round <= PAUSES {
                        true => Sim::relax_for(1 << round),
                        false => yield_to_others(engine()),
                    }
                    seen = self.word.load(Ordering::Relaxed);
                    continue;
                }
                let marked = self.word.compare_exchange(
                    seen,
                    seen | PARKED,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if let Err(now) = marked {
                    seen = now;
                    continue;
                }
            }
            if self.park(sleeper) {
                return;
            }
            round = 0;
            seen = self.word.load(Ordering::Relaxed);
        }
    }

    /// Sleeps if that is still right; returns whether it was given the lock.
    fn park(&self, sleeper: &Sleeper) -> bool {
        let sleeps = self.bucket.with(|bucket| {
            let sleeps = self.word.load(Ordering::Relaxed) == HELD | PARKED;
            if sleeps {
                bucket.push(sleeper);
            }
            sleeps
        });
        if !sleeps {
            return false;
        }
        // Pairs with the store of `release`.
        while sleeper.parked.load(Ordering::Acquire) != 0 {
            Sim::wait(&sleeper.parked, 1);
        }
        sleeper.given.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn release(&self) {
        let woken = self.bucket.with(|bucket| {
            let Some((sleeper, more)) = bucket.pop() else {
                // Pairs with `take`.
                self.word.store(0, Ordering::Release);
                return None;
            };
            let parked = if more { PARKED } else { 0 };
            let given = bucket.is_fair();
            sleeper.given.store(u32::from(given), Ordering::Relaxed);
            let held = if given { HELD } else { 0 };
            // Pairs with `take`.
            self.word.store(held | parked, Ordering::Release);
            // Pairs with the load of `park`.
            sleeper.parked.store(0, Ordering::Release);
            Some(sleeper)
        });
        if let Some(sleeper) = woken {
            Sim::wake(&sleeper.parked);
        }
    }
}

// SAFETY: a compare-and-swap takes it when it is free, and a handoff leaves it held for
// one sleeper.
unsafe impl RawLock<Sim> for ParkingLot {
    type Ctx = Sleeper;

    const INFO: Info = Info {
        name: "parking_lot",
        summary: "the mutex of the crate parking_lot, as described",
        fairness: Fairness::Bounded("a fair handoff about every 0.5 ms"),
        paper: "crate parking_lot 0.12, after WebKit's WTF::Lock",
        ..SLEEPS
    };

    unsafe fn lock(&self, sleeper: &Sleeper) {
        if self.take(0).is_err() {
            self.wait(sleeper);
        }
    }

    unsafe fn try_lock(&self, _: &Sleeper) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        seen & HELD == 0 && self.take(seen).is_ok()
    }

    unsafe fn unlock(&self, _: &Sleeper) {
        // Pairs with `take`.
        let freed = self
            .word
            .compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.release();
        }
    }
}
