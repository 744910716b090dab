//! The machine that Locklab runs on.
//!
//! CPUs and their topology, clocks, settings that change figures, processes,
//! signals, and errors with their exit codes: what every backend needs and
//! none should implement again. Must never measure a lock, store a figure or
//! print.

pub mod child;
pub mod clock;
pub mod cpu_use;
pub mod environment;
pub mod error;
pub mod interrupt;
pub mod libraries;
pub mod machine;
pub mod message;
pub mod process;
pub mod shell;
pub mod start;
pub mod topology;
