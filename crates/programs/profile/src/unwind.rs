//! The return addresses of the calling thread, for the libraries that go into
//! programs.
//!
//! The unwinder is the one that every program with exceptions has, so programs
//! without frame pointers work too. It may take a lock of its own (for code made
//! at run time, and before glibc 2.35), which may re-enter the caller's library.
//! Nothing here allocates.

use core::ffi::{c_int, c_void};

// A static command has the standard library's own unwinder.
#[cfg_attr(not(target_env = "musl"), link(name = "gcc_s"))]
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
/// The most frames of the library before the program's.
const OURS: u32 = 24;

/// Holds at most `N` return addresses, from a call outwards.
pub struct Walk<const N: usize> {
    caller: usize,
    ours: u32,
    depth: usize,
    frames: [[u8; 8]; N],
}

impl<const N: usize> Walk<N> {
    /// Returns the call that returns to `caller`, which has not been walked from.
    #[must_use]
    pub fn new(caller: usize) -> Self {
        Self {
            caller,
            ours: 0,
            depth: 0,
            frames: [[0; 8]; N],
        }
    }

    /// Adds the stack outside the call, if the unwinder finds the call.
    #[must_use]
    pub fn walked(mut self) -> Self {
        // SAFETY: `step` gets what it expects.
        unsafe { _Unwind_Backtrace(step::<N>, (&raw mut self).cast()) };
        self
    }

    /// Returns the addresses, little-endian, then zeros: at least that of the call.
    #[must_use]
    pub fn into_frames(mut self) -> ([[u8; 8]; N], usize) {
        if self.depth == 0 {
            self.frames[0] = (self.caller as u64).to_le_bytes();
            self.depth = 1;
        }
        (self.frames, self.depth)
    }
}

unsafe extern "C" fn step<const N: usize>(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: of `walked` above, whose value lives until the unwinder returns.
    let walk = unsafe { &mut *walk.cast::<Walk<N>>() };
    // SAFETY: the unwinder's own context.
    let address = unsafe { _Unwind_GetIP(context) };
    if walk.depth == 0 && address != walk.caller {
        walk.ours += 1;
        return if walk.ours > OURS { STOP } else { GO_ON };
    }
    let Some(place) = walk.frames.get_mut(walk.depth) else {
        return STOP;
    };
    if address == 0 {
        return STOP;
    }
    *place = (address as u64).to_le_bytes();
    walk.depth += 1;
    GO_ON
}
