//! An unmodified program on another lock: the meaning of lock names, the run
//! under the interposer, and the profile that the interposer leaves.
//!
//! This crate must never print: the streams belong to the program.

mod names;
mod profile;
mod program;
mod signals;
mod summary;
mod symbols;
mod wait;

pub use program::{Ended, Program, Ready};
pub use wait::Wait;
