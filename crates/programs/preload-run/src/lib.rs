//! Runs an unmodified program on another lock: knows what the names of locks mean,
//! runs it under the interposer, and reads the profile that the interposer leaves. It
//! also records a program on its own locks.
//!
//! This crate must never print: the streams belong to the program.

mod client;
mod go_profile;
#[cfg(test)]
#[path = "../../../measure/harness/tests/common/golden.rs"]
mod golden;
mod java_profile;
mod kernel_table;
mod names;
mod not_loaded;
mod perf_recording;
mod profile;
mod program;
mod recorded;
mod recording;
mod runtime_profile;
mod runtimes;
pub mod signals;
mod summary;
mod symbols;
mod unrecorded;
mod wait;
mod windows;

pub use client::Client;
pub use go_profile::GoProfile;
pub use java_profile::JavaProfile;
pub use kernel_table::KernelTable;
pub use perf_recording::FromPerf;
pub use program::{Ended, Program, Ready, exit_number};
pub use recorded::Recorded;
pub use recording::{ReadyToRecord, Recording, SYSTEM_START};
pub use runtimes::{Runtime, Waiter, found};
pub use symbols::{Call, Symbols, is_wrapper};
pub use unrecorded::{Judged, judged};
pub use wait::Wait;
pub use windows::{gap, in_windows};
