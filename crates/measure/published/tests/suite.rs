//! Tests of the published experiments, one program for all files: `cargo test
//! --test suite FILE::` runs one file.

mod published;
mod reports;
