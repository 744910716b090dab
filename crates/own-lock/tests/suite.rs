//! Tests of locks of the user's own, one program for all files: linking one takes a few
//! seconds, and its tests run in parallel. `cargo test --test suite FILE::`
//! runs one file.

mod bad_input;
mod checked;
mod kernel;
mod twins;
