//! Locks that kernels have, and guards that remember whether interrupts were on.
//!
//! Their queue nodes belong to CPUs: a kernel's [`Host`](crate::Host) has them, and in a program
//! each thread is a CPU.

use crate::aliases::mutexes;

#[doc(inline)]
pub use crate::mplock::{
    BigLock, MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded,
};
#[doc(inline)]
pub use crate::qspinlock::QSpinlock;
#[doc(inline)]
pub use crate::qspinlock_cna::QSpinlockCna;
#[doc(inline)]
pub use crate::qspinlock_pv::QSpinlockPv;
#[doc(inline)]
pub use crate::qspinlock_virt::QSpinlockVirt;
#[doc(inline)]
pub use crate::rqspinlock::{AcquireError, RqSpinlock};
#[doc(inline)]
pub use locklab_platform::masked::{Mask, Masked, MaskedGuard};

mutexes! {
    kernel:
    QSpinlockMutex QSpinlockMutexGuard QSpinlock,
        "Waiters spin in a queue, each on a line of its CPU; four bytes.";
    QSpinlockCnaMutex QSpinlockCnaMutexGuard QSpinlockCna,
        "Waiters spin in a queue that prefers the NUMA node of the holder; four bytes.";
    QSpinlockPvMutex QSpinlockPvMutexGuard QSpinlockPv,
        "Waiters spin in a queue, then sleep until they are kicked; four bytes.";
    QSpinlockVirtMutex QSpinlockVirtMutexGuard QSpinlockVirt,
        "Waiters spin in a queue, and without one in a virtual machine; four bytes.";
    RqSpinlockMutex RqSpinlockMutexGuard RqSpinlock,
        "Waiters spin in a queue; `RqSpinlock::lock_or_fail` returns where it would hang.";
}
