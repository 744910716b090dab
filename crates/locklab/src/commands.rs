//! One file a command: its arguments, what it calls, what it prints.
//!
//! Wiring only: nothing here measures, judges or words a verdict.

pub mod compare;
pub mod doctor;
pub mod footprint;
pub mod icache;
pub mod kernel;
pub mod locks;
pub mod machine;
pub mod matrix;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod schema;
pub mod screen;
pub mod sweep;
pub mod verify;
pub mod workload_program;
