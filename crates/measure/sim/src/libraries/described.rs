//! Locks of libraries that the catalogue has, written from their descriptions, under the
//! names of the libraries' own.

use super::common::SLEEPS;
use crate::platform::Sim;
use locklab_locks::{GlibcRw, Info, ParkingLotRw, RawLock, StdMutex, StdRw};

/// Makes a lock that is one of the catalogue's, under another name.
macro_rules! described {
    ($(
        $(#[$doc:meta])*
        $name:ident is $lock:ty: $word:literal, $summary:literal, $paper:literal;
    )*) => {$(
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name($lock);

        // SAFETY: as the lock inside.
        unsafe impl RawLock<Sim> for $name {
            type Ctx = ();

            const INFO: Info = Info {
                name: $word,
                summary: $summary,
                paper: $paper,
                fairness: <$lock as RawLock<Sim>>::INFO.fairness,
                readers_share: <$lock as RawLock<Sim>>::INFO.readers_share,
                ..SLEEPS
            };

            unsafe fn lock(&self, ctx: &()) {
                // SAFETY: the caller's promise is the same, here and below.
                unsafe { self.0.lock(ctx) }
            }

            unsafe fn try_lock(&self, ctx: &()) -> bool {
                // SAFETY: as above.
                unsafe { self.0.try_lock(ctx) }
            }

            unsafe fn unlock(&self, ctx: &()) {
                // SAFETY: as above.
                unsafe { self.0.unlock(ctx) }
            }

            unsafe fn read_lock(&self, ctx: &()) {
                // SAFETY: as above.
                unsafe { RawLock::read_lock(&self.0, ctx) }
            }

            unsafe fn read_unlock(&self, ctx: &()) {
                // SAFETY: as above.
                unsafe { RawLock::read_unlock(&self.0, ctx) }
            }
        }
    )*};
}

described! {
    /// The mutex of Rust's standard library on Linux.
    Std is StdMutex<Sim>:
        "std", "the standard library's mutex, as described", "Rust standard library";
    /// Its reader-writer lock.
    StdRwlock is StdRw<Sim>:
        "std-rwlock", "the standard library's RwLock, as described", "Rust standard library";
    /// The reader-writer lock of the crate parking_lot.
    ParkingLotRwlock is ParkingLotRw<Sim>:
        "parking_lot-rwlock", "parking_lot's RwLock, as described", "crate parking_lot 0.12";
    /// `PTHREAD_RWLOCK_PREFER_READER_NP`, the default kind.
    PthreadRwlock is GlibcRw<Sim, false>:
        "pthread-rwlock", "glibc's rwlock that prefers readers, as described", "the GNU C library";
    /// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
    PthreadRwlockWriters is GlibcRw<Sim, true>:
        "pthread-rwlock-w", "glibc's rwlock that prefers writers, as described", "the GNU C library";
}
