//! Why a sweep cannot be begun, carried out or collected: one sentence each,
//! with the next step.

use crate::task::Task;
use std::path::{Path, PathBuf};

/// Why an operation on a sweep has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of the sweep makes no sense, or a lock that it names does not
    /// exist or compile. Nothing was run.
    #[error("{0}")]
    File(String),
    /// An option makes no sense. Nothing was run.
    #[error("{0}")]
    Usage(String),
    /// A folder holds no sweep, or not one that this machine can read.
    #[error(
        "there is no sweep in {folder} that {node} can read: {why}; if this is a node of a \
         cluster, the folder must lie where all nodes share it"
    )]
    NoSweep {
        /// The folder as it was given.
        folder: PathBuf,
        /// The name of the machine that looked.
        node: String,
        /// What is missing there.
        why: String,
    },
    /// A folder has another sweep than the one that is asked for.
    #[error("{folder} {has}; {next}")]
    OtherSweep {
        /// The folder as it was given.
        folder: PathBuf,
        /// What it holds, as the middle of the sentence.
        has: String,
        /// What to do, as its end.
        next: &'static str,
    },
    /// Another build of locklab began the sweep, and its figures may differ.
    #[error(
        "the sweep in {folder} was begun by {began} and this is {here} (on {node}): figures of \
         two versions are not one sweep; use that one, or begin another with --folder"
    )]
    OtherBuild {
        /// The folder as it was given.
        folder: PathBuf,
        /// The build that began it.
        began: String,
        /// What this build calls itself.
        here: String,
        /// The name of the machine that looked.
        node: String,
    },
    /// A lock of the user's own is not what it was when the sweep began, or
    /// cannot be loaded.
    #[error("{0}")]
    Lock(String),
    /// A file cannot be written.
    #[error("cannot write {path}: {why}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system gave as the reason.
        why: String,
    },
    /// A sweep has no such task.
    #[error("there is no {task}; the sweep in {folder} has {count} of its kind")]
    NoTask {
        /// The task that was asked for.
        task: Task,
        /// The folder of the sweep.
        folder: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// The samples in a shard are not those of its task.
    #[error("{what}; remove the shard, and {next}")]
    Shard {
        /// What is wrong with it.
        what: String,
        /// What happens when it has been removed.
        next: &'static str,
    },
    /// Slurm refused, or does not answer.
    #[error("{0}")]
    Slurm(String),
    /// Nothing can be collected yet.
    #[error("{0}")]
    Nothing(String),
    /// What an instrument or the judge said, or the store while samples were
    /// measured.
    #[error("{0}")]
    Lab(String),
    /// What a store or the kernel lab said.
    #[error(transparent)]
    Below(#[from] locklab_host::error::Error),
    /// Ctrl-C, or the end of a task's time.
    #[error("{0}")]
    Interrupted(&'static str),
    /// Some of the sweep is missing after it was collected.
    #[error("{0}")]
    Missing(String),
}

impl Error {
    /// A file or folder that cannot be written.
    pub(crate) fn write(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Write {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }

    /// What an instrument or the judge said.
    pub(crate) fn lab(why: impl std::fmt::Display) -> Self {
        Self::Lab(why.to_string())
    }

    /// The same error, with the path of the file if it is about the file.
    #[must_use]
    pub fn located(self, file: &Path) -> Self {
        match self {
            Self::File(why) => Self::File(format!("{}, {why}", file.display())),
            other => other,
        }
    }
}

/// With the exit code of a command.
impl From<Error> for locklab_host::error::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::File(_) | Error::Usage(_) => Self::Usage(error.to_string()),
            Error::Interrupted(_) => Self::Interrupted(error.to_string()),
            Error::Below(error) => error,
            error => Self::Failed(error.to_string()),
        }
    }
}
