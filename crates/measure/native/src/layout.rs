//! The layouts of a loop: where its code begins, relative to a cache line.
//!
//! It must change nothing else of the loop, least of all its instructions.

/// The number of layouts of a loop.
pub const LAYOUTS: usize = 8;

/// Puts the code that follows at one of [`LAYOUTS`] offsets: four from a cache
/// line, by 16 bytes as compilers align loops, on an even or an odd line of
/// two. Executed once a slice, in the part that is left out.
#[inline(always)]
pub(crate) fn pad<const LAYOUT: usize>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no-operations only.
    unsafe {
        core::arch::asm!(".p2align 7", ".nops {pad}", pad = const LAYOUT * 16 + 1,
            options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: no-operations only.
    unsafe {
        core::arch::asm!(".p2align 7", ".rept {pad}", "nop", ".endr", pad = const LAYOUT * 4,
            options(nomem, nostack, preserves_flags));
    }
}
