//! A cell with its verdicts, and the figures of either side.
//!
//! Holds the judge's verdict on a cell, for those that add to it and for reports. It
//! must never decide anything itself.

use crate::experiment::{Metric, Role};
use locklab_judge::{Judged, Shown, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// One cell, over all placements of its CPUs or in one.
#[derive(Clone, Debug)]
pub struct JudgedCell {
    /// Its index in the experiment.
    pub cell: usize,
    /// The placement of its pairs; `None` where the verdict is over all.
    pub class: Option<String>,
    /// Lowest and highest cache-line round trip around its runs, in ns.
    pub round_trip: Option<(f64, f64)>,
    /// Number of pairs that are judged here, including those that do not count.
    pub pairs: usize,
    /// Its metrics, judged; the primary one first.
    pub metrics: Vec<JudgedMetric>,
    /// Metrics that cannot be judged because they were zero in some run.
    pub zero: Vec<String>,
    /// The baseline by itself.
    pub baseline: Figures,
    /// The experiment by itself.
    pub experiment: Figures,
    /// d = ln(experiment / baseline) of the primary metric, of each pair that
    /// counts, in order; positive is better.
    pub differences: Vec<f64>,
    /// The interval of nine in ten ratios of a simulation.
    pub band: Option<Band>,
    /// Holds the same in other placements, where so few pairs are not judged apart.
    pub elsewhere: Vec<(String, Vec<f64>)>,
}

/// One metric with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedMetric {
    /// The metric: its name, unit and better direction.
    pub metric: Metric,
    /// Holds what the judge made of its pairs.
    pub judged: Judged,
}

/// The figures of one side in one cell, over the runs that count: every value
/// by its name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures(pub BTreeMap<String, Figure>);

/// A value over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// The summary of the runs: their location, by one estimator for all
    /// metrics, or the greatest.
    pub value: f64,
    /// Lower 95 % limit, of the primary metric only.
    pub low: Option<f64>,
    /// Upper 95 % limit, of the primary metric only.
    pub high: Option<f64>,
}

impl Figures {
    /// Returns a value by the name of its metric.
    #[must_use]
    pub fn get(&self, metric: &str) -> Option<f64> {
        self.0.get(metric).map(|figure| figure.value)
    }
}

impl JudgedCell {
    /// Returns the primary metric, judged.
    #[must_use]
    pub fn primary(&self) -> Option<&JudgedMetric> {
        let decides = |m: &&JudgedMetric| m.metric.role == Role::Primary && m.metric.at.is_none();
        self.metrics.iter().find(decides)
    }

    /// Returns a metric by its name, judged.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&Judged> {
        let found = self.metrics.iter().find(|m| m.metric.name == name)?;
        Some(&found.judged)
    }

    /// Returns the verdict on the primary metric.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.primary().map(|m| &m.judged.verdict)
    }

    /// Returns experiment / baseline of the primary metric, with its 95 %
    /// limits; `None` where the cell is invalid or has no pair that counts.
    #[must_use]
    pub fn ratio(&self) -> Option<Shown> {
        self.primary().and_then(JudgedMetric::ratio)
    }

    /// Returns whether a firm verdict is held back, because it depends on what the
    /// model's assumptions.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.band.is_some_and(|band| band.holds_back)
    }

    /// Returns whether it must not be read.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.verdict(), None | Some(Verdict::Invalid(_)))
    }

    /// Returns whether anything was measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.pairs > 0
    }
}

impl JudgedMetric {
    /// Returns experiment / baseline with its 95 % limits; `None` where it is invalid
    /// or has no pair that counts.
    #[must_use]
    pub fn ratio(&self) -> Option<Shown> {
        match self.judged.verdict {
            Verdict::Invalid(_) => None,
            _ => self.judged.estimate.map(|e| e.ratio()),
        }
    }
}

/// The band of nine of ten of a cell's ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// experiment / baseline, lower end.
    pub low: f64,
    /// experiment / baseline, upper end.
    pub high: f64,
    /// Says whether the judge had a firm verdict that the band does not support.
    pub holds_back: bool,
}
