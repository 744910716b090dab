//! Locks that readers share.
//!
//! These locks spin; reader-writer locks that sleep are in the libraries that made them.

use crate::aliases::rw_locks;

#[doc(inline)]
pub use crate::bravo::{Bravo, BravoPhaseFair};
#[doc(inline)]
pub use crate::phase_fair::PhaseFair;
#[doc(inline)]
pub use crate::rw_per_cpu::RwPerCpu;
#[doc(inline)]
pub use crate::rwlock::RwQueued;

rw_locks! {
    BravoRwLock BravoRwLockReadGuard BravoRwLockWriteGuard BravoPhaseFair,
        "A reader hardly ever writes a line that others use; a writer looks for all of them.";
    PhaseFairRwLock PhaseFairRwLockReadGuard PhaseFairRwLockWriteGuard PhaseFair,
        "Readers and writers take turns: a reader waits for one writer at most.";
    PerCpuRwLock PerCpuRwLockReadGuard PerCpuRwLockWriteGuard RwPerCpu,
        "A reader costs one fence; the lock has 64 bytes for each CPU.";
    QueuedRwLock QueuedRwLockReadGuard QueuedRwLockWriteGuard RwQueued,
        "Readers and writers wait in one queue, in the order of arrival.";
}
