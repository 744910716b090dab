//! Failures of a command: one sentence with the next step, and an exit code.
//!
//! 0 done; 1 failed; 2 bad arguments; 3 a regression was found and
//! `--fail-on worse` was given; 130 interrupted.

use crate::libraries::LibraryError;
use std::fmt;
use std::process::ExitCode;

/// A failure of a command.
#[derive(Debug)]
pub enum Error {
    /// Bad arguments (exit code 2). Nothing was run.
    Usage(String),
    /// The work failed (exit code 1). What was measured is stored.
    Failed(String),
    /// SIGINT (exit code 130). What was measured is stored and reported.
    Interrupted(String),
}

impl Error {
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

impl From<LibraryError> for Error {
    fn from(error: LibraryError) -> Self {
        Self::Failed(error.to_string())
    }
}
