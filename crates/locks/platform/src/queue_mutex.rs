//! Data behind a queue lock, with guards; the nodes are kept by each thread.
//!
//! [`NodeMutex`](crate::mutex::NodeMutex) keeps a node on the stack of a closure; a guard cannot,
//! because it may move or be leaked while others use its node. Here nodes
//! are allocated once, and each thread keeps those that it has used. A
//! leaked guard leaks its node.

use crate::mutex::LeakableGuard;
use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::raw_lock::RawLock;
use core::any::{Any, TypeId};
use core::cell::{RefCell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::boxed::Box;
use std::thread_local;
use std::vec::Vec;

thread_local! {
    /// Idle nodes of this thread, of each type that it has used.
    static IDLE: RefCell<Vec<(TypeId, Box<dyn Any>)>> = const { RefCell::new(Vec::new()) };
}

/// Takes an idle node of this thread, or allocates one. It leaves its box for
/// as long as it is used: a box that moves claims to be the only way to its
/// contents, and others reach a node that is in a queue.
fn take<C: Default + 'static>() -> NonNull<C> {
    let kept = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        let at = idle.iter().rposition(|(id, _)| *id == TypeId::of::<C>())?;
        Some(idle.swap_remove(at).1)
    });
    let node: Box<C> = match kept {
        Ok(Some(node)) => node.downcast().expect("kept by its type"),
        // None kept, or the thread is past its destructors.
        _ => Box::default(),
    };
    NonNull::from(Box::leak(node))
}

/// Keeps a node for the next acquisition of this thread.
///
/// # Safety
/// It comes from [`take`], and is in no queue.
unsafe fn keep<C: 'static>(node: NonNull<C>) {
    // SAFETY: leaked by `take`, and nobody else uses it any more.
    let node = unsafe { Box::from_raw(node.as_ptr()) };
    let _ = IDLE.try_with(|idle| idle.borrow_mut().push((TypeId::of::<C>(), node)));
}

/// A value behind a queue lock. It is [`NodeMutex`](crate::mutex::NodeMutex) with guards; it needs
/// the feature `std`, and allocates a node for each lock of one type that a
/// thread holds at once.
pub struct QueueMutex<L, T: ?Sized, P = NativePlatform> {
    platform: PhantomData<fn() -> P>,
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value.
unsafe impl<T: ?Sized + Send, L: Sync, P> Sync for QueueMutex<L, T, P> {}
// SAFETY: a free lock may move to another thread with its value.
unsafe impl<T: ?Sized + Send, L: Send, P> Send for QueueMutex<L, T, P> {}

impl<T, L, P> QueueMutex<L, T, P> {
    /// Makes a free lock around `value`.
    pub const fn new(lock: L, value: T) -> Self {
        Self {
            platform: PhantomData,
            lock,
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value, at the end of the lock's life.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, P: Platform, L: RawLock<P> + LeakableGuard> QueueMutex<L, T, P> {
    /// Acquires the lock.
    #[inline]
    pub fn lock(&self) -> QueueGuard<'_, L, T, P> {
        const { crate::mutex::admits_one_guard::<P, L>() };
        let node = take::<L::Ctx>();
        // SAFETY: the node stays on the heap until the guard has released the
        // lock, and for ever if the guard is leaked. Until then the lock is
        // borrowed; once leaked, it stays held, and may move.
        unsafe { self.lock.lock(node.as_ref()) };
        QueueGuard { of: self, node }
    }

    /// Acquires if that needs no waiting.
    #[inline]
    pub fn try_lock(&self) -> Option<QueueGuard<'_, L, T, P>> {
        const { crate::mutex::admits_one_guard::<P, L>() };
        let node = take::<L::Ctx>();
        // SAFETY: as in `lock`.
        if unsafe { self.lock.try_lock(node.as_ref()) } {
            Some(QueueGuard { of: self, node })
        } else {
            // SAFETY: taken above; an attempt that failed uses it no more.
            unsafe { keep(node) };
            None
        }
    }

    /// Works as [`RawLock::is_locked`].
    pub fn is_locked(&self) -> Option<bool> {
        self.lock.is_locked()
    }
}

/// Holds a [`QueueMutex`].
#[must_use = "the lock is released when the guard is dropped"]
pub struct QueueGuard<'a, L: RawLock<P> + LeakableGuard, T: ?Sized, P: Platform = NativePlatform> {
    of: &'a QueueMutex<L, T, P>,
    /// A pointer, which makes the guard not `Send`: the node goes back to this
    /// thread.
    node: NonNull<L::Ctx>,
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<T: ?Sized + Sync, P: Platform, L: RawLock<P> + LeakableGuard> Sync
    for QueueGuard<'_, L, T, P>
{
}

impl<T: ?Sized, P: Platform, L: RawLock<P> + LeakableGuard> Deref for QueueGuard<'_, L, T, P> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: we hold the lock.
        unsafe { &*self.of.value.get() }
    }
}

impl<T: ?Sized, P: Platform, L: RawLock<P> + LeakableGuard> DerefMut for QueueGuard<'_, L, T, P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we hold the lock.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T: ?Sized, P: Platform, L: RawLock<P> + LeakableGuard> Drop for QueueGuard<'_, L, T, P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: held since the guard was made, with this node, which the lock
        // uses no more once it is released (`StackContext`).
        unsafe {
            self.of.lock.unlock(self.node.as_ref());
            keep(self.node);
        }
    }
}
