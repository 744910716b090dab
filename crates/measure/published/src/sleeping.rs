//! Mutexes that sleep, and spinlocks that were measured beside them, of published programs.
//!
//! Each is the catalogue's mutex of that library with what the program keeps beside it: where
//! its counter lies decides how many lines an operation moves. They are written from what the
//! programs do, in their order, and from no figure.
//!
//! They are here to be simulated. Nothing else must use them.

use locklab_locks::platform::{Atomic, Ordering, Patience, Platform, Poll};
use locklab_locks::{Futex, Info, RawLock};
use locklab_sim::Sim;

type Byte = <Sim as Platform>::U8;
type Word = <Sim as Platform>::U32;

const FREE: u8 = 0;
const HELD: u8 = 1;

const INFO: Info = Info {
    name: "mutex of a program",
    try_lock: false,
    parks: true,
    max_cpus: usize::MAX,
    ..Info::BASE
};

/// A mutex of Rust's standard library before version 1.62: glibc's in a heap block of its
/// own, found by a pointer beside the counter.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Boxed {
    glibc: Block,
    pointer: Word,
    counter: Word,
}

/// A block of the heap.
#[derive(Default)]
#[repr(align(64))]
struct Block(Futex<Sim>);

// SAFETY: the mutex's.
unsafe impl RawLock<Sim> for Boxed {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, context: &()) {
        self.pointer.load(Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { self.glibc.0.lock(context) }
        let count = self.counter.load(Ordering::Relaxed);
        self.counter.store(count.wrapping_add(1), Ordering::Relaxed);
    }

    unsafe fn unlock(&self, context: &()) {
        self.pointer.load(Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { self.glibc.0.unlock(context) }
    }
}

fn compare_and_swap(word: &Byte) -> bool {
    word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}

/// A spinlock that only compares and swaps, with a pause after each that fails.
#[derive(Default)]
pub(crate) struct CasOnly(Byte);

// SAFETY: of the exchanges between two releases one finds it free.
unsafe impl RawLock<Sim> for CasOnly {
    type Ctx = ();
    const INFO: Info = Info {
        parks: false,
        ..INFO
    };

    unsafe fn lock(&self, _: &()) {
        while !compare_and_swap(&self.0) {
            Sim::relax();
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Reads of folly's `MicroSpinLock` with pauses between, before it sleeps for a time.
const READS: u32 = 4000;
/// The time for which it sleeps.
const NAP_NS: u64 = 500_000;

/// A spinlock whose waiters sleep for half a millisecond after every 4,000 pauses.
#[derive(Default)]
pub(crate) struct Napping(Byte);

// SAFETY: as above.
unsafe impl RawLock<Sim> for Napping {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        while !compare_and_swap(&self.0) {
            loop {
                let seen = self.0.spin(
                    Ordering::Relaxed,
                    Patience::Reads(READS),
                    |seen| match seen {
                        FREE => Poll::Done,
                        _ => Poll::Relax(1),
                    },
                );
                if seen == FREE {
                    break;
                }
                Sim::sleep_ns(NAP_NS);
            }
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.0.store(FREE, Ordering::Release);
    }
}
