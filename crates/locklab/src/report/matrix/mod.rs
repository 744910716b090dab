//! The report of a matrix.

mod caveats;
mod fairness;
mod html;
mod json;
mod text;
mod words;

pub use html::{heat_map_svg, html};
pub use json::json;
pub use text::text;

use super::Context;
use crate::matrix::{Measured, Unit};
use crate::verdicts::{JudgedCell, Verdicts};
use std::collections::BTreeSet;

/// What a report of a matrix is made of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What was asked and measured.
    pub measured: &'a Measured,
    /// What it shows, from [`crate::verdicts::judge`] of the same matrix.
    pub verdicts: &'a Verdicts,
    /// What only the caller knows.
    pub context: &'a Context,
}

impl Report<'_> {
    /// " [ns]" where lengths are nanoseconds.
    fn unit(&self) -> &'static str {
        match self.measured.spec.unit {
            Unit::Units => "",
            Unit::Nanoseconds => " [ns]",
        }
    }
}

/// The values that an axis of some cells has, in order.
fn axis<T: Ord>(cells: &[&JudgedCell], of: impl Fn(&JudgedCell) -> T) -> Vec<T> {
    let values: BTreeSet<T> = cells.iter().map(|c| of(c)).collect();
    values.into_iter().collect()
}

/// A length or a number of threads, in at most six columns.
fn label(n: u64) -> String {
    match n {
        _ if n < 1_000_000 => n.to_string(),
        _ if n.is_multiple_of(1_000_000) && n < 100_000_000_000 => {
            format!("{}M", n / 1_000_000)
        }
        _ => format!("{:.1e}", n as f64),
    }
}
