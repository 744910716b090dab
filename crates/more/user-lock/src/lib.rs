//! Runs a user's own lock in three worlds, from one C or C++ file or from Rust.
//!
//! ```no_run
//! use locklab_user_lock::UserLock;
//! use locklab_sim::{Machine, Scenario, Workload};
//!
//! let lock = UserLock::named("./mylock.c", &[])?.expect("a path is no name of the catalogue");
//! let machine = Machine::builtin("xeon-8380-2s").unwrap();
//! let work = Workload::Matrix { critical: 4, non_critical: 32 };
//! let outcome = lock.simulate(&Scenario::new(machine, "mylock.c", work, 16))?.outcome;
//! # Ok::<(), locklab_host::error::Error>(())
//! ```
//!
//! The file is compiled with `-fsanitize=thread` and Locklab's functions in
//! place of libtsan's, so that every access is an event of the simulator or a
//! step of the model checker; and once more without, for this machine's CPUs.
//! In a modelled world it always runs in a child process.

mod compile;
mod crash;
mod explain;
mod folders;
mod inspect;
mod isolate;
pub mod kernel;
mod library;
mod lines;
mod memory;
mod mutate;
mod native;
mod own_test;
mod repeat;
mod rust_lock;
mod simulate;
mod source;
mod template;
mod user_lock;

pub use folders::remove_folders;
pub use inspect::Facts;
pub use native::NativeLibrary;
pub use own_test::{OwnTest, TestLimits, TestOutcome, TestResult};
pub use rust_lock::{bring, registered, registered_candidate};
pub use source::{KernelLock, Source};
pub use template::{check_template, write_template};
pub use user_lock::UserLock;

/// The header that a lock's file includes.
pub const HEADER: &str = include_str!("../c/locklab_lock.h");
