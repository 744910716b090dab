//! The models of the locks' copies with switches: those of the locks, compiled
//! again.

use locklab_lock_mutants as locks;
use locklab_lock_mutants::library_models;

#[allow(clippy::duplicate_mod, reason = "of other locks")]
#[path = "models.rs"]
pub(crate) mod models;
