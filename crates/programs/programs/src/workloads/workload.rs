//! Declares what each workload does for its backend, and what several check alike.

use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Facts, Metric, Values};
use locklab_host::error::Error;
use std::path::PathBuf;

/// A workload.
pub trait Workload {
    /// Returns a sentence that describes one run.
    fn about(&self) -> String;
    /// Returns the facts of its set-up on this machine, for the report.
    fn setup(&self, launcher: &Launcher) -> Facts;
    /// Returns whether all that it measures is done by the program that it starts and not
    /// by others that this one starts: only that can be modelled.
    fn is_one_process(&self) -> bool {
        false
    }
    /// Returns the metrics that it measures besides the kernel's accounting; the first
    /// decides.
    fn metrics(&self) -> Vec<Metric>;
    /// Checks that it can run for both subjects, before anything runs.
    ///
    /// # Errors
    /// If a program is missing or a setting is wrong; the message says what to
    /// install or to change.
    fn check(&self, subjects: [&Subject; 2], launcher: &Launcher) -> Result<(), Error>;
    /// Runs it once for one subject.
    ///
    /// # Errors
    /// [`Fault`]: why there are no figures.
    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault>;
}

/// Finds `program` for `subject`.
///
/// # Errors
/// If it is not installed; the message names the package.
pub(super) fn program(name: &str, package: &str, subject: &Subject) -> Result<PathBuf, Error> {
    locklab_host::process::find(name, &subject.folders()).ok_or_else(|| {
        Error::Usage(format!(
            "{name} is not installed; apt-get install {package}"
        ))
    })
}

/// Refuses two builds for a workload whose program is Locklab's own, because
/// they would not differ.
pub(super) fn same_program(name: &'static str, subjects: [&Subject; 2]) -> Result<(), Error> {
    if subjects[0].build != subjects[1].build || subjects[0].command != subjects[1].command {
        return Err(Error::Usage(format!(
            "{name} runs a program of Locklab's own, in which two builds or commands do not \
             differ; compare locks or environments, or use --workload command"
        )));
    }
    Ok(())
}
