//! Failures of every crate and command: one sentence with the next step, and
//! an exit code.
//!
//! 0 done; 1 failed; 2 bad arguments; a verdict that `--fail-on` names: 3 worse,
//! 4 unclear, 5 invalid, 6 incomplete; 130 interrupted.
//!
//! One type, because nothing decides by what a sentence says: a caller hands it
//! on, adds the path of a file, or ends the process. Where a program must tell
//! two failures apart, as a run that may be tried again, they have a type of
//! their own.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// A failure, with its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Bad arguments or a bad file (exit code 2). Nothing was run.
    Usage(String),
    /// The work failed (exit code 1). What was measured is stored.
    Failed(String),
    /// SIGINT (exit code 130). What was measured is stored and reported.
    Interrupted(String),
}

impl Error {
    /// Puts the path of the file that is at fault before the sentence.
    #[must_use]
    pub fn within(self, path: &Path) -> Self {
        self.reworded(|sentence| format!("{}, {sentence}", path.display()))
    }

    /// Changes the sentence, and keeps the exit code.
    #[must_use]
    pub fn reworded(self, words: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Usage(text) => Self::Usage(words(text)),
            Self::Failed(text) => Self::Failed(words(text)),
            Self::Interrupted(text) => Self::Interrupted(words(text)),
        }
    }

    /// Returns the process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Interrupted(_) => 130,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Failed(text) | Self::Interrupted(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// The sentence, for what only hands it on.
impl From<Error> for String {
    fn from(error: Error) -> Self {
        match error {
            Error::Usage(text) | Error::Failed(text) | Error::Interrupted(text) => text,
        }
    }
}
