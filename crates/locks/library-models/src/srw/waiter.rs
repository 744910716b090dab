//! The waiters of an `Srw`: a stack, each on its thread's own stack, with links
//! from the newest to the oldest that are there at once, and links back that come later.
//!
//! It must know neither the lock's word nor who may change the stack: callers say so.

use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use core::ptr;

/// The bits of a word that are no part of a waiter's address.
pub(super) const MARKS: usize = 15;

/// States of a waiter: it may go on, it looks at this word by itself, or it sleeps.
const WOKEN: u32 = 0;
const LOOKS: u32 = 1;
const SLEEPS: u32 = 2;

/// A thread that waits, in its place on the stack.
#[repr(C, align(64))]
pub(super) struct Waiter<P: Platform> {
    /// Who was the newest before.
    older: P::Ptr<Waiter<P>>,
    /// Who came next: the link back.
    newer: P::Ptr<Waiter<P>>,
    /// The oldest of all, or null. From the newest on, the first that is not null is right,
    /// and those who are older have their links back.
    oldest: P::Ptr<Waiter<P>>,
    /// How many readers hold the lock, if this is the oldest and they are several.
    pub(super) readers: P::Usize,
    writes: P::U32,
    state: P::U32,
}

/// Returns the address in a word of the lock.
pub(super) fn address(word: usize) -> usize {
    word & !MARKS
}

impl<P: Platform> Waiter<P> {
    pub(super) fn new(writes: bool) -> Self {
        Self {
            older: P::Ptr::new(ptr::null_mut()),
            newer: P::Ptr::new(ptr::null_mut()),
            oldest: P::Ptr::new(ptr::null_mut()),
            readers: P::Usize::new(0),
            writes: P::U32::new(u32::from(writes)),
            state: P::U32::new(WOKEN),
        }
    }

    /// Makes it ready to be the newest, above `older`, which is null if it is the first:
    /// then it counts the readers inside.
    pub(super) fn prepare(&self, older: *mut Self, readers: usize) {
        let oldest = match older.is_null() {
            true => ptr::from_ref(self).cast_mut(),
            false => ptr::null_mut(),
        };
        self.older.store(older, Ordering::Relaxed);
        self.oldest.store(oldest, Ordering::Relaxed);
        self.readers.store(readers, Ordering::Relaxed);
        self.state.store(LOOKS, Ordering::Relaxed);
    }

    pub(super) fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed) != 0
    }

    /// Returns once it is woken; looks so many times, with a pause in between, before it
    /// sleeps.
    pub(super) fn sleep(&self, looks: u32) {
        // V1: pairs with V4, as V2 and V3 do: who woke it is done with it.
        let patience = Patience::Reads(looks);
        let state = self.state.spin(Ordering::Acquire, patience, |state| {
            if state == WOKEN {
                Poll::Done
            } else {
                Poll::Relax(1)
            }
        });
        if state == WOKEN {
            return;
        }
        // V2: on failure as V1.
        let sleeps =
            self.state
                .compare_exchange(LOOKS, SLEEPS, Ordering::Relaxed, Ordering::Acquire);
        if sleeps.is_err() {
            return;
        }
        // V3: as V1.
        while self.state.load(Ordering::Acquire) != WOKEN {
            P::wait(&self.state, SLEEPS);
        }
    }
}

/// Returns the oldest.
///
/// # Safety
/// `newest` is a waiter whose stack nobody takes waiters out of.
pub(super) unsafe fn oldest<P: Platform>(newest: *mut Waiter<P>) -> *mut Waiter<P> {
    let mut at = newest;
    loop {
        // SAFETY: of the caller.
        let waiter = unsafe { &*at };
        let oldest = waiter.oldest.load(Ordering::Relaxed);
        if !oldest.is_null() {
            return oldest;
        }
        at = waiter.older.load(Ordering::Relaxed);
    }
}

/// Makes the links back, and returns the oldest.
///
/// # Safety
/// `newest` is the newest waiter of a stack that nobody else changes but by new ones.
pub(super) unsafe fn link<P: Platform>(newest: *mut Waiter<P>) -> *mut Waiter<P> {
    let mut at = newest;
    loop {
        // SAFETY: of the caller, here and below.
        let waiter = unsafe { &*at };
        let oldest = waiter.oldest.load(Ordering::Relaxed);
        if !oldest.is_null() {
            // SAFETY: as above.
            unsafe { &*newest }.oldest.store(oldest, Ordering::Relaxed);
            return oldest;
        }
        let older = waiter.older.load(Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { &*older }.newer.store(at, Ordering::Relaxed);
        at = older;
    }
}

/// Takes the oldest out, which is not the only one.
///
/// # Safety
/// As [`link`], which has returned `oldest`.
pub(super) unsafe fn take_out<P: Platform>(newest: *mut Waiter<P>, oldest: *mut Waiter<P>) {
    // SAFETY: of the caller.
    let (newest, oldest) = unsafe { (&*newest, &*oldest) };
    let next = oldest.newer.load(Ordering::Relaxed);
    newest.oldest.store(next, Ordering::Relaxed);
}

/// Wakes `oldest` and those who came after it up to `last`, which are in no stack any more.
///
/// # Safety
/// They wait, are linked, and nobody else has them.
pub(super) unsafe fn wake<P: Platform>(oldest: *mut Waiter<P>, last: *mut Waiter<P>) {
    let mut at = oldest;
    loop {
        // SAFETY: of the caller; it stays in place until it is woken.
        let waiter = unsafe { &*at };
        let newer = waiter.newer.load(Ordering::Relaxed);
        let state = &raw const waiter.state;
        // V4: pairs with V1, V2 and V3. From here on it may be gone.
        if waiter.state.swap(WOKEN, Ordering::Release) == SLEEPS {
            // SAFETY: it lies on the waiter's stack, which is mapped while its thread may run.
            unsafe { P::wake_at(state) };
        }
        if at == last {
            return;
        }
        at = newer;
    }
}
