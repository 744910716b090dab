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
//! Every algorithm is generic over the [`Platform`] that it runs on: real
//! atomics ([`Native`], in a kernel or a program), a model checker, or a
//! simulator. `no_std` without the feature `std`; nothing allocates.
//!
//! [`catalogue`] lists the locks with their size, fairness and paper.
#![no_std]

// Its examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "std")]
extern crate std;

pub use lock_api;

pub mod catalogue;
mod line;
mod lock_api_impl;
mod mutex;
mod native;
mod outline;
mod parking;
pub mod platform;
mod qnode;
mod raw;
#[cfg(feature = "std")]
mod threads;

mod anderson;
mod clh;
mod cna;
pub mod cohort;
mod fissile;
mod hemlock;
mod hmcs;
mod malthusian;
mod mcs;
mod mcs_k42;
mod mcs_timeout;
pub mod mplock;
mod qspinlock;
mod qspinlock_pv;
mod qspinlock_virt;
mod reciprocating;
mod rwlock;
mod tas;
mod ticket;
mod ticket_prop;
mod twa;
mod virt_spin;

pub use line::CacheLine;
pub use mutex::{Mutex, StackContext};
pub use native::{AtomicU32, Host, Native, NativePlatform, NoHost};
pub use outline::Outline;
pub use parking::{Bucket, NO_HEAVY_FENCE, Parking, ParkingHost, ParkingWorld, SPINS, Watched};
pub use platform::Platform;
pub use qnode::{MAX_CPUS, NESTING, QueueNode, QueueNodes};
pub use raw::{Fairness, Info, Overtakes, RawLock, TimedLock};
#[cfg(feature = "std")]
pub use threads::Threads;

pub use anderson::{Anderson, AndersonSlot};
pub use clh::{Clh, ClhHandle, ClhNode};
pub use cna::{Cna, CnaNode};
pub use cohort::{Cohort, CohortBoMcs, CohortTktTkt};
pub use fissile::Fissile;
pub use hemlock::{Hemlock, HemlockGrant};
pub use hmcs::{Hmcs, HmcsNode};
pub use malthusian::{Malthusian, MalthusianNode};
pub use mcs::{Mcs, McsNode};
pub use mcs_k42::McsK42;
pub use mcs_timeout::{McsTimeout, McsTimeoutNode};
pub use mplock::{BigLock, MplockAnderson, MplockClh, MplockMcs, MplockTicket, MplockTicketPadded};
pub use qspinlock::QSpinlock;
pub use qspinlock_pv::QSpinlockPv;
pub use qspinlock_virt::QSpinlockVirt;
pub use reciprocating::{Reciprocating, ReciprocatingElement};
pub use rwlock::RwQueued;
pub use tas::{Tas, Ttas};
pub use ticket::Ticket;
pub use ticket_prop::TicketProp;
pub use twa::Twa;
pub use virt_spin::{VirtSpin, VirtSpinBackoff, VirtSpinDelay};
