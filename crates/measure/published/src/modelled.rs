//! The backend of modelled machines: two locks in a matrix, simulated.
//!
//! It has the question, runner, judge and report of hardware. A pair is one
//! seed for both locks, so its runs have no order. Simulated figures are
//! labelled as simulated, and the assumptions of the model are in every
//! report. This crate must never present a simulated figure as a measured one.

mod assumptions;
mod backend;
mod extras;
pub mod machines;
mod pool;
mod rank;
mod report;
pub mod score;
mod spec;

pub use backend::{Simulated, sample};
pub use extras::Extras;
pub use rank::Ranked;
pub use report::append;
pub use spec::{Spec, default_threads, with_vcpus};
