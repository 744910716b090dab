//! The simulation that a child process runs: one, which the hooks that the
//! compiler put into the lock's code find without an argument. It must never be
//! used twice at once.

use super::pool::Pool;
use crate::library::{Library, Sites};
use crate::repeat::Loop;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Describes what the hooks of a compiled lock work on.
pub(super) struct World {
    pub(super) library: Library,
    pub(super) sites: Sites,
    pub(super) pool: Pool,
    pub(super) cpus: Vec<Loop>,
    /// Says whether the accesses are not part of the simulation: `lab_init`.
    pub(super) quiet: bool,
}

/// The only world of the child.
pub(super) static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Uses the world; `f` neither uses it again nor switches to another CPU.
#[inline(always)]
pub(super) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    // SAFETY: set before the simulation begins and never freed; the child has
    // one thread, and no `f` comes back here.
    f(unsafe { &mut *WORLD.load(Ordering::Relaxed) })
}
