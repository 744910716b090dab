//! The locks of `locklab-locks`, made from the same source by build.rs, with a
//! switch at each comparison, condition, constant, operator, field and
//! statement.
//!
//! While no switch is on, each does what its original does. The switch that is
//! on makes one change of the source, so that one build has every mutant.
//! Nothing here is for use: a lock with a switch on is broken.

#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    unreachable_pub,
    unused
)]

pub mod switch;

include!(concat!(env!("OUT_DIR"), "/locks.rs"));
