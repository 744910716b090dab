//! Tests of the command, one program for all files: linking one takes seconds
//! and tens of megabytes. `cargo test --test suite FILE::` runs one file.

mod chunks;
mod common;

mod advise;
mod book;
mod browser;
mod compare;
mod footprint_command;
mod frontend_command;
mod icache_command;
mod judge;
mod kernel;
mod kernel_build;
mod kernel_sources;
mod kernel_test_machine;
mod matrix;
mod options;
mod pages;
mod programs;
mod rank;
mod run;
mod settings;
mod simulated;
mod slurm;
mod start;
mod stored;
mod test_machine_stand_in;
mod user_lock;
mod verify_command;
mod workload;
mod workloads;
