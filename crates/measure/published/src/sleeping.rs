//! Mutexes that sleep, and spinlocks that were measured beside them, of published programs.
//!
//! Each is the catalogue's mutex of that library with what the program keeps beside it: where
//! its counter lies decides how many lines an operation moves. They are written from what the
//! programs do, in their order, and from no figure.
//!
//! They are here to be simulated. Nothing else must use them.

use locklab_locks::platform::{Atomic, Ordering, Patience, Platform, Poll};
use locklab_locks::{Info, RawLock};
use locklab_sim::{Pthread, Sim};

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

/// Most tries of the adaptive kind (`mutex_spin_count`), and those beyond twice the expected
/// number.
const MOST: u32 = 100;
const MARGIN: u32 = 10;

/// glibc's adaptive mutex before version 2.35: each try is a compare-and-swap, after one pause.
#[derive(Default)]
#[repr(C)]
pub(crate) struct SwappingAdaptive {
    mutex: Pthread,
    tries: Word,
}

// SAFETY: as glibc's mutex.
unsafe impl RawLock<Sim> for SwappingAdaptive {
    type Ctx = ();
    const INFO: Info = INFO;

    unsafe fn lock(&self, _: &()) {
        if !self.mutex.take() {
            let expected = self.tries.load(Ordering::Relaxed);
            let most = (2 * expected + MARGIN).min(MOST);
            let mut tries = 0;
            loop {
                tries += 1;
                if tries > most {
                    self.mutex.take_or_sleep();
                    break;
                }
                Sim::relax();
                if self.mutex.take() {
                    break;
                }
            }
            let mean = expected.cast_signed() + (tries.cast_signed() - expected.cast_signed()) / 8;
            self.tries.store(mean.cast_unsigned(), Ordering::Relaxed);
        }
        self.mutex.noted();
    }

    unsafe fn unlock(&self, context: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mutex.unlock(context) }
    }
}

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
struct Block(Pthread);

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
