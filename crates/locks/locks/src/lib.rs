//! Spinlocks and queue locks, each written once from its paper.
//!
//! ```
//! use locklab_locks::{Mcs, NodeMutex, QSpinlockMutex, TicketMutex};
//!
//! // A context-free lock behind an ordinary guard.
//! static COUNT: TicketMutex<u32> = TicketMutex::new(0);
//! *COUNT.lock() += 1;
//!
//! // Four bytes, first come first served, each waiter on a line of its own.
//! static QUEUED: QSpinlockMutex<u32> = QSpinlockMutex::new(0);
//! *QUEUED.lock() += 1;
//!
//! // A lock that needs a queue node keeps it on the stack of the caller.
//! static NODES: NodeMutex<Mcs, u32> = NodeMutex::new(Mcs::new(), 0);
//! NODES.with(|count| *count += 1);
//! ```
//!
//! # Which lock?
//!
//! | You have | Take | Because |
//! |---|---|---|
//! | a mutex of an ordinary program, with perhaps more threads than CPUs | `std::sync::Mutex`; of this crate [`FutexAdaptive`], [`Malthusian`](queue::Malthusian), or any lock on [`Parking`] | a waiter that spins for a holder that is not running wastes its time slice |
//! | a kernel's spinlock, one word, first come first served | [`QSpinlock`] | 4 bytes; each queued waiter spins on its own line |
//! | few CPUs, or hardly any contention, first come first served | [`Ticket`] | 4 bytes, the shortest code |
//! | very many locks, hardly ever contended | [`Ttas`](spin::Ttas) | 1 byte ([`TtasWord`](spin::TtasWord): 4, and no slower back to back on Zen) |
//! | a virtual machine whose hypervisor does not help | [`VirtSpinBackoff`](spin::VirtSpinBackoff), [`QSpinlockVirt`](kernel::QSpinlockVirt) | a running vCPU makes progress; none waits for a vCPU that is not running |
//! | a virtual machine whose hypervisor does help | [`QSpinlockPv`](kernel::QSpinlockPv) | waiters sleep and are kicked |
//! | one hot lock, many CPUs | [`Mcs`] | a handoff touches one line, whatever the number of waiters |
//! | the same on several NUMA nodes | [`QSpinlockCna`](kernel::QSpinlockCna) (4 bytes, a kernel's), [`Cna`](queue::Cna) (one word), [`Fissile`](spin::Fissile) (the caller supplies no node), [`Hmcs`](queue::Hmcs) | the lock and its data stay within a NUMA node for a while |
//! | waiters that give up | [`McsTimeout`](queue::McsTimeout), [`McsTp`](queue::McsTp) | giving up never waits; the second also passes over waiters that are not running |
//! | code that may deadlock, and must go on | [`RqSpinlock`] | 4 bytes; an acquisition fails where it would hang |
//! | readers and writers | [`RwQueued`], [`PhaseFair`] | waiters in order; readers wait for one writer at most |
//! | hardly ever a writer | [`BravoPhaseFair`](rw::BravoPhaseFair), [`Bravo`](rw::Bravo) around another | readers write no line that other readers use |
//! | the same, for one lock that all CPUs read all the time | [`RwPerCpu`](rw::RwPerCpu) | a reader costs one fence; 64 bytes for each CPU |
//! | processes that share memory | [`Futex`], [`Ticket`], [`Ttas`](spin::Ttas), [`Anderson`](queue::Anderson), [`mplock`] | no pointers (`Info::shared_memory`) |
//! | one lock that its holder may acquire again | [`mplock`] | recursive; all levels released at once |
//!
//! Which lock is better under your contention is a matter of measurement: that
//! is what Locklab is for. Each type documents its paper, its size and its
//! fairness; [`catalogue`] has the same as data.
//!
//! # Interfaces
//!
//! - `TicketMutex<T>`, `QSpinlockMutex<T>`, ... ([`spin`], [`kernel`]), which are [`Mutex`] with a
//!   context-free lock: guards, as usual. `unlock_fair` where the lock is first come, first served;
//!   `try_lock_for` where it has no queue. [`lock_api::RwLock`] with
//!   those of [`rw`], downgrade included.
//! - [`NodeMutex`] with any lock except CLH, including those with a queue node:
//!   closures.
//! - `McsMutex<T>`, ... ([`queue`]), which are [`QueueMutex`] with locks whose guards may be leaked: guards, and the
//!   nodes belong to each thread (needs `std`).
//! - [`Masked`](kernel::Masked) with any context-free lock: guards that remember
//!   whether interrupts or preemption were on. For kernels.
//! - [`Checked`](mutex::Checked) around a lock: panics where its holder acquires it again, a
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

#[doc(no_inline)]
pub use lock_api;

pub mod catalogue;
pub mod cohort;
pub mod host;
pub mod kernel;
pub mod mplock;
pub mod mutex;
pub mod queue;
pub mod rw;
pub mod spin;

// The names that most users need.
#[cfg(feature = "std")]
#[doc(inline)]
pub use host::Threads;
#[doc(no_inline)]
pub use host::{
    HeldLocks, Host, MAX_CPUS, NESTING, Native, NativePlatform, Parking, QueueNodes, Sleepers,
    VisibleReader,
};
#[doc(no_inline)]
pub use kernel::{BigLock, QSpinlock, QSpinlockMutex, RqSpinlock};
#[doc(inline)]
pub use locklab_platform::raw_lock::{Fairness, Info, Overtakes, RawLock, TimedLock};
#[cfg(feature = "std")]
#[doc(no_inline)]
pub use mutex::QueueMutex;
#[doc(no_inline)]
pub use mutex::{Instant, LeakableGuard, Mutex, MutexGuard, NodeMutex, Outline, StackContext};
#[cfg(feature = "std")]
#[doc(no_inline)]
pub use queue::McsMutex;
#[doc(no_inline)]
pub use queue::{Mcs, McsNode};
#[doc(no_inline)]
pub use rw::{PhaseFair, RwQueued};
#[doc(no_inline)]
pub use spin::{Futex, FutexAdaptive, Tas, Ticket, TicketMutex};

// The modules that the sources of the locks name: modules of their own, so
// that no lock imports the root, which exports many of them.
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

mod aliases;
mod anderson;
mod bravo;
mod clh;
mod cna;
mod fissile;
mod futex;
mod hemlock;
mod hmcs;
mod instant;
mod lock_api_impl;
mod malthusian;
mod mcs;
mod mcs_k42;
mod mcs_timeout;
mod phase_fair;
mod qspinlock;
mod qspinlock_cna;
mod qspinlock_pv;
mod qspinlock_virt;
mod raw;
mod reciprocating;
mod rqspinlock;
mod rw_per_cpu;
mod rwlock;
mod tas;
mod ticket;
mod ticket_prop;
mod twa;
mod virt_spin;
