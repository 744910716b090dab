//! Plain memory of a test, whose accesses are checked for data races.

use crate::event::Place;
use crate::model::{self, Location};

/// A cell that threads share and must not access at the same time, as loom's.
pub struct UnsafeCell<T> {
    location: Location,
    value: std::cell::UnsafeCell<T>,
}

// SAFETY: all threads of a test are coroutines of one thread, and an access that races
// with another is reported.
unsafe impl<T: Send> Sync for UnsafeCell<T> {}

impl<T> UnsafeCell<T> {
    /// Returns a cell with this value.
    #[track_caller]
    pub fn new(value: T) -> Self {
        let location = Location::new(1);
        model::create(location, 0, Place::here());
        Self {
            location,
            value: std::cell::UnsafeCell::new(value),
        }
    }

    /// Reads through a pointer, which must not be used afterwards.
    #[track_caller]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        model::read(self.location, Place::here());
        read(self.value.get())
    }

    /// Writes through a pointer, which must not be used afterwards.
    #[track_caller]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        model::write(self.location, Place::here());
        write(self.value.get())
    }
}
