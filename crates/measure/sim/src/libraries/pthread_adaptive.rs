//! glibc's mutex of the adaptive kind.

use super::common::SLEEPS;
use crate::platform::{Sim, Word};
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Futex, Info, RawLock};

/// The most reads of a spinning waiter: `glibc.pthread.mutex_spin_count`.
const MOST: u32 = 100;
/// Reads beyond twice the expected number.
const MARGIN: u32 = 10;

/// `PTHREAD_MUTEX_ADAPTIVE_NP`: the same, but a waiter first reads up to twice as often
/// as it took on average, and sleeps after that. The average follows every wait by an
/// eighth, also one that was in vain.
#[derive(Default)]
pub(crate) struct PthreadAdaptive {
    futex: Futex<Sim>,
    /// Written by the holder only.
    expected: Word<u32>,
}

// SAFETY: as `Futex`.
unsafe impl RawLock<Sim> for PthreadAdaptive {
    type Ctx = ();

    const INFO: Info = Info {
        name: "pthread-adaptive",
        summary: "glibc's adaptive mutex, as described",
        paper: "PTHREAD_MUTEX_ADAPTIVE_NP of the GNU C library",
        ..SLEEPS
    };

    unsafe fn lock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same, here and below.
        if unsafe { self.futex.try_lock(ctx) } {
            return;
        }
        let expected = self.expected.load(Ordering::Relaxed);
        let most = (2 * expected + MARGIN).min(MOST);
        let mut reads = 0;
        loop {
            if reads == most {
                // SAFETY: as above.
                unsafe { self.futex.lock(ctx) };
                break;
            }
            reads += 1;
            Sim::relax();
            // SAFETY: as above.
            if self.futex.is_locked() == Some(false) && unsafe { self.futex.try_lock(ctx) } {
                break;
            }
        }
        let mean = expected.cast_signed() + (reads.cast_signed() - expected.cast_signed()) / 8;
        self.expected.store(mean.cast_unsigned(), Ordering::Relaxed);
    }

    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.futex.try_lock(ctx) }
    }

    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.futex.unlock(ctx) }
    }
}
