//! Memory of our own: mapped, zeroed, and never given back.
//!
//! Never given back because a lock's last user may still look at a queue
//! node after its owner has gone on; a node must stay a node for ever.

use crate::choice::die;
use crate::futex::Guarded;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr;

/// How much is mapped at a time.
const CHUNK: usize = 256 << 10;

struct Pool {
    guard: Guarded,
    /// The free part of the chunk: from, to.
    free: UnsafeCell<(usize, usize)>,
}

// SAFETY: `free` is touched under `guard` only.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool {
    guard: Guarded::new(),
    free: UnsafeCell::new((0, 0)),
};

/// Zeroed memory, for ever.
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

/// Zeroed pages.
fn map(size: usize) -> *mut u8 {
    // SAFETY: a new mapping, at no given place.
    let place = crate::futex::keep_errno(|| unsafe {
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
