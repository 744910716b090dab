//! The operations of a lock's type that the engine needs, and no more.
//!
//! Everything around a lock is compiled once, and not once for each of them:
//! the type is known only where a lock or a context is placed, locked,
//! unlocked or queried. An object is identified by its address in the arena.
//! This module never owns one.

use crate::arena::Arena;
use crate::platform::{Sim, Word};
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{HeldLocks, QueueNodes, RawLock, VisibleReader};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A type of locks, as seen by its users.
pub(crate) trait LockKind {
    /// Returns the number of lines of a lock, and of a context.
    fn lines(&self) -> (usize, usize);

    /// Returns whether it keeps the table of the locks that each CPU holds.
    fn held_locks(&self) -> bool;

    /// Places a lock that nobody holds.
    fn place_lock(&self, arena: &Arena, label: String) -> NonNull<()>;

    /// Places a context of one thread for one lock.
    fn place_context(&self, arena: &Arena, label: String) -> NonNull<()>;

    /// Returns the number of lines of what a thread has for all locks: queue nodes, the table
    /// of the locks that it holds, its entry among the visible readers.
    fn lines_of_thread(&self) -> [usize; 3];

    /// Places the queue nodes of a thread.
    fn place_nodes(&self, arena: &Arena, label: String) -> *const ();

    /// Places the table of the locks that a thread holds.
    fn place_held(&self, arena: &Arena, label: String) -> *const ();

    /// Places the entry of a thread among the visible readers.
    fn place_reader(&self, arena: &Arena, label: String) -> *const ();

    /// Returns whether its waiters may sleep by themselves.
    fn parks(&self) -> bool;

    /// Notifies a lock that it is in its final place.
    ///
    /// # Safety
    /// The lock was placed by [`LockKind::place_lock`] of this kind, in an
    /// arena that still exists.
    unsafe fn settle(&self, lock: NonNull<()>);

    /// Waits for the lock.
    ///
    /// # Safety
    /// Both were placed by this kind, in arenas that still exist; the
    /// context is this thread's own for this lock, and not in use.
    unsafe fn lock(&self, lock: NonNull<()>, context: NonNull<()>);

    /// Releases the lock.
    ///
    /// # Safety
    /// The lock is held with this context.
    unsafe fn unlock(&self, lock: NonNull<()>, context: NonNull<()>);

    /// Returns whether several readers may hold it at once.
    fn readers_share(&self) -> bool;

    /// Waits for the lock, to read.
    ///
    /// # Safety
    /// As [`LockKind::lock`].
    unsafe fn read_lock(&self, lock: NonNull<()>, context: NonNull<()>);

    /// Releases a reader.
    ///
    /// # Safety
    /// The lock is held for reading with this context.
    unsafe fn read_unlock(&self, lock: NonNull<()>, context: NonNull<()>);

    /// Returns whether it is held, as an assertion in a program would check.
    ///
    /// # Safety
    /// The same conditions as for [`LockKind::settle`].
    unsafe fn is_held(&self, lock: NonNull<()>) -> bool;
}

/// The kind of the locks of type `L` on the platform `P`.
pub(crate) struct Kind<L, P = Sim> {
    is_held: fn(&L) -> bool,
    platform: PhantomData<P>,
}

impl<L, P> Kind<L, P> {
    /// Returns the kind of locks that can tell whether they are held only by their
    /// first word.
    pub(crate) fn by_word() -> Self {
        Self {
            is_held: |lock| {
                // SAFETY: a lock starts with one of the platform's words, and
                // those of the simulator are plain memory of one thread.
                let word = unsafe { &*std::ptr::from_ref(lock).cast::<Word<u32>>() };
                word.load(Ordering::Relaxed) != 0
            },
            platform: PhantomData,
        }
    }

    /// Returns the kind of locks for which `is_held` returns whether they are held.
    pub(crate) fn by(is_held: fn(&L) -> bool) -> Self {
        Self {
            is_held,
            platform: PhantomData,
        }
    }
}

/// Places a new object. Apart from [`Kind`], because what a thread has for all locks is
/// compiled once then, and not once for each lock.
fn place_default<T: Default>(arena: &Arena, label: String) -> NonNull<()> {
    NonNull::from(arena.place(label, T::default())).cast()
}

impl<P: Platform, L: RawLock<P>> LockKind for Kind<L, P> {
    fn lines(&self) -> (usize, usize) {
        (Arena::lines_for::<L>(), Arena::lines_for::<L::Ctx>())
    }

    fn held_locks(&self) -> bool {
        L::INFO.held_locks
    }

    fn place_lock(&self, arena: &Arena, label: String) -> NonNull<()> {
        place_default::<L>(arena, label)
    }

    fn place_context(&self, arena: &Arena, label: String) -> NonNull<()> {
        place_default::<L::Ctx>(arena, label)
    }

    fn lines_of_thread(&self) -> [usize; 3] {
        [
            Arena::lines_for::<QueueNodes<P>>(),
            Arena::lines_for::<HeldLocks<P>>(),
            Arena::lines_for::<VisibleReader<P>>(),
        ]
    }

    fn place_nodes(&self, arena: &Arena, label: String) -> *const () {
        place_default::<QueueNodes<P>>(arena, label).as_ptr()
    }

    fn place_held(&self, arena: &Arena, label: String) -> *const () {
        place_default::<HeldLocks<P>>(arena, label).as_ptr()
    }

    fn place_reader(&self, arena: &Arena, label: String) -> *const () {
        place_default::<VisibleReader<P>>(arena, label).as_ptr()
    }

    fn parks(&self) -> bool {
        L::INFO.parks
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

    fn readers_share(&self) -> bool {
        L::INFO.readers_share
    }

    unsafe fn read_lock(&self, lock: NonNull<()>, context: NonNull<()>) {
        // SAFETY: the caller's promise.
        unsafe { lock.cast::<L>().as_ref().read_lock(context.cast().as_ref()) }
    }

    unsafe fn read_unlock(&self, lock: NonNull<()>, context: NonNull<()>) {
        // SAFETY: the caller's promise.
        unsafe {
            lock.cast::<L>()
                .as_ref()
                .read_unlock(context.cast().as_ref())
        }
    }

    unsafe fn is_held(&self, lock: NonNull<()>) -> bool {
        // SAFETY: the caller's promise.
        (self.is_held)(unsafe { lock.cast::<L>().as_ref() })
    }
}
