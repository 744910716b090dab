//! Tests of the simulator, one program for all files: linking one takes a few seconds, and
//! its tests run in parallel. `cargo test --test suite FILE::` runs one file.

mod broken_locks;
mod engine;
mod handoffs;
mod libraries;
mod machine_files;
mod mixes;
mod oracle;
mod programs;
mod replay;
mod systems;
mod truth;
mod virtual_machines;
