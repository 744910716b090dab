//! What tests of several files need.

pub mod cluster;
pub mod golden;
