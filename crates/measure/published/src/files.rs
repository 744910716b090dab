//! Files of a user: an experiment with its published figures, or figures of one's own.
//! It must never look for a reference anywhere but beside the experiment.

use crate::experiment::Experiment;
use crate::own::{OwnReference, is_experiment};
use crate::reference::Reference;
use locklab_harness::file::read;
use locklab_host::error::Error;
use std::path::Path;

/// A file that can be simulated.
#[derive(Clone, Debug)]
pub enum File {
    /// An experiment, with the published figures that it names.
    Experiment(Box<(Experiment, Reference)>),
    /// Figures of one's own, with their machine, rule and loop.
    Own(Box<OwnReference>),
}

impl File {
    /// Reads a file of either kind.
    ///
    /// # Errors
    /// [`Error::Usage`] if it, or the reference that it names, cannot be read or is
    /// invalid. The reference is expected beside the file's folder, as in this project.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (name, text) = (path.display().to_string(), read(path)?);
        if !is_experiment(&text) {
            let own = OwnReference::parse(&name, &text)?;
            return Ok(Self::Own(Box::new(own)));
        }
        let experiment = Experiment::parse(&name, &text)?;
        let reference = match (&experiment.published, &experiment.reference) {
            (Some(published), _) => published.clone(),
            (None, reference) => reference_of(path, reference.as_deref().unwrap_or_default())?,
        };
        Ok(Self::Experiment(Box::new((experiment, reference))))
    }
}

fn reference_of(path: &Path, reference: &str) -> Result<Reference, Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = [folder.join(reference), folder.join("..").join(reference)];
    let found = beside.iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::Usage(format!(
            "{}: there is no reference {reference} beside it",
            path.display()
        ))
    })?;
    Reference::parse(reference, &read(found)?)
}
