//! The interface of every lock, and what goes around any of them.
//!
//! A lock implements [`RawLock`](raw_lock::RawLock), which is unsafe and
//! protects no data. The rest is generic over it: data behind closures
//! ([`mutex`]) or guards ([`queue_mutex`], [`masked`]), a check for misuse
//! ([`checked`]), an unlock that is a call ([`outline`]).
//!
//! It must never know an algorithm, or a platform but by its interface. Users
//! depend on `locklab-locks`, which has every item under its own paths.
//!
//! | Feature | |
//! |---|---|
//! | `std` (default) | [`queue_mutex`], and [`checked`] for threads |
#![no_std]

#[cfg(feature = "std")]
extern crate std;

pub mod checked;
pub mod masked;
pub mod mutex;
pub mod outline;
#[cfg(feature = "std")]
pub mod queue_mutex;
pub mod raw_lock;
