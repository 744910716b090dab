//! Chooses what the workload `context-switch` switches between, and by what.

use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Says what is switched between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// Two processes: the address space is switched too.
    #[default]
    Processes,
    /// Two threads of one process: the address space stays.
    Threads,
}

impl Between {
    /// Returns the word used on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
        }
    }
}

impl FromStr for Between {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let all = [Self::Processes, Self::Threads];
        let found = all.into_iter().find(|b| b.word() == text);
        found.ok_or_else(|| {
            Error::Usage(format!("'{text}' cannot switch; processes and threads can"))
        })
    }
}

/// Says how one wakes the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A futex in shared memory.
    #[default]
    Futex,
    /// A byte through a pipe.
    Pipe,
}

impl By {
    /// Returns the word used on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Futex => "futex",
            Self::Pipe => "pipe",
        }
    }
}

impl FromStr for By {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = [Self::Futex, Self::Pipe]
            .into_iter()
            .find(|b| b.word() == text);
        found.ok_or_else(|| {
            Error::Usage(format!(
                "'{text}' is no way to wake a thread; futex and pipe are"
            ))
        })
    }
}
