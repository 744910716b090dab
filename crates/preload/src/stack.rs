//! The call stack: the return addresses of the calling thread.
//!
//! It uses the unwinder that every program with exceptions has, so programs
//! without frame pointers work too. It may take a lock of its own (for code
//! made at run time), which re-enters here: then the walk ends at the call.
//!
//! It must never allocate, and never run while the program's lock is held for
//! it.

use crate::thread;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use locklab_preload_report::FRAMES;

#[link(name = "gcc_s")]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Tells the unwinder to continue.
const GO_ON: c_int = 0;
/// Tells the unwinder to stop.
const STOP: c_int = 5;
/// The most frames of the interposer before the program's.
const OURS: u32 = 24;

/// Return addresses, from the call outwards; 0 after the last.
pub(crate) type Frames = [u64; FRAMES];

struct Walk {
    caller: usize,
    ours: u32,
    depth: usize,
    frames: Frames,
}

unsafe extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: of `walk` below, which lives until the unwinder returns.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    // SAFETY: the unwinder's own context.
    let address = unsafe { _Unwind_GetIP(context) };
    if walk.depth == 0 && address != walk.caller {
        walk.ours += 1;
        return if walk.ours > OURS { STOP } else { GO_ON };
    }
    let Some(place) = walk.frames.get_mut(walk.depth) else {
        return STOP;
    };
    *place = address as u64;
    walk.depth += 1;
    GO_ON
}

/// The call stack outside the call that returns to `caller`.
pub(crate) fn walk(caller: usize) -> Frames {
    let mut walk = Walk {
        caller,
        ours: 0,
        depth: 0,
        frames: [0; FRAMES],
    };
    let walking = &thread::header().walking;
    if walking.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: `step` gets what it expects.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        walking.store(0, Ordering::Relaxed);
    }
    if walk.depth == 0 {
        walk.frames[0] = caller as u64;
    }
    walk.frames
}
