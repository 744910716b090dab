//! Spinlocks and queue locks, each written once from its paper.
//!
//! ```
//! use locklab_locks::{Mcs, Mutex, QSpinlock, Ticket, lock_api};
//!
//! // A context-free lock behind an ordinary guard.
//! static COUNT: lock_api::Mutex<Ticket, u32> = lock_api::Mutex::new(0);
//! *COUNT.lock() += 1;
//!
//! // Four bytes, first come first served, each waiter on a line of its own.
//! static QUEUED: lock_api::Mutex<QSpinlock, u32> = lock_api::Mutex::new(0);
//! *QUEUED.lock() += 1;
//!
//! // A lock that needs a queue node keeps it on the stack of the caller.
//! static NODES: Mutex<u32, Mcs> = Mutex::new(Mcs::new(), 0);
//! NODES.with(|count| *count += 1);
//! ```
//!
//! # Which lock?
//!
//! | You have | Take | Because |
//! |---|---|---|
//! | a mutex of an ordinary program, with perhaps more threads than CPUs | `std::sync::Mutex`; of this crate [`FutexAdaptive`], [`Malthusian`], or any lock on [`Parking`] | a waiter that spins for a holder that is not running wastes its time slice |
//! | a kernel's spinlock, one word, first come first served | [`QSpinlock`] | 4 bytes; each queued waiter spins on its own line |
//! | few CPUs, or hardly any contention, first come first served | [`Ticket`] | 4 bytes, the shortest code |
//! | very many locks, hardly ever contended | [`Ttas`] | 1 byte ([`TtasWord`]: 4, and no slower back to back on Zen) |
//! | a virtual machine whose hypervisor does not help | [`VirtSpinBackoff`], [`QSpinlockVirt`] | a running vCPU makes progress; none waits for a vCPU that is not running |
//! | a virtual machine whose hypervisor does help | [`QSpinlockPv`] | waiters sleep and are kicked |
//! | one hot lock, many CPUs | [`Mcs`] | a handoff touches one line, whatever the number of waiters |
//! | the same on several NUMA nodes | [`QSpinlockCna`] (4 bytes, a kernel's), [`Cna`] (one word), [`Fissile`] (the caller supplies no node), [`Hmcs`] | the lock and its data stay within a NUMA node for a while |
//! | waiters that give up | [`McsTimeout`], [`McsTp`] | giving up never waits; the second also passes over waiters that are not running |
//! | code that may deadlock, and must go on | [`RqSpinlock`] | 4 bytes; an acquisition fails where it would hang |
//! | readers and writers | [`RwQueued`], [`PhaseFair`] | waiters in order; readers wait for one writer at most |
//! | hardly ever a writer | [`BravoPhaseFair`], [`Bravo`] around another | readers write no line that other readers use |
//! | the same, for one lock that all CPUs read all the time | [`RwPerCpu`] | a reader costs one fence; 64 bytes for each CPU |
//! | processes that share memory | [`Futex`], [`Ticket`], [`Ttas`], [`Anderson`], [`mplock`] | no pointers (`Info::shared_memory`) |
//! | one lock that its holder may acquire again | [`mplock`] | recursive; all levels released at once |
//!
//! Which lock is better under your contention is a matter of measurement: that
//! is what Locklab is for. Each type documents its paper, its size and its
//! fairness; [`catalogue`] has the same as data.
//!
//! # Interfaces
//!
//! - [`lock_api::Mutex`] with any context-free lock: guards,
//!   as usual. `unlock_fair` where the lock is first come, first served;
//!   `try_lock_for` where it has no queue. [`lock_api::RwLock`] with
//!   [`RwQueued`], [`PhaseFair`], [`Bravo`] and [`RwPerCpu`], downgrade included.
//! - [`Mutex`] with any lock except CLH, including those with a queue node:
//!   closures.
//! - [`QueueMutex`] with locks whose guards may be leaked: guards, and the
//!   nodes belong to each thread (needs `std`).
//! - [`Masked`] with any context-free lock: guards that remember
//!   whether interrupts or preemption were on. For kernels.
//! - [`Checked`] around a lock: panics where its holder acquires it again, a
//!   different CPU releases it, or locks are acquired out of order.
//! - [`RawLock`], unsafe, for everything else.
//! - [`Outline`] around a lock: its unlock is a call, one copy for the whole
//!   program, instead of being inlined at each call site.
//!
//! A lock whose `Info::touches_after_release` is set must not be freed by the
//! CPU that acquires it last while another's `unlock` has not returned.
//!
//! # Platforms
//!
//! Every algorithm is generic over the [`Platform`] that it runs on: real
//! atomics ([`Native`], in a kernel or a program), a model checker, or a
//! simulator. A kernel implements [`Host`]; a program uses [`Threads`].
//!
//! | Feature | |
//! |---|---|
//! | `std` (default) | the host [`Threads`]: each thread is a CPU |
//! | `portable-atomic` | targets without compare-and-swap; see that crate for how |
//! | `wfe` | AArch64: a wait without an end sleeps until the line is written; needs an event stream, which Linux runs |
//!
//! `no_std` without `std`; nothing allocates.
//!
//! # Versions
//!
//! Rust 1.88 or later; a later minor version may require a later Rust that is
//! at least six months old. Semantic versioning: documented behaviour stays
//! compatible within a minor version before 1.0. Sizes of locks and contexts
//! are documented and therefore part of it; memory orderings, numbers of spins
//! and other private constants are not.
#![no_std]

// Its examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// So is what must not compile.
#[cfg(doctest)]
#[doc = include_str!("../tests/does_not_compile.md")]
struct DoesNotCompile;

#[cfg(feature = "std")]
extern crate std;

pub use lock_api;

pub mod catalogue;
mod instant;
mod lock_api_impl;
mod raw;

// What the locks stand on, where their sources name it: modules of their own, so
// that no lock imports the root, which exports all of them.
mod mutex {
    pub(crate) use locklab_platform::mutex::*;
}
/// The machine that a lock runs on, as it sees it.
pub mod platform {
    #[doc(inline)]
    pub use locklab_platform::platform::*;
}
mod held_locks {
    pub(crate) use locklab_platform::held_locks::*;
}
mod line {
    pub(crate) use locklab_platform::line::*;
}
mod native {
    pub(crate) use locklab_platform::native::*;
}
mod qnode {
    pub(crate) use locklab_platform::qnode::*;
}
#[doc(no_inline)]
pub use platform::Platform;

mod anderson;
mod bravo;
mod clh;
mod cna;
pub mod cohort;
mod fissile;
mod futex;
mod hemlock;
mod hmcs;
mod malthusian;
mod mcs;
mod mcs_k42;
mod mcs_timeout;
pub mod mplock;
mod phase_fair;
mod qspinlock;
mod qspinlock_cna;
mod qspinlock_pv;
mod qspinlock_virt;
mod reciprocating;
mod rqspinlock;
mod rw_per_cpu;
mod rwlock;
mod tas;
mod ticket;
mod ticket_prop;
mod twa;
mod virt_spin;

pub use instant::Instant;

#[doc(hidden)]
pub use locklab_platform::numbers::Numbers;
#[cfg(feature = "std")]
#[doc(inline)]
pub use locklab_platform::queue_mutex::{QueueGuard, QueueMutex};
#[doc(hidden)]
pub use locklab_platform::sleepers::place_of;
#[cfg(feature = "std")]
#[doc(inline)]
pub use locklab_platform::threads::Threads;
#[doc(inline)]
pub use locklab_platform::{
    checked::{Checked, CheckedPlatform, HeldRanks},
    masked::{Mask, Masked, MaskedGuard},
    mutex::{LeakableGuard, Mutex, StackContext},
    outline::Outline,
    raw_lock::{Fairness, Info, Overtakes, RawLock, TimedLock},
};
#[doc(inline)]
pub use locklab_platform::{
    held_locks::{HELD_LOCKS, HeldLocks},
    line::CacheLine,
    native::{AtomicU32, Host, Native, NativePlatform, NoHost},
    parking::{Bucket, NO_HEAVY_FENCE, Parking, ParkingHost, ParkingWorld, SPINS, Watched},
    qnode::{MAX_CPUS, NESTING, QueueNode, QueueNodes},
    sleepers::Sleepers,
    visible_reader::VisibleReader,
};

pub use anderson::{Anderson, AndersonSlot};
pub use bravo::{Bravo, BravoPhaseFair};
pub use clh::{Clh, ClhHandle, ClhNode};
pub use cna::{Cna, CnaNode};
pub use cohort::{Cohort, CohortBoMcs, CohortTktTkt};
pub use fissile::Fissile;
pub use futex::{Futex, FutexAdaptive};
pub use hemlock::{Hemlock, HemlockGrant};
pub use hmcs::{Hmcs, HmcsNode};
pub use malthusian::{Malthusian, MalthusianNode};
pub use mcs::{Mcs, McsNode};
pub use mcs_k42::McsK42;
pub use mcs_timeout::{McsTimeout, McsTimeoutNode, McsTp};
pub use mplock::{BigLock, MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded};
pub use phase_fair::PhaseFair;
pub use qspinlock::QSpinlock;
pub use qspinlock_cna::QSpinlockCna;
pub use qspinlock_pv::QSpinlockPv;
pub use qspinlock_virt::QSpinlockVirt;
pub use reciprocating::{Reciprocating, ReciprocatingElement};
pub use rqspinlock::{AcquireError, RqSpinlock};
pub use rw_per_cpu::RwPerCpu;
pub use rwlock::RwQueued;
pub use tas::{Byte, Tas, TasWord, Ttas, TtasWord, Width, Word};
pub use ticket::Ticket;
pub use ticket_prop::TicketProp;
pub use twa::Twa;
pub use virt_spin::{VirtSpin, VirtSpinBackoff, VirtSpinDelay};
