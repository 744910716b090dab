//! Provides what a lock runs on: atomic words, CPU numbers, queue nodes, waiting,
//! time.
//!
//! The algorithms of `locklab-locks` are generic over
//! [`Platform`](platform::Platform), so that the lock that is model-checked or
//! simulated is the lock that ships. Here are that interface and its real
//! worlds: hardware under a kernel or a program ([`native`], [`threads`]), and
//! the same with waiters that sleep ([`parking`]).
//!
//! It must never know a lock: what is here serves all of them. Users depend on
//! `locklab-locks`, which has every item under its own paths.
//!
//! | Feature | |
//! |---|---|
//! | `std` (default) | the host [`threads::Threads`]: each thread is a CPU |
//! | `portable-atomic` | targets without compare-and-swap; see that crate for how |
//! | `wfe` | AArch64: waits sleep until the line is written; needs an event stream |
#![no_std]

#[cfg(feature = "std")]
extern crate std;

#[cfg(all(feature = "wfe", target_arch = "aarch64", not(miri)))]
mod event;
pub mod held_locks;
pub mod line;
pub mod native;
#[doc(hidden)]
pub mod numbers;
pub mod parking;
pub mod platform;
pub mod qnode;
pub mod sleepers;
#[cfg(feature = "std")]
pub mod threads;
pub mod visible_reader;
