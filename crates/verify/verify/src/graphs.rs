//! The world of the engine of execution graphs: its atomics as a platform of locks, and
//! what an execution has beside its lock. The models of [`crate::property`] run in it as in
//! loom's.
//!
//! It must know no model.

mod platform;
pub(crate) mod world;

pub(crate) use platform::{Graphs, in_journal};
