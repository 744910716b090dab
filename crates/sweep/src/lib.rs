//! Sweeps: every lock against another, on every machine, over cells, seeds and
//! bands; on this machine's cores, or as one job array of a Slurm cluster.
//!
//! ```text
//! SweepFile -> Plan -> chunks -> a shard each -> collect -> Summary -> Document
//! ```
//!
//! Every run of the product has a number. A chunk is a range of these numbers;
//! a core of this machine, or a task of a cluster, carries it out into a shard,
//! which is a store of the laboratory. The result of a run depends on its
//! number alone, so the merged store is the same wherever the runs were made.
//! All state is in one folder ([`Folder`]). Real machines ([`hardware`]) and the
//! layouts of kernels ([`KernelSweep`]) are tasks in the same way.
//!
//! This crate has no daemon, no scheduler and no statistics of its own. It must
//! never present the simulator's figures as measured ones.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

mod cluster;
mod collect;
mod comparison;
pub mod conduct;
mod estimate;
mod file;
mod fleet_report;
mod folder;
pub mod hardware;
mod kernels;
mod local;
mod own_locks;
mod pareto;
mod plan;
mod regime;
mod report;
mod shard;
mod simulator;
pub mod slurm;
mod state;
mod summary;
mod task;
mod tool;

pub use collect::{Collected, Figures, Missing, collect};
pub use estimate::on_one_core;
pub use file::{
    Exclusion, Kind, NativeFile, OneOrMore, Part, SweepFile, Threads, Work, WorkloadFile,
};
pub use folder::{Decided, Folder, Status, plan_of};
pub use kernels::{CollectedKernels, KernelOptions, KernelSweep};
pub use local::{Local, run as run_here};
pub use own_locks::KeptLock;
pub use plan::{Block, LockPair, Plan, Run};
pub use regime::Regime;
pub use summary::{OfLock, OfRegime, Spread, Summary};
pub use task::{Ended, run_chunk};
