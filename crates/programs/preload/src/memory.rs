//! The interposer's own memory: mapped, zeroed, and never freed.
//!
//! It is never freed because a lock's last user may still read a queue
//! node after its owner has continued; a node must remain a node for ever.

use crate::futex;
use crate::own::Guarded;
use crate::process::die;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr;

/// The number of bytes mapped at a time.
const CHUNK: usize = 256 << 10;

struct Pool {
    guard: Guarded,
    /// The bounds of the free part of the chunk.
    free: UnsafeCell<(usize, usize)>,
}

// SAFETY: `free` is touched under `guard` only.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool {
    guard: Guarded::new(),
    free: UnsafeCell::new((0, 0)),
};

/// Allocates zeroed memory that is never freed.
pub(crate) fn allocate(layout: Layout) -> *mut u8 {
    if layout.size() > CHUNK / 8 {
        return map(layout.size());
    }
    POOL.guard.with(|| {
        // SAFETY: under the guard.
        let free = unsafe { &mut *POOL.free.get() };
        let mut from = free.0.next_multiple_of(layout.align());
        if from + layout.size() > free.1 {
            let chunk = map(CHUNK) as usize;
            *free = (chunk, chunk + CHUNK);
            from = chunk;
        }
        free.0 = from + layout.size();
        ptr::with_exposed_provenance_mut(from)
    })
}

/// Maps zeroed pages.
fn map(size: usize) -> *mut u8 {
    // SAFETY: a new mapping, at no given place.
    let place = futex::keep_errno(|| unsafe {
        libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    });
    if place == libc::MAP_FAILED {
        die(&["no memory for queue nodes: raise the limit on address space (ulimit -v)"]);
    }
    place.expose_provenance();
    place.cast()
}

pub(crate) fn guard() -> &'static Guarded {
    &POOL.guard
}
