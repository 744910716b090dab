//! Says why a run of a program yields no figures: what the runner decides by is
//! whether another run may succeed.

use locklab_host::error::Error;
use locklab_host::process::Trouble;

/// Says why a run yields no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// This run failed; another may not.
    #[error("{0}")]
    Failed(String),
    /// The workload's own check failed.
    #[error("{0}")]
    CheckFailed(String),
    /// Counters did not run all the time.
    #[error("{0}")]
    Counter(String),
    /// No run of it can succeed, for the reason given.
    #[error("{0}")]
    Unrunnable(String),
    /// SIGINT or SIGTERM was received.
    #[error("interrupted")]
    Interrupted,
}

/// Says what cannot be begun cannot be run either.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted(_) => Self::Interrupted,
            Error::Usage(why) | Error::Failed(why) => Self::Unrunnable(why),
        }
    }
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NotStarted(why) => Self::Unrunnable(why),
            Trouble::Interrupted => Self::Interrupted,
            Trouble::TooLong(_) => Self::Failed(trouble.to_string()),
        }
    }
}
