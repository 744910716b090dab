//! glibc's mutexes: the normal kind and the adaptive one.

use super::common::SLEEPS;
use crate::platform::{Sim, Word};
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};

// States of the word: free, held, and held while others may sleep.
const NONE: u32 = 0;
const ONE: u32 = 1;
const SOME: u32 = 2;

/// glibc's mutex: the word in three states of Drepper's paper, and in its line who holds it and
/// how many use it, which a holder writes after it has acquired and before it releases.
///
/// Who finds it held and sees that others may sleep does not write the word, but sleeps.
#[derive(Default)]
#[repr(C)]
pub struct Pthread {
    word: Word<u32>,
    owner: Word<u32>,
    users: Word<u32>,
}

impl Pthread {
    /// Tries to take the word, and leaves the holder's notes to `noted`.
    pub fn take(&self) -> bool {
        // Pairs with the release of `unlock`, here and below.
        self.word
            .compare_exchange(NONE, ONE, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes the word, and sleeps while it is held.
    pub fn take_or_sleep(&self) {
        if self.take() {
            return;
        }
        if self.word.load(Ordering::Relaxed) == SOME {
            Sim::wait(&self.word, SOME);
        }
        while self.word.swap(SOME, Ordering::Acquire) != NONE {
            Sim::wait(&self.word, SOME);
        }
    }

    /// Returns whether the word says that it is free.
    fn is_free(&self) -> bool {
        self.word.load(Ordering::Relaxed) == NONE
    }

    /// Notes that its new holder has it.
    pub fn noted(&self) {
        self.owner.store(1, Ordering::Relaxed);
        let users = self.users.load(Ordering::Relaxed);
        self.users.store(users.wrapping_add(1), Ordering::Relaxed);
    }
}

// SAFETY: of the exchanges and compare-and-swaps between two releases one finds it free.
unsafe impl RawLock<Sim> for Pthread {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread",
        summary: "glibc's default mutex, as described",
        paper: "Drepper 2011",
        ..SLEEPS
    };

    unsafe fn lock(&self, _: &()) {
        self.take_or_sleep();
        self.noted();
    }

    unsafe fn try_lock(&self, _: &()) -> bool {
        let taken = self.take();
        if taken {
            self.noted();
        }
        taken
    }

    unsafe fn unlock(&self, _: &()) {
        self.owner.store(0, Ordering::Relaxed);
        let users = self.users.load(Ordering::Relaxed);
        self.users.store(users.wrapping_sub(1), Ordering::Relaxed);
        // Pairs with `take` and the exchange of `take_or_sleep`.
        if self.word.swap(NONE, Ordering::Release) == SOME {
            Sim::wake(&self.word);
        }
    }
}

/// The most reads of a spinning waiter: `glibc.pthread.mutex_spin_count`.
const MOST: u32 = 100;
/// Reads beyond twice the expected number.
const MARGIN: u32 = 10;

/// `PTHREAD_MUTEX_ADAPTIVE_NP`: the same, but a waiter first reads up to twice as often
/// as it took on average, and sleeps after that. The average follows every wait by an
/// eighth, also one that was in vain.
#[derive(Default)]
#[repr(C)]
pub(crate) struct PthreadAdaptive {
    mutex: Pthread,
    /// Written by the holder only.
    expected: Word<u32>,
}

// SAFETY: as `Pthread`.
unsafe impl RawLock<Sim> for PthreadAdaptive {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread-adaptive",
        summary: "glibc's adaptive mutex, as described",
        paper: "PTHREAD_MUTEX_ADAPTIVE_NP of the GNU C library",
        ..SLEEPS
    };

    unsafe fn lock(&self, _: &()) {
        if !self.mutex.take() {
            let expected = self.expected.load(Ordering::Relaxed);
            let most = (2 * expected + MARGIN).min(MOST);
            let mut reads = 0;
            loop {
                if reads == most {
                    self.mutex.take_or_sleep();
                    break;
                }
                reads += 1;
                Sim::relax();
                if self.mutex.is_free() && self.mutex.take() {
                    break;
                }
            }
            let mean = expected.cast_signed() + (reads.cast_signed() - expected.cast_signed()) / 8;
            self.expected.store(mean.cast_unsigned(), Ordering::Relaxed);
        }
        self.mutex.noted();
    }

    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mutex.try_lock(ctx) }
    }

    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.mutex.unlock(ctx) }
    }
}
