//! Tests of replayed recordings, one program for all files: linking one takes a few seconds, and
//! its tests run in parallel. `cargo test --test suite FILE::` runs one file.

mod common;
mod growth;
mod programs;
mod properties;
