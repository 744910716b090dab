//! Tests of the cache model, one program for all files: linking one takes a few
//! seconds, and its tests run in parallel. `cargo test --test suite FILE::`
//! runs one file.

mod geometry;
mod oracle;
