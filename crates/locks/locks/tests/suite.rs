//! Tests of the locks, one program for all files that can run beside each
//! other. `cargo test --test suite FILE::` runs one file.

mod common;

mod aliasing;
mod assembly;
mod guards;
mod interface;
mod misuse;
mod no_std;
mod numa;
mod rqspinlock;
mod rust_kernel;
mod stress;
mod timed_and_shared;
mod words;
