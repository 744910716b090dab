//! Why an operation on a store has no result: one sentence each, with the file
//! and the next step.

use std::path::{Path, PathBuf};

/// Why an operation on a store has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no file at the path.
    #[error(
        "there is no store {0}; 'locklab matrix' and 'locklab compare' make one, and --store PATH \
         names another"
    )]
    Absent(PathBuf),
    /// The user's store cannot be opened, or is of another program or version.
    #[error(
        "cannot use the store {path}: {why}; give another with --store PATH, or --store :memory: \
         to keep nothing"
    )]
    Unusable {
        /// The path of the store's file.
        path: PathBuf,
        /// What the system or SQLite gave as the reason.
        why: String,
    },
    /// A store that one process writes alone cannot be written.
    #[error("cannot write {path}: {why}")]
    NotWritten {
        /// The path of the store's file.
        path: PathBuf,
        /// What the system or SQLite gave as the reason.
        why: String,
    },
    /// What its only writer left cannot be read.
    #[error("cannot read {path}: {why}")]
    NotRead {
        /// The path of the store's file.
        path: PathBuf,
        /// What the system or SQLite gave as the reason.
        why: String,
    },
    /// An open store could not be read or written, as on a full disk.
    #[error("the store {path} failed: {why}")]
    Failed {
        /// The path of the store's file.
        path: PathBuf,
        /// What the system or SQLite gave as the reason.
        why: String,
    },
    /// It has no experiment of this number.
    #[error("the store {path} has no experiment {id}; 'locklab results list' shows what it has")]
    NoExperiment {
        /// The path of the store's file.
        path: PathBuf,
        /// The number that was asked for.
        id: i64,
    },
    /// It has no experiment at all.
    #[error("the store {0} is empty; 'locklab matrix' and 'locklab compare' fill it")]
    Empty(PathBuf),
    /// What describes an experiment is damaged.
    #[error(
        "the store {path} holds an experiment {id} that cannot be read ({why}); its samples may \
         be: 'locklab results export {id}'"
    )]
    Header {
        /// The path of the store's file.
        path: PathBuf,
        /// The number of the experiment in the store.
        id: i64,
        /// What the system or SQLite gave as the reason.
        why: String,
    },
    /// The samples have no form as CSV.
    #[error("cannot write the samples as CSV: {0}")]
    NoCsv(String),
    /// An experiment that is to be removed is still running.
    #[error(
        "experiment {id} of the store {path} is still running; interrupt it first, or leave it out"
    )]
    Running {
        /// The path of the store's file.
        path: PathBuf,
        /// The number of the experiment in the store.
        id: i64,
    },
}

impl StoreError {
    /// The user's store cannot be used.
    pub(super) fn unusable(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Unusable {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// With the exit code of a command.
impl From<StoreError> for locklab_host::error::Error {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}
