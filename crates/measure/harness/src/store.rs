//! The store: one SQLite file with every sample, written as its run ends.
//!
//! It lets an interrupted experiment continue where it stopped, an A/A run's
//! bias bands be found by later ones, and any figure in a report be
//! traced to its samples. A sample is kept even if its pair was repeated; only
//! its state differs. A store that fails is not used from then on, and the measurement
//! continues ([`Recorder`]). The store knows nothing of backends and judges nothing.

mod database;
pub mod export;
mod merge;
mod prune;
mod reading;
mod schema;

pub use database::{Slot, Store, StoredRow, hash_of, now};
pub use merge::Merged;
pub use prune::{Prune, Pruned};
pub use reading::{DamagedRow, Listed, StoredSample, listing};

use locklab_host::error::Error;

/// A store and the experiment that is written to it, or nothing.
pub struct Recorder {
    store: Option<(Store, i64)>,
    failure: Option<String>,
}

impl Recorder {
    /// Records into experiment `experiment` of `store`.
    #[must_use]
    pub fn new(store: Store, experiment: i64) -> Self {
        Self {
            store: Some((store, experiment)),
            failure: None,
        }
    }

    /// Makes a recorder without a store, which drops every sample.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            store: None,
            failure: None,
        }
    }

    /// Runs `work` on the store, if there is one that works.
    pub fn with<T>(&mut self, work: impl FnOnce(&mut Store, i64) -> Result<T, Error>) -> Option<T> {
        let (store, experiment) = self.store.as_mut()?;
        match work(store, *experiment) {
            Ok(done) => Some(done),
            Err(e) => {
                self.failure = Some(e.to_string());
                self.store = None;
                None
            }
        }
    }

    /// Returns the error of the store, if it failed.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
