//! Tests of the project itself, one program for all files: linking one takes a few seconds, and
//! its tests run in parallel. `cargo test --test suite FILE::` runs one file.

mod budget;
mod ci;
mod docs;
mod modules;
mod path;
mod recipes;
mod source;
mod touched;
