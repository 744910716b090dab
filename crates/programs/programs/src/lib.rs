//! Runs whole programs as a backend: baseline and experiment differ in a lock
//! under their mutexes, a build, an environment or a command, and run under
//! well-known workloads.
//!
//! ```text
//! experiment file, arguments -> Spec -> Programs (a Backend) -> lab
//! ```
//!
//! A workload ([`workloads`]) knows how a program is started and what a run of
//! it yields; [`launcher`] is the one way in which a program is started;
//! [`counters`] and [`icache`] count. Nothing here tosses a coin, stores
//! a sample, judges or prints.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

pub mod backend;
pub mod build;
pub mod built_in;
pub mod completed;
pub mod counters;
pub mod fault;
#[cfg(test)]
#[path = "../../../measure/harness/tests/common/golden.rs"]
mod golden;
pub mod icache;
pub mod launcher;
pub mod output;
pub mod prepared;
pub mod report;
pub mod screen;
pub mod settings;
pub mod spec;
pub mod subject;
pub mod workloads;

pub use backend::Programs;
pub use settings::Settings;
pub use spec::Spec;
pub use subject::{Inline, Subject};
