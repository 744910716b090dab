//! The atomic protocols of the interposer, apart from its locks.
//!
//! The interposer (`crates/programs/preload`) puts a lock under a program's
//! `pthread_mutex_t`. What it does with atomics beyond that lock is here,
//! generic over [`Platform`](locklab_locks::Platform) as the locks are, so that
//! the model checker (`crates/verify/verify`) runs the code that ships.
//!
//! - [`front`]: a word in front of a queue, which threads that run take;
//! - [`gate`]: `try_lock` for a lock that has none;
//! - [`condition`]: the waiters of a condition variable;
//! - [`publication`]: what is made once, and seen by all;
//! - [`slot`]: what its owner takes and any thread frees;
//! - [`guarded`]: the lock around the interposer's own tables.
//!
//! It must never know `pthread_*` objects, system calls or the process: those
//! are the interposer's.
#![no_std]

pub mod condition;
pub mod front;
pub mod gate;
pub mod guarded;
pub mod publication;
pub mod slot;
