//! Waiting for a word to change on AArch64: a load that leaves the word under
//! the exclusive monitor, then `wfe`, which sleeps until another CPU writes the
//! line, or until the next tick of the event stream.
//!
//! It is for waits without an end only, and must never be used where no event
//! stream runs: a wait that a sleeping CPU has to end by itself would last for
//! ever. (Arm Architecture Reference Manual, "Wait for Event".)

use core::arch::asm;

/// A value that an exclusive load can read.
pub(crate) trait Watched: Copy {
    /// Reads a word and leaves it under the exclusive monitor. With `acquire`
    /// the load has acquire ordering.
    ///
    /// # Safety
    /// `word` is valid for reads and written by atomic operations only.
    unsafe fn watch(word: *const Self, acquire: bool) -> Self;
}

/// Sleeps until the monitor of the last [`Watched::watch`] is lost, or another
/// event comes; it may have come already.
#[inline(always)]
pub(crate) fn wait() {
    // SAFETY: it touches neither memory nor registers.
    unsafe { asm!("wfe", options(nostack, preserves_flags)) };
}

macro_rules! watched {
    ($value:ty, [$($generic:tt)*], $register:ty, $plain:literal, $acquire:literal) => {
        impl<$($generic)*> Watched for $value {
            #[inline(always)]
            unsafe fn watch(word: *const Self, acquire: bool) -> Self {
                let value: $register;
                // SAFETY: the caller's promise; a load has no other effect.
                unsafe {
                    if acquire {
                        asm!($acquire, out(reg) value, in(reg) word,
                            options(nostack, preserves_flags));
                    } else {
                        asm!($plain, out(reg) value, in(reg) word,
                            options(nostack, preserves_flags));
                    }
                }
                value as $value
            }
        }
    };
}

watched!(u8, [], u32, "ldxrb {:w}, [{}]", "ldaxrb {:w}, [{}]");
watched!(u32, [], u32, "ldxr {:w}, [{}]", "ldaxr {:w}, [{}]");
watched!(usize, [], usize, "ldxr {:x}, [{}]", "ldaxr {:x}, [{}]");
watched!(*mut T, [T], usize, "ldxr {:x}, [{}]", "ldaxr {:x}, [{}]");
