//! Pointers of any type in one word of a world.
//!
//! A lock has pointers to nodes of its own type. A world that had an atomic for
//! each of these types would be compiled once for each lock; here the type is
//! gone before the world is asked. Nothing here decides what a pointer does.

use locklab_locks::platform::{Atomic, Ordering, Patience, Poll};
use std::marker::PhantomData;

/// A pointer to a `T`, in a word `W` of pointers without a type.
#[repr(transparent)]
pub struct Pointer<T, W>(W, PhantomData<fn() -> *mut T>);

impl<T, W> Pointer<T, W> {
    /// Returns the word that holds it.
    pub fn word(&self) -> &W {
        &self.0
    }
}

// SAFETY: as the word's own.
unsafe impl<T: 'static, W: Atomic<*mut ()>> Atomic<*mut T> for Pointer<T, W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self = Self(W::ZERO, PhantomData);

    fn new(value: *mut T) -> Self {
        Self(W::new(value.cast()), PhantomData)
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> *mut T {
        self.0.load(order).cast()
    }

    #[track_caller]
    fn store(&self, value: *mut T, order: Ordering) {
        self.0.store(value.cast(), order);
    }

    #[track_caller]
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        self.0.swap(value.cast(), order).cast()
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        let (current, new) = (current.cast(), new.cast());
        match self.0.compare_exchange(current, new, success, failure) {
            Ok(value) => Ok(value.cast()),
            Err(value) => Err(value.cast()),
        }
    }

    #[track_caller]
    fn spin(
        &self,
        order: Ordering,
        patience: Patience,
        mut poll: impl FnMut(*mut T) -> Poll,
    ) -> *mut T {
        let value = self.0.spin(order, patience, |value| poll(value.cast()));
        value.cast()
    }

    // It does what the default does, but under the caller's name.
    #[track_caller]
    fn spin_until(&self, order: Ordering, mut done: impl FnMut(*mut T) -> bool) -> *mut T {
        let value = self.0.spin_until(order, |value| done(value.cast()));
        value.cast()
    }
}
