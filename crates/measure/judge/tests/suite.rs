//! Tests of the judge, one program for all files: linking one takes a few seconds, and
//! its tests run in parallel. `cargo test --test suite FILE::` runs one file.

mod best;
mod calibration;
#[cfg(feature = "serde")]
mod json;
mod properties;
mod verdicts;
