//! Says whether a comparison decides or explains.

#[cfg(doc)]
use crate::settings::Settings;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// The role of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Role {
    /// It decides: one metric per workload, or a cell of a matrix. It shares
    /// the 5 % with the other primary ones as [`Settings::family`] says.
    Primary,
    /// It explains, as counters do: Benjamini-Hochberg at 5 % over all
    /// screening comparisons, and it must be shown as screening.
    Screening,
}
