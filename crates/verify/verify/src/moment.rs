//! Dates what a thread did, for those who ask whether that happens before what it
//! does now: a lock that is not written in Rust has data races to look for.
//!
//! Must never order anything.

use loom::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A moment of one modelled thread, in one execution.
pub struct Moment(UnsafeCell<()>);

impl Moment {
    /// Returns this moment of the calling thread. To be taken before what is to be
    /// dated: what that releases is then after it.
    pub fn now() -> Self {
        // loom dates the making of a cell, and does not ask what came before.
        Self(UnsafeCell::new(()))
    }

    /// Returns whether it happens before all that the calling thread does from now on.
    pub fn has_passed(&self) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.0.with(|_| ()))).is_ok()
    }
}
