//! The commands, one file each: the arguments, the calls and the output.
//!
//! They only connect parts: nothing here measures, judges or phrases a verdict.

pub mod advise;
pub mod compare;
pub mod doctor;
pub mod footprint;
pub mod frontend;
pub mod judge;
pub mod kernel;
pub mod locks;
pub mod machine;
pub mod matrix;
pub mod rank;
pub mod record;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod verify;
pub mod workload_program;
