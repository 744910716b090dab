//! A lock of Locklab under an unmodified program.
//!
//! `LD_PRELOAD=liblocklab_preload.so LOCKLAB_LOCK=mcs PROGRAM` runs PROGRAM
//! with every private `pthread_mutex_t` and `pthread_spinlock_t` replaced by
//! that lock, and every private `pthread_rwlock_t` by `LOCKLAB_RWLOCK` or, if it
//! has readers, by that lock too; `locklab run` sets the variables. It exports the C library's
//! functions, without symbol versions, so that they match every version.
//!
//! Layout: a lock of up to 8 bytes lives inside the `pthread_mutex_t`
//! (`mutex`), a larger one in a pool beside it (`side`). Queue nodes come
//! from a pool of the thread (`thread`) and are never unmapped. The features
//! that glibc alone provides (robust, process-shared and priority-protocol
//! mutexes) stay with glibc (`real`) and are counted.
//!
//! What it does with atomics beyond the locks (the word in front of a queue, the gate of `try_lock`, the
//! waiters of a condition variable, publication) is in
//! `locklab_pthread_protocols`, which the model checker runs too.
//!
//! Nothing here may allocate by `malloc`, panic, or acquire a lock of the
//! program: any of these may in turn use the very mutex that is
//! being acquired.

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("the interposer knows the mutex of glibc on 64-bit Linux only");

mod alone;
mod c11;
mod choice;
mod chosen;
mod cond;
mod deadline;
mod exports;
mod fork;
mod fronted;
mod futex;
mod generation;
mod host;
mod locking;
mod memory;
mod mutex;
mod operations;
mod own;
mod plain;
mod process;
mod reads;
mod real;
mod report;
mod rwlock;
mod rwlock_functions;
mod shared;
mod short;
mod side;
mod site;
mod sleep;
mod spin;
mod stack;
mod thread;
mod timed;
