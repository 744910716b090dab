//! What threads of a test share, used as in `std`.

pub mod atomic;

pub use std::sync::Arc;
