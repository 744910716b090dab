//! The waiters of an `AbseilMutex`: a ring in order, each on its thread's own stack, found by
//! the last of them.
//!
//! It must know neither the lock's word nor who may change the ring: callers say so.

use crate::platform::{Atomic, Ordering, Platform};
use core::ptr;

/// A thread in the queue, in its place on the stack.
#[repr(C, align(64))]
pub(super) struct Waiter<P: Platform> {
    /// The next in order; the last has the first.
    next: P::Ptr<Waiter<P>>,
    /// How many readers hold the lock, if this is the last; as the lock's word counts them.
    pub(super) readers: P::Usize,
    writes: P::U32,
    /// 1 while it sleeps.
    asleep: P::U32,
}

/// The waiters that were taken out of the ring, from the first to the last, and the rest of it.
pub(super) struct Taken<P: Platform> {
    first: *mut Waiter<P>,
    last: *mut Waiter<P>,
    /// The last of those that stay, or null.
    pub(super) rest: *mut Waiter<P>,
}

impl<P: Platform> Waiter<P> {
    pub(super) fn new(writes: bool) -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            readers: P::Usize::new(0),
            writes: P::U32::new(u32::from(writes)),
            asleep: P::U32::new(0),
        }
    }

    fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed) != 0
    }

    /// Makes it the only one, where so many readers hold the lock.
    pub(super) fn begin(&self, readers: usize) {
        self.asleep.store(1, Ordering::Relaxed);
        self.readers.store(readers, Ordering::Relaxed);
        self.next
            .store(ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
    }

    /// Joins those before `last`, in front or behind them; returns who is the last now.
    ///
    /// # Safety
    /// `last` is the last of a ring that is the caller's to change.
    pub(super) unsafe fn join(&self, last: *mut Self, in_front: bool) -> *mut Self {
        let own = ptr::from_ref(self).cast_mut();
        // SAFETY: of the caller; who is in the ring sleeps.
        let before = unsafe { &*last };
        self.asleep.store(1, Ordering::Relaxed);
        self.next
            .store(before.next.load(Ordering::Relaxed), Ordering::Relaxed);
        before.next.store(own, Ordering::Relaxed);
        if in_front {
            return last;
        }
        self.readers
            .store(before.readers.load(Ordering::Relaxed), Ordering::Relaxed);
        own
    }

    /// Returns once it is woken.
    pub(super) fn sleep(&self) {
        // X12: pairs with X13.
        while self.asleep.load(Ordering::Acquire) != 0 {
            P::wait(&self.asleep, 1);
        }
    }
}

/// Takes out who is next: the first alone if it writes, or all who read. The rest count no
/// reader inside.
///
/// # Safety
/// `last` is the last of a ring that is the caller's to change.
pub(super) unsafe fn take_next<P: Platform>(last: *mut Waiter<P>) -> Taken<P> {
    // SAFETY: of the caller; who is in the ring sleeps.
    let first = unsafe { &*last }.next.load(Ordering::Relaxed);
    let mut taken = Taken {
        first,
        last: first,
        rest: last,
    };
    // SAFETY: as above.
    if unsafe { &*first }.writes() {
        // SAFETY: of the caller.
        unsafe { taken.take_out(first, last) };
    } else {
        // SAFETY: of the caller.
        unsafe { taken.take_readers(last) };
    }
    // SAFETY: as above.
    if let Some(rest) = unsafe { taken.rest.as_ref() } {
        rest.readers.store(0, Ordering::Relaxed);
    }
    taken
}

impl<P: Platform> Taken<P> {
    /// Takes `one` out of the ring, where it is next to `before`.
    ///
    /// # Safety
    /// They are in a ring that is the caller's to change.
    unsafe fn take_out(&mut self, one: *mut Waiter<P>, before: *mut Waiter<P>) {
        self.rest = before;
        if one == before {
            self.rest = ptr::null_mut();
            return;
        }
        // SAFETY: of the caller.
        let (one, before) = unsafe { (&*one, &*before) };
        let next = one.next.load(Ordering::Relaxed);
        before.next.store(next, Ordering::Relaxed);
    }

    /// Takes out all who read, the first among them, and links them in their order.
    ///
    /// # Safety
    /// As [`take_next`].
    unsafe fn take_readers(&mut self, last: *mut Waiter<P>) {
        let (mut before, mut at) = (last, self.first);
        loop {
            // SAFETY: of the caller, here and below.
            let waiter = unsafe { &*at };
            let next = waiter.next.load(Ordering::Relaxed);
            if waiter.writes() {
                before = at;
                self.rest = at;
            } else {
                // SAFETY: as above.
                unsafe { self.take_out(at, before) };
                // SAFETY: as above. The first names itself, which nobody reads.
                let taken = unsafe { &*self.last };
                taken.next.store(at, Ordering::Relaxed);
                self.last = at;
            }
            if at == last {
                return;
            }
            at = next;
        }
    }

    /// Wakes them.
    ///
    /// # Safety
    /// Nobody else has them.
    pub(super) unsafe fn wake(self) {
        let mut at = self.first;
        loop {
            // SAFETY: of the caller; it stays in place until it is woken.
            let waiter = unsafe { &*at };
            let next = waiter.next.load(Ordering::Relaxed);
            let asleep = &raw const waiter.asleep;
            // X13: pairs with X12. From here on the waiter may be gone.
            waiter.asleep.store(0, Ordering::Release);
            // SAFETY: it lies on the waiter's stack, which is mapped while its thread may run.
            unsafe { P::wake_at(asleep) };
            if at == self.last {
                return;
            }
            at = next;
        }
    }
}
