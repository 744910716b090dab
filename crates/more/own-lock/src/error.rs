//! Errors about a lock of the user's own, each a single sentence.

/// Why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is wrong: a bad name, a missing file.
    #[error("{0}")]
    Usage(String),
    /// This machine cannot carry it out: a missing tool, a full disk.
    #[error("{0}")]
    Failed(String),
    /// The lock's file is at fault: it does not compile, or uses functions that
    /// no world except real hardware has.
    #[error("{0}")]
    File(String),
    /// The lock is at fault: it deadlocks, admits two holders, crashes or
    /// hangs.
    #[error("{0}")]
    Lock(String),
}
