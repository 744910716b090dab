//! The kernel lab: two kernels that differ in one thing, built, booted in
//! QEMU, given the same workload, and judged.
//!
//! A [`recipe`] says how a kernel is made: source, changes, configuration,
//! compiler. [`source`] and [`inline_change`] make its tree, `config` its
//! configuration, [`build`] its image, [`layout`] the same image in other
//! link orders. [`guest`] packs the first program and the workload's files,
//! [`boot`] runs QEMU, under KVM where `kvm` finds it, [`outcome`] is what came
//! of it. [`session`] pairs runs
//! by layout and seed, [`samples`] keeps them, [`check`] repeats one, [`metrics`] and the [`cells`] of a
//! matrix are judged, `report` says what was shown, and `published` puts the
//! published figures beside it.
//!
//! Where there is no KVM, counts are those of the i-cache model, and the same
//! image and seed give the same counts to the last digit. Nothing here must
//! change a source that it was given: changes go to copies in the cache.

pub mod arguments;
pub mod boot;
pub mod build;
pub mod cells;
pub mod check;
pub(crate) mod command;
pub(crate) mod config;
pub mod guest;
pub mod inline_change;
pub(crate) mod kvm;
pub mod layout;
pub mod metrics;
pub mod outcome;
pub(crate) mod published;
pub mod recipe;
pub(crate) mod report;
pub mod samples;
pub mod session;
pub mod source;
pub mod tools;
pub mod workload;
