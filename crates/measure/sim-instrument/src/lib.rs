//! The instrument of modelled machines: two locks in a matrix, simulated.
//!
//! The same question, runner, judge and report as on hardware. A pair is one
//! seed for both locks, so its runs have no order. Simulated figures are
//! labelled as simulated, and the assumptions of the model are in every
//! report. This crate must never present a simulated figure as a measured one.

mod additions;
mod assumptions;
mod beyond;
mod instrument;
pub mod machines;
mod pool;
pub mod published;
mod rank;
pub mod score;
mod spec;

pub use additions::REPORTER;
pub use assumptions::{CellBand, band, band_section};
pub use beyond::BEYOND;
pub use instrument::{Simulated, sample};
pub use rank::Ranked;
pub use spec::{Place, Spec, default_threads, with_vcpus};
