//! The mutex of the crate parking_lot.

use super::common::SLEEPS;
use super::spin_wait::{ROUNDS, spin_round};
use super::word_lock::{Waiter, WordLock};
use crate::arena::Arena;
use crate::engine::{Engine, engine};
use crate::platform::{Sim, Word};
use crate::sleepers::bucket_of;
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Fairness, Info, RawLock};
use std::ptr;

const HELD: u8 = 1;
/// A waiter sleeps in the queue.
const PARKED: u8 = 2;

/// The longest time from one handoff that is fair to the next, in nanoseconds; it is
/// drawn evenly, so about half of this on average.
const FAIR_NS: usize = 1_000_000;

/// One byte, held or not, with a bit that says whether waiters sleep. A waiter spins ten
/// rounds while nobody sleeps, then joins the queue of its address and sleeps. A release
/// frees the byte and wakes the first of the queue, which tries again; about every
/// half millisecond it hands the lock to it instead.
///
/// The queues are a table that all locks share, by a hash of the address.
#[derive(Default)]
#[repr(transparent)]
pub struct ParkingLot(Word<u8>);

/// A queue of sleepers, of all locks whose addresses have its hash.
#[repr(C, align(64))]
pub(crate) struct Bucket {
    /// Protects the rest.
    lock: WordLock,
    first: Word<*mut Sleeper>,
    last: Word<*mut Sleeper>,
    /// The time at which a handoff is to be fair again, in nanoseconds.
    fair_at: Word<usize>,
    /// Holds what the next time is drawn from.
    drawn: Word<u32>,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            lock: WordLock::default(),
            first: Word::default(),
            last: Word::default(),
            fair_at: Word::new(0),
            drawn: Word::new(1),
        }
    }
}

/// A thread in a queue.
#[derive(Default)]
#[repr(C, align(64))]
struct Sleeper {
    next: Word<*mut Self>,
    /// The lock that it sleeps for.
    key: Word<usize>,
    /// 1 while it sleeps.
    parked: Word<u32>,
    /// Says whether it has been given the lock.
    given: Word<u32>,
}

/// What a thread waits with, in its own memory as there. In the arena and not on its stack,
/// where two frames share a line in one build and not in another.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Waiting {
    sleeper: Sleeper,
    for_word: Waiter,
}

impl Waiting {
    /// Returns the number of lines of so many threads'.
    pub(crate) fn lines(threads: usize) -> usize {
        threads * Arena::lines_for::<Self>()
    }

    /// Places that of each thread in an engine's arena.
    pub(crate) fn place(engine: &Engine) {
        for (thread, cpu) in engine.cpus.iter().enumerate() {
            let label = format!("what thread {thread} waits with");
            let waiting: *const Self = engine.memory.arena.place(label, Self::default());
            cpu.waiting.set(waiting.cast());
        }
    }

    /// Returns that of the running thread.
    ///
    /// # Panics
    /// If there is none: a lock that sleeps has it.
    fn own() -> &'static Self {
        let own = engine().current().waiting.get().cast::<Self>();
        // SAFETY: null, or placed above in the engine's arena, and used only by coroutines, which do not outlive it.
        unsafe { own.as_ref() }.expect("a lock that sleeps has it")
    }
}

impl Bucket {
    fn with<'a, R>(&'a self, does: impl FnOnce(&'a Self) -> R) -> R {
        self.lock.lock(&Waiting::own().for_word);
        let done = does(self);
        self.lock.unlock();
        done
    }

    /// Adds a thread at the end; the bucket is locked.
    fn push(&self, sleeper: &Sleeper) {
        let pointer = ptr::from_ref(sleeper).cast_mut();
        // SAFETY: who is in the queue sleeps, and what it waits with stays, here and below.
        match unsafe { self.last.load(Ordering::Relaxed).as_ref() } {
            Some(last) => last.next.store(pointer, Ordering::Relaxed),
            None => self.first.store(pointer, Ordering::Relaxed),
        }
        self.last.store(pointer, Ordering::Relaxed);
    }

    /// Takes out the first who sleeps for a lock, and says whether there are more; the
    /// bucket is locked.
    fn pop(&self, key: usize) -> Option<(&Sleeper, bool)> {
        let sleeps = |sleeper: &&Sleeper| sleeper.key.load(Ordering::Relaxed) == key;
        // SAFETY: as in `push`.
        let next = |sleeper: &Sleeper| unsafe { sleeper.next.load(Ordering::Relaxed).as_ref() };
        // SAFETY: as in `push`.
        let mut at = unsafe { self.first.load(Ordering::Relaxed).as_ref() };
        let mut before: Option<&Sleeper> = None;
        while let Some(sleeper) = at.filter(|sleeper| !sleeps(sleeper)) {
            before = Some(sleeper);
            at = next(sleeper);
        }
        let found = at?;
        let mut behind = next(found);
        let pointer = |of: Option<&Sleeper>| of.map_or(ptr::null(), ptr::from_ref).cast_mut();
        match before {
            Some(before) => before.next.store(pointer(behind), Ordering::Relaxed),
            None => self.first.store(pointer(behind), Ordering::Relaxed),
        }
        if behind.is_none() {
            self.last.store(pointer(before), Ordering::Relaxed);
        }
        while let Some(sleeper) = behind.filter(|sleeper| !sleeps(sleeper)) {
            behind = next(sleeper);
        }
        Some((found, behind.is_some()))
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
    fn take(&self, seen: u8) -> Result<(), u8> {
        let taken =
            self.0
                .compare_exchange(seen, seen | HELD, Ordering::Acquire, Ordering::Relaxed);
        taken.map(drop)
    }

    fn key(&self) -> usize {
        self.0.address()
    }

    #[cold]
    fn wait(&self) {
        let mut round = 0;
        let mut seen = self.0.load(Ordering::Relaxed);
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
                    spin_round(round);
                    seen = self.0.load(Ordering::Relaxed);
                    continue;
                }
                let marked = self.0.compare_exchange(
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
            if self.park() {
                return;
            }
            round = 0;
            seen = self.0.load(Ordering::Relaxed);
        }
    }

    /// Sleeps if that is still right; returns whether it was given the lock.
    fn park(&self) -> bool {
        let sleeper = &Waiting::own().sleeper;
        sleeper.next.store(ptr::null_mut(), Ordering::Relaxed);
        sleeper.key.store(self.key(), Ordering::Relaxed);
        sleeper.parked.store(1, Ordering::Relaxed);
        sleeper.given.store(0, Ordering::Relaxed);
        let sleeps = bucket_of::<Sim, Bucket>(self.key()).with(|bucket| {
            let sleeps = self.0.load(Ordering::Relaxed) == HELD | PARKED;
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
        let woken = bucket_of::<Sim, Bucket>(self.key()).with(|bucket| {
            let Some((sleeper, more)) = bucket.pop(self.key()) else {
                // Pairs with `take`.
                self.0.store(0, Ordering::Release);
                return None;
            };
            let parked = if more { PARKED } else { 0 };
            let given = bucket.is_fair();
            // Who is given it finds it as it is, unless nobody sleeps any more.
            if !given || !more {
                let held = if given { HELD } else { 0 };
                // Pairs with `take`.
                self.0.store(held | parked, Ordering::Release);
            }
            sleeper.given.store(u32::from(given), Ordering::Relaxed);
            let word = &raw const sleeper.parked;
            // Pairs with the load of `park`.
            sleeper.parked.store(0, Ordering::Release);
            Some(word)
        });
        if let Some(word) = woken {
            // SAFETY: it lies in the arena, which stays while the engine runs.
            unsafe { Sim::wake_at(word) };
        }
    }
}

// SAFETY: a compare-and-swap takes it when it is free, and a handoff leaves it held for
// one sleeper.
unsafe impl RawLock<Sim> for ParkingLot {
    type Ctx = ();

    const INFO: Info = Info {
        name: "parking_lot",
        summary: "the mutex of the crate parking_lot, as described",
        fairness: Fairness::Bounded("a fair handoff about every 0.5 ms"),
        paper: "crate parking_lot 0.12, after WebKit's WTF::Lock",
        ..SLEEPS
    };

    unsafe fn lock(&self, _: &()) {
        if self.take(0).is_err() {
            self.wait();
        }
    }

    unsafe fn try_lock(&self, _: &()) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        seen & HELD == 0 && self.take(seen).is_ok()
    }

    unsafe fn unlock(&self, _: &()) {
        // Pairs with `take`.
        let freed = self
            .0
            .compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed);
        if freed.is_err() {
            self.release();
        }
    }
}
