//! Tests of the harness, one program for all files: linking one takes a few
//! seconds, and its tests run in parallel. `cargo test --test suite FILE::`
//! runs one file.

mod ci;
mod common;
mod rank;
mod recorded;
mod report;
mod runner;
mod store;
mod toy;
mod verdicts;
