#![doc = include_str!("../README.md")]
//!
//! Layout: [`Recorded`] wraps a raw lock; [`sync`] has the types of the standard library, and
//! `parking_lot` (with the feature of that name) those of that crate; `hooks` finds the
//! recorder, which `locklab record` loads into the program. Nothing here records by itself,
//! or changes how a lock waits.

mod hooks;
mod raw;
pub mod sync;

pub use raw::Recorded;

/// The types of the crate `parking_lot`, recorded.
#[cfg(feature = "parking_lot")]
pub mod parking_lot {
    use crate::Recorded;

    /// A mutex of parking_lot.
    pub type Mutex<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;
    /// The guard of a [`Mutex`].
    pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Recorded<parking_lot::RawMutex>, T>;
    /// A lock for readers and writers of parking_lot.
    pub type RwLock<T> = lock_api::RwLock<Recorded<parking_lot::RawRwLock>, T>;
    /// The guard of a reader.
    pub type RwLockReadGuard<'a, T> =
        lock_api::RwLockReadGuard<'a, Recorded<parking_lot::RawRwLock>, T>;
    /// The guard of a writer.
    pub type RwLockWriteGuard<'a, T> =
        lock_api::RwLockWriteGuard<'a, Recorded<parking_lot::RawRwLock>, T>;
}
