//! Locks that are not in the catalogue, by name: code that has one of its own
//! registers it, and every scenario can then name it.
//!
//! It must hold no state of one simulation: a name is registered once per
//! process, and used by all its threads.

use crate::error::SimError;
use crate::libraries::library_locks;
use crate::scenario::{Scenario, Simulation};
use locklab_library_models::catalogue::current_name;
use locklab_locks::catalogue;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A lock that simulates itself, such as one that was compiled from a file.
pub trait Foreign: Send + Sync {
    /// Runs a scenario, whose lock is this one.
    ///
    /// # Errors
    /// Why the simulation has no outcome: the lock deadlocks, admits two holders or
    /// crashes, or the scenario does not fit the machine or the lock.
    fn simulate(&self, scenario: &Scenario) -> Result<Simulation, SimError>;
}

static REGISTERED: RwLock<BTreeMap<String, Arc<dyn Foreign>>> = RwLock::new(BTreeMap::new());

/// Registers a lock under this name, which takes precedence over the
/// catalogue's.
pub fn register(name: &str, lock: Arc<dyn Foreign>) {
    REGISTERED
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(name.to_owned(), lock);
}

/// Returns the lock of this name, if one is registered.
pub(crate) fn registered(name: &str) -> Option<Arc<dyn Foreign>> {
    REGISTERED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(name)
        .cloned()
}

/// Returns whether a scenario can name this lock.
pub fn can_be_simulated(name: &str) -> bool {
    let name = current_name(name);
    catalogue::ALL.iter().any(|entry| entry.info.name == name)
        || library_locks().any(|of_library| of_library == name)
        || registered(name).is_some()
}
