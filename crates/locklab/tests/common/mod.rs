//! What tests of several files need.

pub(crate) mod cluster;
pub(crate) mod golden;
