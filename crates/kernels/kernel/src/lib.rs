//! The backend of real kernels: two kernels that differ in one thing,
//! built, booted in QEMU and given the same workload.
//!
//! A [`recipe`] says how a kernel is made: source, changes, configuration, compiler.
//! [`source`] and [`inline_change`] make its tree, `config` its configuration,
//! [`build`] its image, [`layout`] the same image in other link orders. [`guest`]
//! packs the first program and the workload's files, [`boot`] runs QEMU, under KVM
//! where [`kvm`] finds it, [`outcome`] is the result. [`prepare()`] makes everything
//! that an experiment needs, and [`Kernels`] is the backend: a pair is one link
//! order and one seed. [`counts`] has the counts of a boot, with what a modelled
//! front end lost, and [`lock_profile`] says which locks were waited for meanwhile,
//! if asked. [`report`] has the sections that only kernels add to a report, and
//! [`reports`] the experiments that come with Locklab.
//!
//! Where there is no KVM, counts are those of the i-cache model, and the same
//! image and seed give the same counts to the last digit. Nothing here may
//! change a source that it was given: changes go to copies in the cache.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

mod backend;
pub mod boot;
pub mod build;
pub mod cache;
pub mod changes;
pub(crate) mod check;
pub(crate) mod config;
pub mod counts;
pub(crate) mod drivers;
mod front_end;
#[cfg(test)]
#[path = "../../../measure/harness/tests/common/golden.rs"]
mod golden;
pub mod guest;
mod guests;
pub mod inline_change;
mod kernel_build;
pub mod kvm;
pub mod layout;
pub mod lengths;
pub mod lock_profile;
pub mod lock_report;
pub mod making;
pub(crate) mod metrics;
pub mod module_file;
pub mod outcome;
mod place;
pub mod plan;
mod prepare;
mod ready;
pub mod recipe;
pub mod report;
pub mod reports;
pub mod settings;
pub mod source;
pub mod spec;
pub mod spinlock_matrix;
pub mod test_machine;
mod torture;
mod torture_modules;
pub mod typed;
pub mod workload;

pub use backend::{Kernels, profiled};
pub use guests::{GuestRun, Guests};
pub use making::{Kernel, made};
pub use plan::{Plan, equipped};
pub use prepare::{find_programs, prepare};
pub use ready::{ReadyCells, with_metrics};
pub use torture::{as_built, torture_in_qemu, torture_load, torture_on};
