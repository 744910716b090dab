//! What tests of several files need.

pub(crate) mod cluster;
#[path = "../../../lab/tests/common/golden.rs"]
pub(crate) mod golden;
