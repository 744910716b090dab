//! Published results on locks, simulated: ours beside theirs, and how far the
//! two agree.
//!
//! A simulator is believed for what it got right where the answer was known.
//! This crate has the known answers ([`Reference`]), the experiments that gave
//! them ([`Experiment`]) and the comparison ([`Reproduction`], [`Agreement`], shown by [`report`]).
//! [`kernels`] has the published figures of kernels that were built and booted, and
//! [`microbenchmarks`] those that a machine's file names.
//!
//! ```
//! let report = locklab_published::reproduce("libslock-uncontended", 1, 2, |_, _| {})?;
//! assert_eq!(report.agreement.figures, report.figures.len());
//! # Ok::<(), locklab_host::error::Error>(())
//! ```
//!
//! It must never change what the simulator computes: of a modelled machine an
//! experiment may set only figures of the published machine's data sheet, and
//! experiments of [`Group::EvaluatedOnly`] are simulated only to print a score.

mod agreement;
mod awn;
mod experiment;
mod files;
pub mod kernels;
mod lockhammer;
mod made;
pub mod microbenchmarks;
pub mod modelled;
mod own;
mod program_locks;
pub mod recorded;
mod reference;
pub mod report;
mod reproduction;
mod rule;
mod sleeping;
mod split;
mod validation;

pub use agreement::{Agreement, FLAT, MISS, Published, agreement, factor_error};
pub use experiment::{
    Direction, EXPERIMENTS, Experiment, ExperimentKind, FigureOf, LoopOf, MatrixOf, Measure, Side,
    Threads,
};
pub use files::File;
pub use kernels::KernelReference;
pub use own::{OwnReference, Time, log_error};
pub use reference::Reference;
pub use reproduction::{
    Miss, Question, Reproduced, Reproduction, Shape, reproduce, score, simulate_experiment,
};
pub use rule::Rule;
pub use split::Group;
pub use validation::Validation;
