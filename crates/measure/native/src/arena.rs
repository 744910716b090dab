//! Memory that the workers of a block share, threads or processes.
//!
//! One anonymous shared mapping, so that a forked child sees the same bytes
//! at the same address. Each value lies on 128 bytes of its own: two lines,
//! because adjacent-line prefetch pairs them. Where a value lies in its mapping
//! is the caller's choice ([`Arena::skip`]), because the distance of a line
//! depends on it. Drops nothing.

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::Layout;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

const ALIGN: usize = 128;

/// A mapping that gives out pieces of itself, each once.
pub(crate) struct Arena {
    start: NonNull<c_void>,
    size: usize,
    used: usize,
}

/// Returns the bytes that a value of this size occupies in an arena.
#[must_use]
pub(crate) const fn room(size: usize) -> usize {
    size.div_ceil(ALIGN) * ALIGN
}

impl Arena {
    /// Maps `size` bytes of zeros.
    ///
    /// # Errors
    /// If `size` is zero, or the kernel cannot map so much memory.
    pub(crate) fn new(size: usize) -> Result<Self, String> {
        let size = room(size.max(1));
        let Some(length) = NonZeroUsize::new(size) else {
            return Err("a block without memory".into());
        };
        // SAFETY: a new mapping of our own, at an address the kernel picks.
        let start = unsafe {
            mmap_anonymous(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
            )
        }
        .map_err(|e| format!("cannot map {size} bytes of shared memory: {e}"))?;
        Ok(Self {
            start,
            size,
            used: 0,
        })
    }

    /// Leaves this many bytes out, rounded up to 128.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.used = (self.used + room(bytes)).min(self.size);
    }

    /// Returns the memory for `count` values, all bytes zero.
    ///
    /// # Panics
    /// If the arena is too small or `T` needs a larger alignment than
    /// 128, which is an error of the caller.
    pub(crate) fn take<T>(&mut self, count: usize) -> NonNull<T> {
        let layout = Layout::array::<T>(count).unwrap_or(Layout::new::<T>());
        self.place(layout).cast()
    }

    /// Moves `value` into the arena. It is not dropped with the arena.
    ///
    /// # Panics
    /// The same conditions as for [`Arena::take`].
    pub(crate) fn put<T>(&mut self, value: T) -> NonNull<T> {
        let place = self.take::<T>(1);
        // SAFETY: fresh, aligned, in bounds and ours.
        unsafe { place.write(value) };
        place
    }

    /// Returns the memory for one value of this layout, all bytes zero.
    ///
    /// # Panics
    /// The same conditions as for [`Arena::take`].
    pub(crate) fn place(&mut self, layout: Layout) -> NonNull<u8> {
        assert!(layout.align() <= ALIGN, "wider than the arena's alignment");
        let size = room(layout.size().max(1));
        assert!(size <= self.size - self.used, "arena too small");
        // SAFETY: within the mapping, by the line above.
        let place = unsafe { self.start.byte_add(self.used) };
        self.used += size;
        place.cast()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: our mapping; whoever used it is done, by the runner.
        // A failure would only keep the memory until the process ends.
        let _ = unsafe { munmap(self.start, self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_apart() {
        let mut arena = Arena::new(room(1) + room(8 * 20) + room(4)).unwrap();
        let a = arena.put(7_u8);
        let b = arena.take::<u64>(20);
        let c = arena.put(9_u32);
        assert_eq!(b.addr().get() - a.addr().get(), 128);
        assert_eq!(c.addr().get() - b.addr().get(), 256);
        // SAFETY: initialised above, nobody else has them.
        unsafe {
            assert_eq!((a.read(), b.add(19).read(), c.read()), (7, 0, 9));
        }
    }
}
