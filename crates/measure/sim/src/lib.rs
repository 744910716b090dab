//! Locks on modelled machines, of 1 to 1024 CPUs.
//!
//! The real lock code runs on simulated CPUs, each a coroutine; every atomic
//! access is an event on a modelled machine ([`Machine`]) with a coherence
//! directory, sockets, sibling threads, store buffers and a hypervisor.
//!
//! ```
//! use locklab_sim::{Machine, Scenario, Workload, run};
//!
//! let machine = Machine::builtin("xeon-8380-2s").unwrap();
//! let workload = Workload::Matrix { critical: 4, non_critical: 32 };
//! let outcome = run(&Scenario::new(machine, "mcs", workload, 16))?;
//! assert_eq!(outcome.acquisitions, 10_000);
//! assert!(outcome.jain > 0.99);
//! # Ok::<(), locklab_sim::SimError>(())
//! ```
//!
//! A simulation is a model, not a measurement: its figures hold for the
//! machine file's assumptions, whose bands are swept by [`band`]. This crate
//! must never read a published result of a lock: `locklab-published` compares
//! the two.

mod access;
mod ahead;
mod arena;
pub mod band;
mod barging;
mod barrier;
mod batch;
mod blocked;
pub mod by_address;
mod check;
mod coherence;
mod convergence;
mod coroutine;
mod costs;
mod counting;
mod counts;
mod cpu;
mod directory;
mod distance;
mod drain;
mod engine;
mod error;
mod event;
mod followers;
mod foreign;
mod futex_queue;
mod hypervisor;
mod ideal;
mod kind;
mod latency_rule;
mod libraries;
mod line;
mod machine;
mod machine_file;
mod memory;
mod metrics;
pub mod microbench;
mod outcome;
mod own_stores;
mod parking;
mod places;
mod platform;
mod play;
mod region;
mod repeats;
mod replay;
mod requests;
mod rng;
mod run;
mod run_queues;
mod scenario;
mod scheduler;
mod simulate;
mod sleepers;
mod spin;
mod stack;
mod store_buffer;
mod topology;
mod trace;
mod watchdog;
mod workload;

pub use batch::run_all;
pub use counting::Counting;
pub use distance::Distance;
pub use error::{CpuState, SimError, StuckReport};
pub use foreign::{Foreign, can_be_simulated, register};
pub use libraries::{ParkingLot, Pthread, library_locks};
pub use locklab_library_models::catalogue::current_name;
/// Says what the turns of [`Mixed`] do.
pub use locklab_workload as turns;
pub use machine::{
    Arbitration, Arch, BUILTIN, FIGURES, Figure, FigureKey, FigureKind, Machine, Origin,
};
pub use machine_file::CHECKED;
pub use outcome::{ByUse, Latency, Outcome, WaitsOf};
pub use platform::{Sim, Word};
pub use replay::{MOST_LOCKS, Replay, Replayed, Subject, Waiters, replay};
pub use scenario::{MOST_THREADS, Scenario, Simulation, Stop};
pub use simulate::{run, simulate, simulate_lock, simulate_outside};
pub use topology::Placement;
pub use workload::{Counter, Fstat, Loop, Mixed, Workload, XfsCreate};
