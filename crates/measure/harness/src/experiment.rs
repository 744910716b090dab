//! The vocabulary of a comparison: its specification, and the result of each
//! run.
//!
//! Backends fill it, the store stores it, the judge and the reports read
//! it. Data that only one backend knows is in `detail` and `spec`, which
//! nothing here interprets. Nothing here measures, judges or prints.

mod key;
mod metric;
mod sample;

pub use key::{AT_ONCE, Coordinate, Key};
pub use locklab_document::{Facts, Labels, Role};
pub use metric::{Metric, Source, Summary};
pub use sample::{Invalid, Order, Pair, Placement, Sample, Values};

use locklab_judge::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One comparison with all its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The kind of comparison, in the word of its backend, which is that of
    /// files, JSON and the command too.
    #[serde(deserialize_with = "read_kind")]
    pub kind: String,
    /// The names of the two sides in reports.
    pub labels: Labels,
    /// The specification, in the backend's own terms. Only its backend
    /// reads it, except for `unit` and `processes`, which the report of a
    /// matrix reads.
    pub spec: Value,
    /// The choices made before the first run.
    pub design: Design,
    /// The source of all its figures.
    pub provenance: Provenance,
    /// Facts about the machine and the set-up.
    pub facts: Facts,
    /// The caveats that a reader of the figures must know.
    pub caveats: Vec<String>,
    /// Cells in the order of the report, measured or not.
    pub cells: Vec<Cell>,
    /// Says what is missing and why, if the experiment did not end normally.
    pub interrupted: Option<String>,
}

/// Says how the report of an experiment is laid out. The axes of its cells say it,
/// so a backend need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Two subjects in a matrix of threads and lengths.
    Matrix,
    /// Two subjects under workloads.
    Workloads,
    /// Many subjects at some points: a cell for each point and subject, whose
    /// pairs have the reference as their baseline (see [`crate::ranking`]).
    Ranking,
}

impl Experiment {
    /// Returns the layout of its report.
    pub(crate) fn layout(&self) -> Layout {
        match self.cells.first().map(|cell| &cell.key) {
            Some(key) if key.lock().is_some() => Layout::Ranking,
            Some(key) if key.place().is_none() => Layout::Workloads,
            _ => Layout::Matrix,
        }
    }
}

/// Returns the word of today for a kind of comparison: until version 0.2, files and
/// stores had other words for two of them than the command.
pub(crate) fn kind_of_today(word: &str) -> &str {
    match word {
        "programs" => "compare",
        "kernels" => "kernel",
        _ => word,
    }
}

fn read_kind<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|word| kind_of_today(&word).to_owned())
}

/// The choices that are made before the first run and never afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// Number of pairs of each cell.
    pub pairs: u32,
    /// Seed of the coins and of every other random choice.
    pub seed: u64,
    /// The margin for flat, as a fraction.
    pub delta: f64,
    /// Says how primary metrics share the 5 %.
    #[schemars(with = "String")]
    pub family: Family,
    /// Says whether the experiment is the baseline again.
    pub aa: bool,
    /// The number of further rounds of `pairs` that an undecided cell may get.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry: u32,
}

fn is_zero(rounds: &u32) -> bool {
    *rounds == 0
}

impl Design {
    /// Returns at how many looks a cell may end, which share the 5 %.
    #[must_use]
    pub fn looks(&self) -> u32 {
        self.retry + 1
    }
}

/// The source of a figure, which is kept up to the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "source", content = "name")]
pub enum Provenance {
    /// Measured on the machine of this name.
    Hardware(String),
    /// Simulated on the machine model of this name.
    Simulation(String),
    /// Computed by the model of this name from a real execution.
    Model(String),
}

/// One cell of a comparison: a workload, or a point of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The key, unique in its experiment.
    pub key: Key,
    /// A sentence that describes one run; empty where the report says it once
    /// for all.
    pub about: String,
    /// Facts about its set-up.
    pub facts: Facts,
    /// Says whether there are more threads than CPUs.
    pub oversubscribed: bool,
    /// The metrics that each run gives.
    pub metrics: Vec<Metric>,
    /// b of the primary metric, as a fraction: the bias that an A/A run of the
    /// same set-up measured.
    pub bias_band: Option<f64>,
    /// Every pair, in order, including those that do not count, with the
    /// reason.
    #[serde(skip)]
    pub pairs: Vec<Pair>,
    /// The margin for flat, as a fraction, where it is not that of the design:
    /// decided before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Says why it was not run, or not to the end.
    pub stopped: Option<String>,
}

impl Cell {
    /// Returns a cell without pairs.
    #[must_use]
    pub fn new(key: Key, metrics: Vec<Metric>) -> Self {
        Self {
            key,
            about: String::new(),
            facts: Facts::new(),
            oversubscribed: false,
            metrics,
            bias_band: None,
            pairs: Vec::new(),
            delta: None,
            stopped: None,
        }
    }

    /// Returns the metric that decides.
    #[must_use]
    pub fn primary(&self) -> Option<&Metric> {
        self.metrics.iter().find(|m| m.role == Role::Primary)
    }
}
