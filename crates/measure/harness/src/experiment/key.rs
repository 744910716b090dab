//! The name of a cell: its place on named axes. Stores and bias bands are found by
//! it, so a name that exists must never change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The axis of the number of subjects that are in use at once, where it is
/// asked. Stores have had it under this name since all subjects were locks.
pub const AT_ONCE: &str = "locks";

/// The name of a cell: coordinates on named axes, in the order in which they
/// are printed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub Vec<(String, Coordinate)>);

/// The position of a cell on one axis.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(untagged)]
pub enum Coordinate {
    /// A length or a number of threads.
    Number(u64),
    /// A workload or a variant.
    Name(String),
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Key {
    /// Returns a point of a matrix.
    #[must_use]
    pub fn point(threads: usize, critical: u64, non_critical: u64) -> Self {
        let number = |axis: &str, n: u64| (axis.to_owned(), Coordinate::Number(n));
        Self(vec![
            number("threads", threads as u64),
            number("critical", critical),
            number("non_critical", non_critical),
        ])
    }

    /// Returns the key with so many subjects in use at once.
    #[must_use]
    pub fn at_once(mut self, count: u32) -> Self {
        self.0
            .push((AT_ONCE.into(), Coordinate::Number(count.into())));
        self
    }

    /// Returns a workload, in a variant if that is not empty.
    #[must_use]
    pub fn workload(name: &str, variant: &str) -> Self {
        let mut axes = vec![("workload".to_owned(), Coordinate::Name(name.into()))];
        if !variant.is_empty() {
            axes.push(("variant".to_owned(), Coordinate::Name(variant.into())));
        }
        Self(axes)
    }

    /// Returns its coordinate on an axis.
    #[must_use]
    pub fn get(&self, axis: &str) -> Option<&Coordinate> {
        self.0.iter().find(|(name, _)| name == axis).map(|(_, c)| c)
    }

    /// Returns its coordinate on an axis of numbers.
    #[must_use]
    pub fn number(&self, axis: &str) -> Option<u64> {
        match self.get(axis)? {
            Coordinate::Number(n) => Some(*n),
            Coordinate::Name(_) => None,
        }
    }

    /// Returns its place in a matrix: threads, critical and non-critical length.
    #[must_use]
    pub fn place(&self) -> Option<[u64; 3]> {
        Some([
            self.number("threads")?,
            self.number("critical")?,
            self.number("non_critical")?,
        ])
    }
}

impl fmt::Display for Key {
    /// Names one after the other, and numbers as `4 x 0 x 32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (_, coordinate)) in self.0.iter().enumerate() {
            let between = match (i, coordinate) {
                (0, _) => "",
                (_, Coordinate::Number(_)) => " x ",
                (_, Coordinate::Name(_)) => ", ",
            };
            write!(f, "{between}{coordinate}")?;
        }
        Ok(())
    }
}
