//! The models of the locks themselves.

use locklab_locks as locks;

#[path = "models.rs"]
pub(crate) mod models;
