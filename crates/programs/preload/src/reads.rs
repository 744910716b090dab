//! The rwlocks that a thread reads, and how often.
//!
//! POSIX lets a thread acquire a rwlock for reading again while it reads it. A
//! lock whose readers wait behind a waiting writer would then wait for itself;
//! so only the first acquisition and the last release of a thread reach the
//! lock. The list belongs to the record of the thread, and no other thread
//! touches it.

use crate::memory;
use core::alloc::Layout;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

const RELAXED: Ordering = Ordering::Relaxed;

/// The rwlocks in one part of the list.
const ENTRIES: usize = 14;

/// A part of the list of a thread, and the parts after it. Zeros are an empty
/// one.
#[repr(C)]
pub(crate) struct Reads {
    used: AtomicUsize,
    entries: [Entry; ENTRIES],
    next: AtomicPtr<Reads>,
}

/// A rwlock that the thread reads.
#[repr(C)]
struct Entry {
    rwlock: AtomicUsize,
    depth: AtomicU32,
}

/// The place of a rwlock in the list of the calling thread.
pub(crate) struct Place {
    part: &'static Reads,
    index: usize,
}

impl Reads {
    fn part(place: &AtomicPtr<Self>) -> Option<&'static Self> {
        // SAFETY: null, or a part, which is never unmapped.
        unsafe { place.load(RELAXED).as_ref() }
    }

    /// Returns the place of the rwlock at this address, if the thread reads it.
    #[inline]
    pub(crate) fn find(list: &AtomicPtr<Self>, rwlock: usize) -> Option<Place> {
        let mut part = Self::part(list)?;
        loop {
            let used = part.used.load(RELAXED).min(ENTRIES);
            let is_it = |entry: &Entry| entry.rwlock.load(RELAXED) == rwlock;
            if let Some(index) = part.entries[..used].iter().rposition(is_it) {
                return Some(Place { part, index });
            }
            part = Self::part(&part.next)?;
        }
    }

    /// Adds a rwlock that the thread reads from now on.
    #[inline]
    pub(crate) fn add(list: &AtomicPtr<Self>, rwlock: usize) {
        let mut list = list;
        loop {
            let part = Self::part(list).unwrap_or_else(|| Self::make(list));
            let used = part.used.load(RELAXED);
            if let Some(entry) = part.entries.get(used) {
                entry.rwlock.store(rwlock, RELAXED);
                entry.depth.store(1, RELAXED);
                part.used.store(used + 1, RELAXED);
                return;
            }
            list = &part.next;
        }
    }

    #[cold]
    #[inline(never)]
    fn make(place: &AtomicPtr<Self>) -> &'static Self {
        let part = memory::allocate(Layout::new::<Self>()).cast::<Self>();
        place.store(part, RELAXED);
        // SAFETY: fresh memory, which is never unmapped.
        unsafe { &*part }
    }

    /// Calls `f` with the address of each rwlock of the list.
    pub(crate) fn each(list: &AtomicPtr<Self>, f: impl Fn(usize)) {
        let mut list = list;
        while let Some(part) = Self::part(list) {
            for entry in &part.entries[..part.used.load(RELAXED)] {
                f(entry.rwlock.load(RELAXED));
            }
            list = &part.next;
        }
    }

    /// Empties the list of a thread that has ended; what it read stays read.
    pub(crate) fn forget(list: &AtomicPtr<Self>) {
        let mut list = list;
        while let Some(part) = Self::part(list) {
            part.used.store(0, RELAXED);
            list = &part.next;
        }
    }
}

impl Place {
    fn entry(&self) -> &Entry {
        &self.part.entries[self.index]
    }

    /// Counts one more acquisition; returns whether there is room for it.
    pub(crate) fn deepen(&self) -> bool {
        let depth = self.entry().depth.load(RELAXED);
        if depth == u32::MAX {
            return false;
        }
        self.entry().depth.store(depth + 1, RELAXED);
        true
    }

    /// Counts one release; returns whether it was the last, and the rwlock is no
    /// longer in the list.
    #[inline]
    pub(crate) fn leave(self) -> bool {
        let depth = self.entry().depth.load(RELAXED);
        if depth > 1 {
            self.entry().depth.store(depth - 1, RELAXED);
            return false;
        }
        let last = self.part.used.load(RELAXED) - 1;
        if !ptr::eq(self.entry(), &self.part.entries[last]) {
            let moved = &self.part.entries[last];
            let entry = self.entry();
            entry.rwlock.store(moved.rwlock.load(RELAXED), RELAXED);
            entry.depth.store(moved.depth.load(RELAXED), RELAXED);
        }
        self.part.used.store(last, RELAXED);
        true
    }
}
