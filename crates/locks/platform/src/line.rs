//! A value on a cache line of its own.

use core::ops::Deref;

/// Keeps `T` apart from its neighbours: 64-byte aligned, so that two of them
/// never share a line of x86 or Arm server CPUs. (Adjacent-line prefetch may
/// still pair two lines.)
#[derive(Default)]
#[repr(C, align(64))]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
