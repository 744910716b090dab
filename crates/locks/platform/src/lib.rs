//! Provides what a lock runs on (atomic words, CPU numbers, queue nodes, waiting, time), the
//! interface of every lock, and what goes around any of them.
//!
//! The algorithms of `locklab-locks` are generic over
//! [`Platform`](platform::Platform), so that the lock that is model-checked or
//! simulated is the lock that ships. Here are that interface and its real
//! worlds: hardware under a kernel or a program ([`native`], [`threads`]), and
//! the same with waiters that sleep ([`parking`]).
//!
//! A lock implements [`RawLock`](raw_lock::RawLock), which is unsafe and
//! protects no data. The rest is generic over it: data behind closures
//! ([`mutex`]) or guards ([`queue_mutex`], [`masked`]), a check for misuse
//! ([`checked`]), an unlock that is a call ([`outline`]).
//!
//! It must never know a lock: what is here serves all of them. Users depend on
//! `locklab-locks`, which has every item under its own paths.
//!
//! | Feature | |
//! |---|---|
//! | `std` (default) | the host [`threads::Threads`]: each thread is a CPU; [`queue_mutex`] |
//! | `portable-atomic` | targets without compare-and-swap; see that crate for how |
//! | `wfe` | AArch64: waits sleep until the line is written; needs an event stream |
#![no_std]

#[cfg(feature = "std")]
extern crate std;

pub mod checked;
#[cfg(all(feature = "wfe", target_arch = "aarch64", not(miri)))]
mod event;
pub mod held_locks;
pub mod line;
pub mod masked;
pub mod mutex;
pub mod native;
#[doc(hidden)]
pub mod numbers;
pub mod outline;
pub mod parking;
pub mod platform;
pub mod qnode;
#[cfg(feature = "std")]
pub mod queue_mutex;
pub mod raw_lock;
pub mod sleepers;
#[cfg(feature = "std")]
pub mod threads;
pub mod visible_reader;
