//! What can be wrong with a lock of the user's own, each in one sentence.

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The question cannot be asked: a bad name, a missing file.
    #[error("{0}")]
    Usage(String),
    /// This machine cannot answer it: a missing tool, a full disk.
    #[error("{0}")]
    Failed(String),
    /// The lock's file is at fault: it does not compile, or uses what no
    /// world but the real one has.
    #[error("{0}")]
    File(String),
    /// The lock is at fault: it deadlocks, admits two, crashes or hangs.
    #[error("{0}")]
    Lock(String),
}
