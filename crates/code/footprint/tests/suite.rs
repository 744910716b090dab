//! Tests of the footprint, one program for all files: linking one takes a few
//! seconds, and its tests run in parallel. `cargo test --test suite FILE::`
//! runs one file.

mod bad_input;
mod bloat_o_meter;
mod common;
mod hot_text;
mod inlined;
mod report;
