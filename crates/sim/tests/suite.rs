//! Tests of the simulator, one program for all files: linking one takes a few
//! seconds, and its tests run in parallel. `cargo test --test suite FILE::`
//! runs one file.

mod broken_locks;
mod engine;
mod handoffs;
mod machine_files;
mod oracle;
mod published;
mod reports;
mod truth;
