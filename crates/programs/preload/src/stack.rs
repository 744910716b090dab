//! The call stack: the return addresses of the calling thread.
//!
//! The unwinder may take a lock of its own (for code made at run time), which
//! re-enters here: then the walk ends at the call.
//!
//! It must never allocate, and never run while the program's lock is held for
//! it.

use crate::thread;
use core::sync::atomic::Ordering;
use locklab_profile::FRAMES;
use locklab_profile::unwind::Walk;

/// Return addresses, from the call outwards; 0 after the last.
pub(crate) type Frames = [u64; FRAMES];

/// Returns the call stack outside the call that returns to `caller`.
pub(crate) fn walk(caller: usize) -> Frames {
    let mut walk = Walk::new(caller);
    let walking = &thread::header().walking;
    if walking.swap(1, Ordering::Relaxed) == 0 {
        walk = walk.walked();
        walking.store(0, Ordering::Relaxed);
    }
    walk.into_frames().0.map(u64::from_le_bytes)
}
