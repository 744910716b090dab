//! Holds what one check found, and what to do about it. It examines nothing.

use serde::Serialize;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing is wrong.
    Ok,
    /// It works, but figures mean less than they could.
    Limited,
    /// It is missing; what needs it cannot be measured.
    Missing,
    /// It cannot be known from here, or was not tried on purpose.
    Unknown,
}

/// Holds what was examined, the result, and the remedy.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The part of the harness that depends on it.
    pub part: &'static str,
    /// The thing that was checked.
    pub name: String,
    /// Says whether it works, works with limits, is missing, or is not known.
    pub state: State,
    /// Says what was found and what it means.
    pub found: String,
    /// Says what to do about it, if anything can be done.
    pub remedy: Option<String>,
}

impl Check {
    pub(crate) fn new(
        part: &'static str,
        name: &str,
        state: State,
        found: impl Into<String>,
    ) -> Self {
        Self {
            part,
            name: name.into(),
            state,
            found: found.into(),
            remedy: None,
        }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

pub(crate) const LOCKS: &str = "Locks on this machine";
pub(crate) const COUNTERS: &str = "Hardware counters";
pub(crate) const MODELS: &str = "Other kernels and machines";
pub(crate) const WORKLOADS: &str = "Workloads";
pub(crate) const STORE: &str = "Samples";
