//! A task's own store, into which it measures one experiment after another.
//!
//! An experiment that is complete there is not measured again, and one that was
//! interrupted is continued. Must never touch the shard of another task.

use locklab_host::error::Error;
use locklab_lab::experiment::Experiment;
use locklab_lab::instrument::Instrument;
use locklab_lab::session::{Measured, Session, key_of};
use locklab_lab::store::Store;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Describes how the experiments of a shard are measured.
pub(crate) struct Shard<'a> {
    pub(crate) path: &'a Path,
    /// The command line that the store keeps with an experiment.
    pub(crate) command: String,
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) quiet: bool,
}

impl Shard<'_> {
    /// Measures an experiment, or what is missing of it; `None` if the shard has
    /// all of it already.
    ///
    /// # Errors
    /// The shard cannot be opened, read or written.
    pub(crate) fn measure(
        self,
        instrument: &mut dyn Instrument,
        experiment: Experiment,
    ) -> Result<Option<Measured>, Error> {
        let store = Store::open_alone(self.path)?;
        let begun = store.of_key(&key_of(instrument, &experiment))?;
        if let Some(id) = begun
            && store.listed(Some(id))?.state == "done"
        {
            return Ok(None);
        }
        let session = Session {
            store,
            command: self.command,
            resume: begun.is_some(),
            deadline: None,
            interrupt: self.interrupt,
            quiet: self.quiet,
        };
        let measured = session.run(instrument, experiment)?;
        match measured.store_failure {
            Some(failure) => Err(Error::Failed(failure)),
            None => Ok(Some(measured)),
        }
    }
}
