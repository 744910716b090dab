//! A fact about the machine, with the reason where there is none.

use std::fmt;

/// A fact about the machine, or why it could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The value that the machine reports.
    Known(String),
    /// The reason why there is no value.
    Unknown(String),
}

impl Fact {
    /// Returns the value, if there is one.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    pub(super) fn map(self, f: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Known(value) => Self::Known(f(&value)),
            unknown @ Self::Unknown(_) => unknown,
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => f.write_str(value),
            Self::Unknown(why) => write!(f, "unknown ({why})"),
        }
    }
}
