//! Locks of published programs, where those are not the catalogue's of that
//! name: an experiment compares what its benchmark ran.
//!
//! The catalogue's test-and-test-and-set lock begins with the swap; those of the
//! benchmarks read first, and that decides how often a waiter takes the line
//! from the holder. Their ticket locks are of two words, and the catalogue's is
//! of one. Each is written from what its program does, in its order, and from no
//! figure.
//!
//! They are here to be simulated. Nothing else must use them, and none of them is
//! part of the catalogue.

use crate::awn::{Awn, YieldingTicket};
use crate::lockhammer;
use crate::made::{Make, simulated};
use crate::sleeping::{Boxed, CasOnly, Napping, SwappingAdaptive};
use locklab_library_models::StdMutex;
use locklab_locks::platform::{Atomic, AtomicInt, Ordering, Platform};
use locklab_locks::{Futex, FutexAdaptive, Info, RawLock, Tas, catalogue};
use locklab_sim::{ParkingLot, Pthread, Sim, library_locks};
use std::sync::Once;

type Byte = <Sim as Platform>::U8;
type Word = <Sim as Platform>::U32;
type Wide = <Sim as Platform>::Usize;

const FREE: u8 = 0;
const HELD: u8 = 1;

/// The locks: their names, and how each is made.
const LOCKS: [(&str, Make); 21] = [
    // T. Downs, concurrency-hierarchy-bench, fairlocks: "pure spin", "pause spin". Both
    // of their functions are in a file of their own, so that each is a call; those of
    // the ticket lock below are a template, which the compiler inlines.
    ("program:ttas-swap", simulated::<Called<ReadFirst<true>>>),
    // This is TTASLock of spinlock-performance-comparison, in Rust.
    ("program:ttas-cas", simulated::<ReadFirst<false>>),
    // T. Downs, the same: "ticket spin".
    ("program:ticket-two-words", simulated::<TwoWords>),
    // lockbench: the lock, and the two flags that each turn of its loop reads, are
    // declared one after the other on the stack of its main thread: that they share a
    // line is inferred.
    ("program:lockbench-tas", simulated::<BesideFlags<Tas<Sim>>>),
    (
        "program:lockbench-ttas",
        simulated::<BesideFlags<ReadFirst<true>>>,
    ),
    ("program:lockbench-cas", simulated::<BesideFlags<CasFirst>>),
    ("program:lockbench-ticket", simulated::<TwoLines>),
    // lock-bench in Rust: the counter is in the line of its lock.
    ("program:rust-spin", simulated::<WithCounter<CasFirst>>),
    ("program:rust-amd", simulated::<WithCounter<ReadOnce>>),
    // The same, and parking_lot's own benchmark: mutexes with the counter in their line.
    // Before Rust 1.62 that of the standard library was boxed.
    ("program:rust-std", simulated::<WithCounter<StdMutex<Sim>>>),
    ("program:rust-std-boxed", simulated::<Boxed>),
    (
        "program:rust-parking-lot",
        simulated::<WithCounter<ParkingLot>>,
    ),
    ("program:futex", simulated::<WithCounter<Futex<Sim>>>),
    // glibc's mutexes as they are laid out; the adaptive one is that before version 2.35.
    ("program:glibc", simulated::<Pthread>),
    ("program:glibc-adaptive", simulated::<SwappingAdaptive>),
    ("program:glibc-counter", simulated::<WithCounter<Pthread>>),
    // spin-rs before its pull request 33.
    ("program:rust-spin-cas", simulated::<WithCounter<CasOnly>>),
    // zio before its pull request 576; after it, it is as the one above.
    (
        "program:futex-spins",
        simulated::<WithCounter<FutexAdaptive<Sim>>>,
    ),
    // folly: MicroSpinLock.
    ("program:folly-microspin", simulated::<Napping>),
    // These are of ConcurrencyFreaks, in C11: a ticket lock, and its variant "AWN,
    // ends on egress".
    ("program:awn-ticket", simulated::<YieldingTicket>),
    ("program:awn", simulated::<Awn>),
];

/// Returns these locks, and lockhammer's.
fn all() -> impl Iterator<Item = (&'static str, Make)> {
    LOCKS.into_iter().chain(lockhammer::LOCKS)
}

/// Returns whether an experiment may name this lock of a program or of a library.
pub(crate) fn is_known(name: &str) -> bool {
    all().any(|(known, _)| known == name) || library_locks().any(|known| known == name)
}

/// Locks of programs whose waiters may sleep.
const SLEEPING: [&str; 9] = [
    "program:rust-std",
    "program:rust-std-boxed",
    "program:rust-parking-lot",
    "program:futex",
    "program:glibc",
    "program:glibc-adaptive",
    "program:glibc-counter",
    "program:futex-spins",
    "program:folly-microspin",
];

/// Returns whether waiters of this lock may sleep, whoever's it is.
pub(crate) fn sleeps(name: &str) -> bool {
    let of_catalogue = catalogue::ALL.iter().find(|entry| entry.info.name == name);
    of_catalogue.is_some_and(|entry| entry.info.parks)
        || library_locks().any(|known| known == name)
        || SLEEPING.contains(&name)
}

/// Makes the simulator find them.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, lock) in all() {
            locklab_sim::register(name, lock());
        }
    });
}

const INFO: Info = Info {
    name: "lock of a program",
    try_lock: false,
    ..Info::BASE
};

/// Reads until a word has the value; a pause after each read that has not.
/// The first read is one after which a read-modify-write may follow at once.
fn await_value<T: Copy + PartialEq>(word: &impl Atomic<T>, value: T) {
    if word.load(Ordering::Acquire) != value {
        Sim::relax();
        word.spin_until(Ordering::Acquire, |seen| seen == value);
    }
}

fn cas(word: &Byte) -> bool {
    word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}

/// Reads until it looks free, then swaps, or compares and swaps; from the
/// beginning if that fails.
#[derive(Default)]
struct ReadFirst<const SWAP: bool>(Byte);

// SAFETY: of the swaps, or the exchanges, between two releases one finds it free.
unsafe impl<const SWAP: bool> RawLock<Sim> for ReadFirst<SWAP> {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        loop {
            await_value(&self.0, FREE);
            let taken = match SWAP {
                true => self.0.swap(HELD, Ordering::Acquire) == FREE,
                false => cas(&self.0),
            };
            if taken {
                return;
            }
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Compares and swaps; if that fails, reads until it looks free, and again.
#[derive(Default)]
struct CasFirst(Byte);

// SAFETY: as above.
unsafe impl RawLock<Sim> for CasFirst {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        while !cas(&self.0) {
            await_value(&self.0, FREE);
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Reads, compares and swaps if it looks free, and pauses if either fails.
#[derive(Default)]
struct ReadOnce(Byte);

// SAFETY: as above.
unsafe impl RawLock<Sim> for ReadOnce {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        loop {
            await_value(&self.0, FREE);
            if cas(&self.0) {
                return;
            }
            Sim::relax();
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// A ticket lock whose two words lie side by side.
#[derive(Default)]
#[repr(C, align(64))]
struct TwoWords {
    next: Wide,
    served: Wide,
}

// SAFETY: a ticket is given once, and served after the one before it has released.
unsafe impl RawLock<Sim> for TwoWords {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        await_value(&self.served, ticket);
    }

    unsafe fn unlock(&self, _: &()) {
        let served = self.served.load(Ordering::Relaxed);
        self.served.store(served.wrapping_add(1), Ordering::Release);
    }
}

/// A word that has a line for itself.
#[derive(Default)]
#[repr(align(64))]
struct Line(Word);

/// A ticket lock whose two words have lines of their own.
#[derive(Default)]
#[repr(C)]
struct TwoLines {
    next: Line,
    served: Line,
}

// SAFETY: as above.
unsafe impl RawLock<Sim> for TwoLines {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        let ticket = self.next.0.fetch_add(1, Ordering::Relaxed);
        await_value(&self.served.0, ticket);
    }

    unsafe fn unlock(&self, _: &()) {
        let served = self.served.0.load(Ordering::Relaxed);
        let next = served.wrapping_add(1);
        self.served.0.store(next, Ordering::Release);
    }
}

/// A lock whose functions are not inlined.
#[derive(Default)]
struct Called<L>(L);

// SAFETY: the lock's.
unsafe impl<L: RawLock<Sim>> RawLock<Sim> for Called<L> {
    type Ctx = L::Ctx;
    const INFO: Info = INFO;

    unsafe fn lock(&self, context: &L::Ctx) {
        Sim::function_call();
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(context) }
    }

    unsafe fn unlock(&self, context: &L::Ctx) {
        Sim::function_call();
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(context) }
    }
}

/// A lock in whose line there are two flags that are never written: a turn of the
/// loop reads one before it acquires, and one after it has released.
#[derive(Default)]
#[repr(C)]
struct BesideFlags<L> {
    lock: L,
    stop: Byte,
    measuring: Byte,
}

// SAFETY: the lock's.
unsafe impl<L: RawLock<Sim>> RawLock<Sim> for BesideFlags<L> {
    type Ctx = L::Ctx;
    const INFO: Info = INFO;

    unsafe fn lock(&self, context: &L::Ctx) {
        self.stop.load(Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock.lock(context) }
    }

    unsafe fn unlock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock.unlock(context) }
        self.measuring.load(Ordering::Relaxed);
    }
}

/// A lock in whose line is the counter that its holders add to.
#[derive(Default)]
#[repr(C)]
struct WithCounter<L> {
    lock: L,
    counter: Word,
}

// SAFETY: the lock's.
unsafe impl<L: RawLock<Sim>> RawLock<Sim> for WithCounter<L> {
    type Ctx = L::Ctx;
    const INFO: Info = Info {
        parks: L::INFO.parks,
        ..INFO
    };

    unsafe fn lock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock.lock(context) }
        let count = self.counter.load(Ordering::Relaxed);
        self.counter.store(count.wrapping_add(1), Ordering::Relaxed);
    }

    unsafe fn unlock(&self, context: &L::Ctx) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.lock.unlock(context) }
    }
}

#[cfg(test)]
#[path = "../tests/unit/program_locks.rs"]
mod tests;
