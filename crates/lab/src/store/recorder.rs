//! Where the samples of one experiment go. A store that fails is left alone
//! from then on; the measurement is worth more than its copy.

use super::Store;

/// A store and the experiment that is written to it, or nothing.
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

    /// Does `work` on the store, if there is one that works.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Store, i64) -> Result<T, String>,
    ) -> Option<T> {
        let (store, experiment) = self.store.as_mut()?;
        match work(store, *experiment) {
            Ok(done) => Some(done),
            Err(e) => {
                self.failure = Some(e);
                self.store = None;
                None
            }
        }
    }

    /// What went wrong with the store, if something did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
