//! The report of a comparison of programs, in the form of the report on
//! inlining spin_unlock(): setup, environment, one table a workload with a
//! sentence, footprint, a conclusion that claims no more than the verdicts,
//! and where each figure comes from.

mod html;
mod json;
mod plot;
mod text;
mod words;

pub use html::html;
pub use json::json;
pub use plot::call_sites_svg;
pub use text::text;

use super::Context;
use crate::compare::Measured;
use crate::compare::verdicts::Verdicts;
use locklab_footprint::Footprint;

/// What it is made of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What was asked and measured.
    pub measured: &'a Measured,
    /// What it shows, from [`crate::compare::verdicts::judge`] of the same.
    pub verdicts: &'a Verdicts,
    /// Of two builds that are files or folders of them.
    pub footprint: Option<&'a Footprint>,
    /// What only the caller knows.
    pub context: &'a Context,
}
