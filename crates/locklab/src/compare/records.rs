//! Where pairs go. A store that fails is left alone from then on; the
//! measurement is worth more than its copy.

use super::{Measured, RunPair};
use crate::store::Store;

/// A store, or none.
pub struct Recorder {
    store: Option<(Store, i64)>,
    failure: Option<String>,
}

impl Recorder {
    /// Into experiment `experiment` of `store`.
    #[must_use]
    pub fn new(store: Store, experiment: i64) -> Self {
        Self {
            store: Some((store, experiment)),
            failure: None,
        }
    }

    /// Nowhere.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            store: None,
            failure: None,
        }
    }

    /// Keeps one pair.
    pub fn keep(&mut self, workload: &str, pair: &RunPair) {
        self.with(|store, id| store.add_program_pair(id, workload, pair));
    }

    /// Keeps how it ended.
    pub fn finish(&mut self, measured: &Measured) {
        self.with(|store, id| store.finish_comparison(id, measured));
    }

    /// Does `work` on the store, if there is one that works.
    pub fn with(&mut self, work: impl FnOnce(&Store, i64) -> Result<(), String>) {
        if let Some((store, id)) = &self.store
            && let Err(e) = work(store, *id)
        {
            self.failure = Some(e);
            self.store = None;
        }
    }

    /// What went wrong with the store, if something did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
