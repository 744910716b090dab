//! The mutex of Rust's standard library on Linux.

use super::common::SLEEPS;
use crate::platform::Sim;
use locklab_locks::{Info, RawLock, StdMutex};

/// The catalogue's lock that is written from its description.
#[derive(Default)]
pub(crate) struct Std(StdMutex<Sim>);

// SAFETY: as `StdMutex`.
unsafe impl RawLock<Sim> for Std {
    type Ctx = ();

    const INFO: Info = Info {
        name: "std",
        summary: "the standard library's mutex, as described",
        paper: "Rust standard library",
        ..SLEEPS
    };

    unsafe fn lock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.lock(ctx) }
    }

    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.try_lock(ctx) }
    }

    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(ctx) }
    }
}
