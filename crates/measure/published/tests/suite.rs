//! Tests of the published experiments, one program for all files: `cargo test
//! --test suite FILE::` runs one file.

mod fixed_work;
mod keys;
mod published;
mod reports;
mod small_cores;
