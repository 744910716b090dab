//! Holds what tests of several files need.

pub(crate) mod cluster;
#[path = "../../../crates/measure/harness/tests/common/golden.rs"]
pub(crate) mod golden;
