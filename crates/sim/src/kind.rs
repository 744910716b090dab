//! What the engine must know of a lock's type, and no more.
//!
//! Everything around a lock is compiled once, and not once for each of them:
//! the type is known only where a lock or a context is placed, locked,
//! unlocked or looked at. An object is meant by its address in the arena.
//! Never owns one.

use crate::arena::Arena;
use crate::platform::{Sim, Word};
use locklab_locks::RawLock;
use locklab_locks::platform::{Atomic, Ordering};
use std::ptr::NonNull;

/// A type of locks, as its users see it.
pub(crate) trait LockKind {
    /// Lines that a lock takes, and those of a context.
    fn lines(&self) -> (usize, usize);

    /// Places a lock that nobody holds.
    fn place_lock(&self, arena: &Arena, label: String) -> NonNull<()>;

    /// Places a context of one thread for one lock.
    fn place_context(&self, arena: &Arena, label: String) -> NonNull<()>;

    /// What a lock wants to know once it is where it stays.
    ///
    /// # Safety
    /// Placed by [`LockKind::place_lock`] of this kind, in an arena that is
    /// still there.
    unsafe fn settle(&self, lock: NonNull<()>);

    /// Waits for the lock.
    ///
    /// # Safety
    /// Both were placed by this kind, in arenas that are still there; the
    /// context is this thread's own for this lock, and not in use.
    unsafe fn lock(&self, lock: NonNull<()>, context: NonNull<()>);

    /// Releases the lock.
    ///
    /// # Safety
    /// Held with this context.
    unsafe fn unlock(&self, lock: NonNull<()>, context: NonNull<()>);

    /// Whether it is held, as an assertion in a program looks.
    ///
    /// # Safety
    /// The same conditions as for [`LockKind::settle`].
    unsafe fn look(&self, lock: NonNull<()>) -> bool;
}

/// The kind of the locks of type `L`.
pub(crate) struct Kind<L> {
    look: fn(&L) -> bool,
}

impl<L> Kind<L> {
    /// Locks that have no better way to say whether they are held than their
    /// first word.
    pub(crate) fn by_word() -> Self {
        Self {
            look: |lock| {
                // SAFETY: a lock starts with one of the platform's words, and
                // those of the simulator are plain memory of one thread.
                let word = unsafe { &*std::ptr::from_ref(lock).cast::<Word<u32>>() };
                word.load(Ordering::Relaxed) != 0
            },
        }
    }

    /// Locks of which `look` knows whether they are held.
    pub(crate) fn by(look: fn(&L) -> bool) -> Self {
        Self { look }
    }
}

impl<L: RawLock<Sim>> LockKind for Kind<L> {
    fn lines(&self) -> (usize, usize) {
        (Arena::lines_for::<L>(), Arena::lines_for::<L::Ctx>())
    }

    fn place_lock(&self, arena: &Arena, label: String) -> NonNull<()> {
        NonNull::from(arena.place(label, L::default())).cast()
    }

    fn place_context(&self, arena: &Arena, label: String) -> NonNull<()> {
        NonNull::from(arena.place(label, L::Ctx::default())).cast()
    }

    unsafe fn settle(&self, lock: NonNull<()>) {
        // SAFETY: the caller's promise.
        unsafe { lock.cast::<L>().as_ref() }.settle();
    }

    unsafe fn lock(&self, lock: NonNull<()>, context: NonNull<()>) {
        // SAFETY: the caller's promise.
        unsafe { lock.cast::<L>().as_ref().lock(context.cast().as_ref()) }
    }

    unsafe fn unlock(&self, lock: NonNull<()>, context: NonNull<()>) {
        // SAFETY: the caller's promise.
        unsafe { lock.cast::<L>().as_ref().unlock(context.cast().as_ref()) }
    }

    unsafe fn look(&self, lock: NonNull<()>) -> bool {
        // SAFETY: the caller's promise.
        (self.look)(unsafe { lock.cast::<L>().as_ref() })
    }
}
