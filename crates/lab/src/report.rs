//! From verdicts to a document of text, tables and charts.
//!
//! A report knows nothing of how a figure was made; it names the figure's
//! source, and claims no more than the verdicts. Nothing here measures,
//! judges or lays out.

mod caveats;
mod design;
mod findings;
mod matrix;
mod placed;
mod placement;
mod rank;
mod region;
mod regions;
pub mod results;
mod workloads;

pub(crate) use rank::today_at;

use crate::experiment::{Cell, Experiment, Layout, Provenance};
use crate::verdicts::{JudgedCell, Verdicts};
use locklab_document::{Document, Section};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The words in which the report of one kind of comparison speaks of what is
/// compared; an instrument knows what that is, a report does not.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The noun for a subject, such as "lock".
    pub subject: &'static str,
    /// What is measured where there are more threads than CPUs: a clause.
    pub oversubscribed: &'static str,
    /// Why threads were off their CPUs: a clause.
    pub off_cpu: &'static str,
    /// What operations and handoffs that point opposite ways may mean: a
    /// clause.
    pub handoffs: &'static str,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            subject: "subject",
            oversubscribed: "this measures the scheduler with them",
            off_cpu: "something else ran, or they sleep",
            handoffs: "read both",
        }
    }
}

/// The facts of a report that only the caller knows.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The date of the measurement, as it is to be printed.
    pub date: String,
    /// The command line that repeats it.
    pub command: String,
    /// The experiment file, where there is one.
    pub file: Option<String>,
    /// The words for this kind of comparison.
    pub words: Words,
    /// What the instruments that the caller knows add.
    pub reporters: &'static [Reporter],
}

/// What only one instrument adds to the report of an experiment: sections, and
/// fields of its JSON.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// Sections after the others.
    pub sections: Vec<Section>,
    /// Fields of the JSON document.
    pub data: Map<String, Value>,
}

/// How an instrument adds to the report of a stored experiment, from what is
/// stored alone. The command lists those of its instruments.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// The kind of experiment that it adds to.
    pub kind: &'static str,
    /// Whether it adds to an experiment of this provenance.
    pub of: fn(&Provenance) -> bool,
    /// What it adds.
    pub additions: fn(&Experiment, &Verdicts) -> Additions,
}

/// The report of an experiment, with what its instruments add.
#[must_use]
pub fn document(experiment: &Experiment, verdicts: &Verdicts, context: &Context) -> Document {
    let report = Report::new(experiment, verdicts, context);
    let mut document = match experiment.layout() {
        Layout::Matrix => matrix::document(&report),
        Layout::Workloads => workloads::document(&report),
        Layout::Ranking => rank::document(&report),
    };
    for reporter in context.reporters {
        if reporter.kind == experiment.kind && (reporter.of)(&experiment.provenance) {
            let additions = (reporter.additions)(experiment, verdicts);
            document.sections.extend(additions.sections);
            document.data.extend(additions.data);
        }
    }
    document
}

/// The inputs of a report.
#[derive(Clone, Copy, Debug)]
struct Report<'a> {
    experiment: &'a Experiment,
    verdicts: &'a Verdicts,
    context: &'a Context,
    lengths: Lengths,
}

/// The unit of the lengths of a matrix, and what competes for the lock: the two
/// fields of a matrix's `spec` that its report must read.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Lengths {
    unit: Unit,
    /// Processes and shared memory instead of threads.
    processes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    #[default]
    Units,
    Nanoseconds,
}

impl Lengths {
    /// " [ns]" where lengths are nanoseconds.
    fn unit(self) -> &'static str {
        match self.unit {
            Unit::Units => "",
            Unit::Nanoseconds => " [ns]",
        }
    }

    /// The noun for what competes for the lock.
    fn noun(self) -> &'static str {
        if self.processes { "process" } else { "thread" }
    }
}

impl<'a> Report<'a> {
    fn new(experiment: &'a Experiment, verdicts: &'a Verdicts, context: &'a Context) -> Self {
        Self {
            experiment,
            verdicts,
            context,
            lengths: Lengths::deserialize(&experiment.spec).unwrap_or_default(),
        }
    }

    /// The cell of a judged cell.
    fn cell(&self, judged: &JudgedCell) -> &'a Cell {
        &self.experiment.cells[judged.cell]
    }

    /// Cells that were measured, as they were judged.
    fn measured(&self) -> impl Iterator<Item = &'a JudgedCell> {
        self.verdicts.cells.iter().filter(|c| c.is_measured())
    }

    /// Cells without any pair.
    fn missing(&self) -> impl Iterator<Item = &'a Cell> {
        let cells = self.verdicts.cells.iter().filter(|c| !c.is_measured());
        cells.map(|judged| self.cell(judged))
    }

    /// The source of every figure, as text.
    fn source(&self) -> String {
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

    /// "mcs against ticket".
    fn subject(&self) -> String {
        let labels = &self.experiment.labels;
        if self.experiment.design.aa {
            format!("{} against itself", labels.baseline)
        } else {
            format!("{} against {}", labels.experiment, labels.baseline)
        }
    }
}
