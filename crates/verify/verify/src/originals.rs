//! The models of the locks themselves.

use locklab_library_models as library_models;
use locklab_locks as locks;

#[path = "models.rs"]
pub(crate) mod models;
