//! The locks for C and C++: `liblocklab_c` and `locklab.h`.
//!
//! Two interfaces. `ticket`, `qspinlock` and `mcs` have functions of their
//! own, and `locklab_inline.h` has their fast paths, so that a caller chooses
//! at each call site whether a lock is inlined; the slow paths are here
//! either way. Every other lock is reached by name, through a table of
//! functions.
//!
//! Nothing here is an algorithm: all of them are in `locklab-locks`.
//! Nothing here allocates. Without the feature `std` the library is
//! freestanding, and the embedder (a kernel) is the host: see `host.rs`.
#![cfg_attr(not(feature = "std"), no_std)]
#![allow(non_camel_case_types)]

mod by_name;
mod host;
mod typed;

pub use by_name::{
    locklab_at, locklab_count, locklab_find, locklab_now, locklab_type, locklab_version,
};
#[cfg(not(feature = "std"))]
pub use host::{locklab_host, locklab_queue_nodes, locklab_set_host};
pub use typed::*;
