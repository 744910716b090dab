//! Why the model has no counts of a program: one sentence each, with the next
//! step.

use locklab_host::libraries::LibraryError;
use locklab_icache::GeometryError;
use std::path::PathBuf;

/// Why the model has no counts of a program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A cache of this geometry cannot exist.
    #[error("{0}")]
    Geometry(GeometryError),
    /// The plugin that has the model is not built.
    #[error(transparent)]
    NoPlugin(#[from] LibraryError),
    /// There is no program of this name that may be executed.
    #[error("there is no program '{0}', or it may not be executed")]
    NoProgram(String),
    /// The QEMU of the program's processor is missing.
    #[error("{0} is not installed; apt-get install qemu-user")]
    NoQemu(&'static str),
    /// QEMU separates its plugin's arguments by commas.
    #[error("QEMU takes no path with a comma; use another folder")]
    Comma,
    /// QEMU runs no scripts.
    #[error("{0} is a script; give its interpreter and then the script")]
    Script(PathBuf),
    /// A file that is no program.
    #[error("{0} is no ELF program")]
    NotElf(PathBuf),
    /// A program of a processor that is not known here.
    #[error("{0} is for a machine (ELF number {1}) whose QEMU is not known here")]
    OtherMachine(PathBuf, u16),
    /// The run did not start, or took too long.
    #[error("{0}")]
    NotRun(String),
    /// SIGINT or SIGTERM was received.
    #[error("interrupted; there are no counts")]
    Interrupted,
    /// The program failed: its name, how it ended, and its last output.
    #[error("{0} left no counts ({1}); it said: {2}")]
    NoCounts(String, String, String),
    /// The counts were lost with the program that was replaced.
    #[error("{0} left no counts: it became another program by exec; give that one")]
    Exec(String),
    /// The plugin wrote something else than its report.
    #[error("the plugin's report cannot be read: {0}")]
    NoReport(String),
    /// QEMU did not log where the program's code lay.
    #[error("QEMU does not say where it put the code of {0}, so its blocks cannot be named")]
    NoStart(PathBuf),
    /// A line of the plugin has another form.
    #[error("the plugin's line '{0}' is no block")]
    NoBlock(String),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    NotRead(PathBuf, String),
    /// A file cannot be written.
    #[error("cannot write {0}: {1}")]
    NotWritten(PathBuf, String),
}

/// With the exit code of a command.
impl From<ModelError> for locklab_host::error::Error {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Geometry(_) | ModelError::NoPlugin(_) => Self::Usage(error.to_string()),
            ModelError::Interrupted => Self::Interrupted(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}
