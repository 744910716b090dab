//! The tasks of a sweep: what one job of a cluster, or one turn of this
//! machine's cores, carries out.
//!
//! Its text is `chunk:12` or `node:icelake`; this is what a task's script passes.

use locklab_host::error::Error;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// One task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A chunk of a sweep of models, by one thread.
    Chunk(usize),
    /// All measurements on the node of this feature.
    Node(String),
    /// The build of a kernel.
    Build(usize),
    /// A layout of two kernels, whose guests run at the same time.
    Layout(usize),
}

impl Task {
    /// Returns the name of its kind, and its name or number within it.
    #[must_use]
    pub fn words(&self) -> (&'static str, String) {
        match self {
            Self::Chunk(n) => ("chunk", n.to_string()),
            Self::Node(feature) => ("node", feature.clone()),
            Self::Build(n) => ("build", n.to_string()),
            Self::Layout(n) => ("layout", n.to_string()),
        }
    }

    /// Returns its number among those of its kind; `None` for a node.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        match self {
            Self::Chunk(n) | Self::Build(n) | Self::Layout(n) => Some(*n),
            Self::Node(_) => None,
        }
    }

    /// Returns the name of its files.
    #[must_use]
    pub fn file(&self) -> String {
        match self {
            Self::Chunk(n) | Self::Layout(n) => format!("{n:04}"),
            Self::Build(n) => format!("build-{n}"),
            Self::Node(feature) => feature.clone(),
        }
    }

    /// Returns the cores that it keeps busy; a node has all of them to itself.
    #[must_use]
    pub fn cores(&self) -> usize {
        match self {
            Self::Chunk(_) | Self::Node(_) => 1,
            Self::Build(_) | Self::Layout(_) => 2,
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.words()) {
            (Self::Node(feature), _) => f.write_str(feature),
            (_, (kind, number)) => write!(f, "{kind} {number}"),
        }
    }
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || {
            Error::Usage(format!(
                "'{text}' is no part of a sweep; give chunk:N or node:FEATURE"
            ))
        };
        let (kind, which) = text.split_once(':').ok_or_else(unknown)?;
        let number = || which.parse().map_err(|_| unknown());
        match kind {
            "chunk" => number().map(Self::Chunk),
            "node" => Ok(Self::Node(which.to_owned())),
            "build" => number().map(Self::Build),
            "layout" => number().map(Self::Layout),
            _ => Err(unknown()),
        }
    }
}

/// Describes what is missing of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The task that is not complete.
    pub task: Task,
    /// Holds what it did not do: of a chunk the runs, by their numbers in the plan.
    pub units: Range<u64>,
    /// The reason, as far as it is known.
    pub why: String,
}

/// Returns the number of missing units.
#[must_use]
pub(crate) fn missing_units(missing: &[Missing]) -> u64 {
    missing.iter().map(|m| m.units.end - m.units.start).sum()
}
