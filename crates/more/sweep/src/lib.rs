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
//! All state is in one folder ([`Folder`]). Real machines ([`machines`]) and the
//! layouts of kernels are tasks in the same way; one executor for this machine
//! and one for a cluster carry out all of them.
//!
//! This crate has no daemon, no scheduler and no statistics of its own. It must
//! never present the simulator's figures as measured ones.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

mod chunk;
mod cluster;
mod collect;
mod comparison;
pub mod conduct;
mod estimate;
mod file;
mod folder;
mod kernels;
mod kinds;
mod local;
pub mod machines;
mod machines_report;
mod models;
mod over_threads;
mod own_locks;
mod pareto;
mod plan;
mod regime;
mod report;
mod shard;
mod simulator;
pub mod slurm;
mod summary;
mod task;
mod tool;

pub use file::{Exclusion, Kind, NativeFile, OneOrMore, Part, SweepFile, Threads, WorkloadFile};
pub use folder::{Folder, Status};
pub use kinds::Report;
pub use models::{Models, plan_of};
pub use plan::{Block, LockPair, Plan, Run};
pub use task::{Missing, Task};
