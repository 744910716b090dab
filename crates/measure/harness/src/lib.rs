//! The common part of every comparison, whatever is compared.
//!
//! ```text
//! arguments -> Backend -> runner -> store -> verdicts -> Document -> text, HTML, JSON
//! ```
//!
//! A backend (locks on hardware, the simulator, programs, kernels) defines
//! its cells and runs one side of one pair; everything else is here
//! and is the same for all of them. Nothing in this crate knows a lock, a
//! program or a kernel.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

pub mod backend;
pub mod chunk;
pub mod experiment;
pub mod file;
pub mod gate;
mod judged;
pub mod list;
pub mod matrix;
pub mod metric;
pub mod model;
mod pairs;
pub mod placement;
pub mod progress;
pub mod ranking;
pub mod regions;
pub mod report;
pub mod runner;
pub mod session;
pub mod settings;
pub mod store;
pub mod verdicts;
pub mod workload;

/// The version of this tool, as reports print it.
pub const VERSION: &str = concat!("locklab ", env!("CARGO_PKG_VERSION"));
