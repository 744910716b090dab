//! An unmodified program on another lock: which lock a name means, the run
//! behind the interposer, and what the interposer left.
//!
//! Must never print: the program's streams are its own.

mod names;
mod profile;
mod program;
mod signals;
mod summary;
mod symbols;
mod wait;

pub use program::{Ended, Program, Ready};
pub use wait::Wait;
