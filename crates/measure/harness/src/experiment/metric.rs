//! Describes what a run is measured by: a metric, its unit and direction, and where its
//! figures come from. A source must never claim more than the backend did.

use super::key::Key;
use locklab_document::Role;
use locklab_judge::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure that each run gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name, such as `ops_per_s` or `l1i-misses:k`.
    pub name: String,
    /// The unit; empty for a count or a ratio.
    pub unit: String,
    /// The direction in which it improves.
    pub direction: Direction,
    /// Says whether it decides, explains or only describes.
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
    /// Returns a screening metric of which more is better.
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

    /// Returns a screening metric of which less is better.
    #[must_use]
    pub fn lower(name: &str, unit: &str, source: Source) -> Self {
        Self {
            direction: Direction::LowerIsBetter,
            ..Self::higher(name, unit, source)
        }
    }

    /// Returns the metric in another role.
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
    /// Counted by the backend itself, around what it runs. Stores and documents of earlier
    /// versions have the name `instrument`, so it stays.
    #[serde(rename = "instrument")]
    Backend,
    /// The i-cache model, in an emulated execution.
    Model,
    /// The simulator, on a modelled machine.
    Simulation,
    /// The clock of a machine that a program translates: no time of anything.
    Emulation,
    /// The size of the program's file on disk.
    File,
}

impl Source {
    /// Returns the source in words, for a report.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Output => "hardware; as the program or its client prints it",
            Self::Process => {
                "hardware; the kernel's account of the process and its children (wait4)"
            }
            Self::Hardware => "hardware; a counter of the processor, running all the time",
            Self::Software => "hardware; a software event of the kernel (perf_event_open)",
            Self::Backend => "hardware; counted by the threads under test",
            Self::File => "the program's file; bytes of its function symbols",
            Self::Model => "model; L1i of the stated geometry in an emulated execution",
            Self::Simulation => "simulation; counted on the modelled machine",
            Self::Emulation => "emulation; the clock of a translated machine, not real time",
        }
    }
}
