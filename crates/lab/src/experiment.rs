//! The vocabulary of a comparison: its specification, and the result of each
//! run.
//!
//! Instruments fill it, the store stores it, the judge and the reports read
//! it. Data that only one instrument knows is in `detail` and `spec`, which
//! nothing here interprets. Nothing here measures, judges or prints.

pub use locklab_document::{Facts, Labels, Role};
use locklab_judge::{Direction, Family};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Figures of one run by the names of their metrics.
pub type Values = BTreeMap<String, f64>;

/// One comparison with all its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The kind of comparison, in the word of its instrument, which is that of
    /// files, JSON and the command too.
    #[serde(deserialize_with = "read_kind")]
    pub kind: String,
    /// The names of the two sides in reports.
    pub labels: Labels,
    /// The specification, in the instrument's own terms. Only its instrument
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
    /// What is missing and why, if the experiment did not end normally.
    pub interrupted: Option<String>,
}

/// How the report of an experiment is laid out. The axes of its cells say it,
/// so an instrument need not.
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
    /// The layout of its report.
    pub(crate) fn layout(&self) -> Layout {
        match self.cells.first().map(|cell| &cell.key) {
            Some(key) if key.lock().is_some() => Layout::Ranking,
            Some(key) if key.place().is_none() => Layout::Workloads,
            _ => Layout::Matrix,
        }
    }
}

/// The word of today for a kind of comparison: until version 0.2, files and
/// stores had other words for two of them than the command.
pub(crate) fn kind_of_today(word: String) -> String {
    match word.as_str() {
        "programs" => "compare".into(),
        "kernels" => "kernel".into(),
        _ => word,
    }
}

fn read_kind<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(kind_of_today)
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
    /// How primary metrics share the 5 %.
    #[schemars(with = "String")]
    pub family: Family,
    /// Whether the experiment is the baseline again.
    pub aa: bool,
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
    /// Whether there are more threads than CPUs.
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
    /// Why it was not run, or not to the end.
    pub stopped: Option<String>,
}

impl Cell {
    /// A cell without pairs.
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

    /// The metric that decides.
    #[must_use]
    pub fn primary(&self) -> Option<&Metric> {
        self.metrics.iter().find(|m| m.role == Role::Primary)
    }
}

/// The axis of the number of locks that are used at once, where it is asked.
pub const LOCKS: &str = "locks";

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
    /// A point of a matrix.
    #[must_use]
    pub fn point(threads: usize, critical: u64, non_critical: u64) -> Self {
        let number = |axis: &str, n: u64| (axis.to_owned(), Coordinate::Number(n));
        Self(vec![
            number("threads", threads as u64),
            number("critical", critical),
            number("non_critical", non_critical),
        ])
    }

    /// The same, of so many locks at once.
    #[must_use]
    pub fn with_locks(mut self, locks: u32) -> Self {
        self.0
            .push((LOCKS.into(), Coordinate::Number(locks.into())));
        self
    }

    /// A workload, in a variant if that is not empty.
    #[must_use]
    pub fn workload(name: &str, variant: &str) -> Self {
        let mut axes = vec![("workload".to_owned(), Coordinate::Name(name.into()))];
        if !variant.is_empty() {
            axes.push(("variant".to_owned(), Coordinate::Name(variant.into())));
        }
        Self(axes)
    }

    /// Its coordinate on an axis.
    #[must_use]
    pub fn get(&self, axis: &str) -> Option<&Coordinate> {
        self.0.iter().find(|(name, _)| name == axis).map(|(_, c)| c)
    }

    /// Its coordinate on an axis of numbers.
    #[must_use]
    pub fn number(&self, axis: &str) -> Option<u64> {
        match self.get(axis)? {
            Coordinate::Number(n) => Some(*n),
            Coordinate::Name(_) => None,
        }
    }

    /// Its place in a matrix: threads, critical and non-critical length.
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

/// A figure that each run gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name, such as `ops_per_s` or `l1i-misses:k`.
    pub name: String,
    /// The unit; empty for a count or a ratio.
    pub unit: String,
    /// The direction in which it improves.
    pub direction: Direction,
    /// Whether it decides, explains or only describes.
    pub role: Role,
    /// The source of the figure.
    pub source: Source,
    /// The summary of the runs of one side.
    #[serde(default)]
    pub summary: Summary,
    /// Its place in a matrix, where one run gives a whole matrix. Such
    /// metrics are judged as the cells of a matrix are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Key>,
}

impl Metric {
    /// A screening metric that improves upwards.
    #[must_use]
    pub fn higher(name: &str, unit: &str, source: Source) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            direction: Direction::HigherIsBetter,
            role: Role::Screening,
            source,
            summary: Summary::Median,
            at: None,
        }
    }

    /// A screening metric that improves downwards.
    #[must_use]
    pub fn lower(name: &str, unit: &str, source: Source) -> Self {
        Self {
            direction: Direction::LowerIsBetter,
            ..Self::higher(name, unit, source)
        }
    }

    /// The same metric in another role.
    #[must_use]
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// The summary of the runs of one side that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// Their median, as Hodges and Lehmann estimate it: the median of the means
    /// of all pairs of them, over logarithms.
    #[default]
    Median,
    /// The greatest value, as for a longest wait.
    Greatest,
}

/// The source of a figure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The output of the program, or of its client.
    Output,
    /// The kernel's account of the process and its children (wait4).
    Process,
    /// A counter of the processor.
    Hardware,
    /// A counter of the kernel (perf software event).
    Software,
    /// Counted by the instrument itself, around what it runs.
    Instrument,
    /// The i-cache model, in an emulated execution.
    Model,
    /// A modelled machine.
    Simulation,
    /// The clock of a machine that a program translates: no time of anything.
    Emulation,
    /// The program's file.
    File,
}

impl Source {
    /// The source in words, for a report.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Output => "hardware; as the program or its client prints it",
            Self::Process => {
                "hardware; the kernel's account of the process and its children (wait4)"
            }
            Self::Hardware => "hardware; a counter of the processor, running all the time",
            Self::Software => "hardware; a software event of the kernel (perf_event_open)",
            Self::Instrument => "hardware; counted by the threads under test",
            Self::File => "the program's file; bytes of its function symbols",
            Self::Model => "model; L1i of the stated geometry in an emulated execution",
            Self::Simulation => "simulation; counted on the modelled machine",
            Self::Emulation => "emulation; the clock of a translated machine, no time of any",
        }
    }
}

/// The reason why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum Invalid {
    /// It did not finish, or gave no figure. The pair is set aside and the
    /// others stand.
    Failed(String),
    /// The machine disturbed it, and still did when the pair had been repeated.
    /// The pair is set aside and does not count as a failure. (Version 0.2
    /// also set pairs aside whose CPUs had moved.)
    #[serde(alias = "placement_moved")]
    Disturbed(String),
    /// A counter did not run all the time. The pair is set aside.
    Counter(String),
    /// The workload's own check failed, such as mutual exclusion. Never
    /// tolerated: nothing in this cell counts.
    CheckFailed(String),
    /// It was never run: the experiment was interrupted after the other run of
    /// its pair. Such a half is stored, and its pair is run again.
    Interrupted(String),
}

impl Invalid {
    /// Why the sample is invalid, as one sentence.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Failed(why)
            | Self::Disturbed(why)
            | Self::Counter(why)
            | Self::CheckFailed(why)
            | Self::Interrupted(why) => why,
        }
    }
}

/// One run of one side in one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds from the start of the experiment to the start of the run, where
    /// the instrument has a clock: the time axis of charts of drift.
    pub started: Option<f64>,
    /// What it measured, by the names of the metrics and in their units.
    pub values: Values,
    /// The placement of its CPUs, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The reason why it does not count, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Invalid>,
    /// Data that only its instrument knows; no other code reads it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

impl Sample {
    /// A sample that does not count.
    #[must_use]
    pub fn invalid(invalid: Invalid) -> Self {
        Self {
            invalid: Some(invalid),
            ..Self::default()
        }
    }
}

/// How far apart the CPUs of a run were: the round trip of a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The first of the run, in ns.
    pub before: f64,
    /// The last of it, in ns.
    pub after: f64,
    /// The typical one, over the links between its CPUs, in ns; `None` in
    /// what version 0.2 stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
}

impl Placement {
    /// The round trip that stands for the run, in ns.
    #[must_use]
    pub fn round_trip(&self) -> f64 {
        self.typical
            .unwrap_or_else(|| (self.before * self.after).sqrt())
    }
}

/// The order in which the runs of a pair were made. It is recorded when they
/// are made, and never computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Baseline, then experiment, by the coin.
    BaselineFirst,
    /// Experiment, then baseline, by the coin.
    ExperimentFirst,
    /// At the same time, or without a time: there is no order that could
    /// matter.
    Together,
}

impl Order {
    /// The order in the judge's terms. Runs without an order are given one:
    /// nothing is read from it (see [`Pair::has_order`]).
    #[must_use]
    pub fn judged(self) -> locklab_judge::Order {
        match self {
            Self::BaselineFirst | Self::Together => locklab_judge::Order::BaselineFirst,
            Self::ExperimentFirst => locklab_judge::Order::ExperimentFirst,
        }
    }
}

impl From<locklab_judge::Order> for Order {
    fn from(order: locklab_judge::Order) -> Self {
        match order {
            locklab_judge::Order::BaselineFirst => Self::BaselineFirst,
            locklab_judge::Order::ExperimentFirst => Self::ExperimentFirst,
        }
    }
}

/// Two runs that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Its number in its cell.
    pub index: u32,
    /// The order in which its runs were made.
    pub order: Order,
    /// What the run of the baseline yielded.
    pub baseline: Sample,
    /// What the run of the experiment yielded.
    pub experiment: Sample,
}

impl Pair {
    /// Both runs, the baseline's first.
    #[must_use]
    pub fn samples(&self) -> [&Sample; 2] {
        [&self.baseline, &self.experiment]
    }

    /// Both runs, the baseline's first.
    pub fn samples_mut(&mut self) -> [&mut Sample; 2] {
        [&mut self.baseline, &mut self.experiment]
    }

    /// Whether only one of its runs was made.
    #[must_use]
    pub fn is_half(&self) -> bool {
        self.any_invalid(|i| matches!(i, Invalid::Interrupted(_)))
    }

    /// Whether one of its runs does not count for a reason of this kind.
    pub fn any_invalid(&self, kind: impl Fn(&Invalid) -> bool) -> bool {
        let invalid = self
            .samples()
            .into_iter()
            .filter_map(|s| s.invalid.as_ref());
        invalid.into_iter().any(kind)
    }

    /// Whether the machine, and not the subject, is the reason why it does not
    /// count: such a pair is run again.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.any_invalid(|i| matches!(i, Invalid::Disturbed(_)))
    }

    /// The most serious reason why it does not count.
    #[must_use]
    pub fn invalid(&self) -> Option<&Invalid> {
        let reasons = self
            .samples()
            .into_iter()
            .filter_map(|s| s.invalid.as_ref());
        reasons.min_by_key(|invalid| match invalid {
            Invalid::CheckFailed(_) => 0,
            Invalid::Failed(_) | Invalid::Interrupted(_) => 1,
            Invalid::Counter(_) => 2,
            Invalid::Disturbed(_) => 3,
        })
    }

    /// Whether its runs were made one after the other.
    #[must_use]
    pub fn has_order(&self) -> bool {
        self.order != Order::Together
    }

    /// The cache-line round trip of both runs, in ns; `None` where it was not
    /// measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<f64> {
        let [b, e] = self.samples().map(|s| s.placement.map(|p| p.round_trip()));
        let trip = (b? * e?).sqrt();
        (trip.is_finite() && trip > 0.0).then_some(trip)
    }
}
