//! A lock of Locklab under an unmodified program.
//!
//! `LD_PRELOAD=liblocklab_preload.so LOCKLAB_LOCK=mcs PROGRAM` runs PROGRAM
//! with every private `pthread_mutex_t` and `pthread_spinlock_t` replaced by
//! that lock; `locklab run` sets the variables. Exported are the C library's
//! functions, without symbol versions, so that they answer to every version.
//!
//! How it fits: a lock of up to 8 bytes lives inside the `pthread_mutex_t`
//! (`mutex`), a larger one in a pool beside it (`side`). Queue nodes come
//! from a pool of the thread (`thread`) and are never unmapped. What glibc
//! alone can do (robust, process-shared and priority-protocol mutexes) stays
//! with glibc (`real`) and is counted.
//!
//! Nothing here may allocate by `malloc`, panic, or take a lock of the
//! program: any of these may be running on top of the very mutex that is
//! being taken.

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("the interposer knows the mutex of glibc on 64-bit Linux only");

mod alone;
mod choice;
mod cond;
mod exports;
mod fork;
mod futex;
mod gate;
mod host;
mod locking;
mod memory;
mod mutex;
mod plain;
mod real;
mod report;
mod side;
mod sleepers;
mod spin;
mod stack;
mod thread;
mod timed;
