//! The inputs of a report: an experiment with its verdicts, the facts that only
//! the caller knows, and the words for what is compared.
//!
//! Every part of a report reads these, and none of them says how a report looks.

use crate::experiment::{Cell, Experiment, Provenance};
use crate::matrix::OPS;
use crate::verdicts::{JudgedCell, Verdicts};
use locklab_document::number;
use locklab_judge::Verdict;
use serde::Deserialize;

/// The words in which the report of one kind of comparison speaks of what is
/// compared; a backend knows what that is, a report does not.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The noun for a subject, such as "lock".
    pub subject: &'static str,
    /// Holds what waiters of a lean subject do without, which is why some users can take
    /// no other: a noun phrase and a clause with "if".
    pub lean: [&'static str; 2],
    /// Holds what is measured where there are more threads than CPUs: a clause.
    pub oversubscribed: &'static str,
    /// Says why threads were off their CPUs: a clause.
    pub off_cpu: &'static str,
    /// Holds what operations and handoffs that point opposite ways may mean: a clause.
    pub handoffs: &'static str,
}

impl Words {
    /// The words that are true of whatever is compared.
    pub const USUAL: Self = Self {
        subject: "subject",
        lean: ["lean", "if it must be lean"],
        oversubscribed: "the figures include the scheduler",
        off_cpu: "something else ran, or they sleep",
        handoffs: "read both",
    };
}

impl Default for Words {
    fn default() -> Self {
        Self::USUAL
    }
}

/// The facts of a report that only the caller knows.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The date of the measurement, as it is to be printed.
    pub date: String,
    /// The command line that repeats it.
    pub command: String,
    /// The experiment file, or else the source of the experiment's subject, where
    /// there is one: code hosts show a verdict beside it.
    pub file: Option<String>,
    /// The time of its start, as `2026-11-20T12:00:00` in UTC, where a time means
    /// anything.
    pub started: Option<String>,
    /// The words for this kind of comparison.
    pub words: Words,
}

/// The inputs of a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) verdicts: &'a Verdicts,
    pub(super) context: &'a Context,
    pub(super) lengths: Lengths,
}

/// The unit of the lengths of a matrix, and who competes: the two fields of a
/// matrix's `spec` that its report must read, with the noun for its subjects.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Lengths {
    unit: Unit,
    /// Processes and shared memory instead of threads.
    processes: bool,
    /// The noun of [`Words`].
    #[serde(skip)]
    subject: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    #[default]
    Units,
    Nanoseconds,
}

impl Lengths {
    /// Returns " [ns]" where lengths are nanoseconds.
    pub(super) fn unit(self) -> &'static str {
        match self.unit {
            Unit::Units => "",
            Unit::Nanoseconds => " [ns]",
        }
    }

    /// Returns the noun for those that compete.
    pub(super) fn noun(self) -> &'static str {
        if self.processes { "process" } else { "thread" }
    }

    /// Returns ", 4 locks", where the number of those in use at once was asked.
    pub(super) fn at_once(self, count: Option<u64>) -> String {
        count.map_or_else(String::new, |n| {
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            format!(", {}", number::count(n, self.subject))
        })
    }
}

/// The two sides of a comparison, as a sentence names them.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub(super) experiment: String,
    pub(super) baseline: String,
    /// The comparatives for better and worse.
    calls: [&'static str; 2],
}

impl Sides {
    /// Returns "faster" or "slower" for a rate, "better" or "worse" for another metric;
    /// other verdicts have their own word.
    pub(super) fn word(&self, verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Better => self.calls[0],
            Verdict::Worse => self.calls[1],
            other => other.word(),
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(
        experiment: &'a Experiment,
        verdicts: &'a Verdicts,
        context: &'a Context,
    ) -> Self {
        Self {
            experiment,
            verdicts,
            context,
            lengths: Lengths {
                subject: context.words.subject,
                ..Lengths::deserialize(&experiment.spec).unwrap_or_default()
            },
        }
    }

    /// Returns the cell of a judged cell.
    pub(super) fn cell(&self, judged: &JudgedCell) -> &'a Cell {
        &self.experiment.cells[judged.cell]
    }

    /// Returns the cells that were measured, as they were judged.
    pub(super) fn measured(&self) -> impl Iterator<Item = &'a JudgedCell> {
        self.verdicts.cells.iter().filter(|c| c.is_measured())
    }

    /// Returns the cells without any pair.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'a Cell> {
        let cells = self.verdicts.cells.iter().filter(|c| !c.is_measured());
        cells.map(|judged| self.cell(judged))
    }

    /// Returns the source of every figure, as text.
    pub(super) fn source(&self) -> String {
        match &self.experiment.provenance {
            Provenance::Hardware(name) => format!("hardware: measured on {name}"),
            Provenance::Simulation(name) => {
                format!("simulation: the modelled machine {name}; no figure was measured")
            }
            Provenance::Model(name) => {
                format!("model: computed by {name} from a real execution; not measured")
            }
        }
    }

    /// Returns the two sides and the words for their difference in this metric.
    pub(super) fn sides(&self, metric: &str) -> Sides {
        let labels = &self.experiment.labels;
        let (experiment, baseline) = match self.experiment.design.aa {
            true => (
                format!("one copy of {}", labels.baseline),
                "the other".into(),
            ),
            false => (labels.experiment.clone(), labels.baseline.clone()),
        };
        let calls = match metric {
            OPS => ["faster", "slower"],
            _ => ["better", "worse"],
        };
        Sides {
            experiment,
            baseline,
            calls,
        }
    }

    /// Returns a text such as "mcs against ticket".
    pub(super) fn subject(&self) -> String {
        let labels = &self.experiment.labels;
        if self.experiment.design.aa {
            format!("{} against itself", labels.baseline)
        } else {
            format!("{} against {}", labels.experiment, labels.baseline)
        }
    }
}
