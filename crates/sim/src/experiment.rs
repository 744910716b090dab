//! The published reports, as files a user would write, and what becomes of
//! them in simulation.
//!
//! Each file names a machine, locks, a workload and where the published
//! figures are; nothing in it can tune the model.

use crate::agreement::{Agreement, agreement};
use crate::batch::run_all;
use crate::machine::Machine;
use crate::scenario::{Scenario, Stop};
use crate::topology::Placement;
use crate::workload::{Fstat, Workload, XfsCreate};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        /// The experiments: name, file, and file of published figures.
        pub const EXPERIMENTS: &[(&str, &str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../experiments/", $name, ".toml")),
            include_str!(concat!("../../../reference/", $name, ".toml")),
        )),*];
    };
}

experiments!("virt-backoff", "mplock-anderson", "qspinlock-xfs");

/// An experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Number of the report.
    pub report: u32,
    /// What it is about.
    pub title: String,
    /// Name of the machine.
    pub machine: String,
    /// File of the published figures.
    pub reference: String,
    /// Which CPUs threads get.
    pub placement: String,
    /// Acquisitions a cell.
    pub acquisitions: u64,
    /// A whole published matrix.
    pub matrix: Option<MatrixOf>,
    /// Single figures.
    #[serde(default, rename = "figure")]
    pub figures: Vec<FigureOf>,
}

/// The locks of a published matrix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixOf {
    /// The yardstick.
    pub baseline: String,
    /// What is compared with it.
    pub experiment: String,
}

/// One published ratio.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureOf {
    /// Its name in reports.
    pub name: String,
    /// Where it is in the reference file, or `a / b`, each the mean over the
    /// rows of a table; none if the report has no such figure.
    pub published: Option<String>,
    /// Name of the workload, with its default parameters.
    pub workload: String,
    /// Threads.
    pub threads: usize,
    /// The yardstick.
    pub baseline: String,
    /// What is compared with it.
    pub experiment: String,
}

/// A figure of ours beside theirs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduced {
    /// What it is.
    pub name: String,
    /// As published, if it was.
    pub published: Option<f64>,
    /// As simulated.
    pub ours: f64,
}

/// A published matrix to print beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Rows.
    pub threads: Vec<usize>,
    /// Columns.
    pub critical: Vec<u32>,
    /// Blocks.
    pub non_critical: Vec<u32>,
}

/// What became of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// Its name.
    pub name: String,
    /// Number of the report.
    pub report: u32,
    /// What it is about.
    pub title: String,
    /// The modelled machine.
    pub machine: String,
    /// Where the published figures are from.
    pub source: String,
    /// If the figures are those of a matrix, in its order.
    pub shape: Option<Shape>,
    /// The figures.
    pub figures: Vec<Reproduced>,
    /// Of those that were published.
    pub agreement: Agreement,
    /// Accesses simulated.
    pub accesses: u64,
    /// The hash of all traces.
    pub trace_hash: u64,
}

/// Simulates one of [`EXPERIMENTS`].
///
/// # Errors
/// There is no such experiment, or a lock does not work.
pub fn reproduce(
    name: &str,
    seed: u64,
    workers: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Reproduction, String> {
    let (name, text, reference) = EXPERIMENTS
        .iter()
        .find(|(known, ..)| *known == name)
        .ok_or_else(|| {
            let known: Vec<_> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
            format!(
                "there is no experiment called `{name}`; there are {}",
                known.join(", ")
            )
        })?;
    let experiment: Experiment =
        toml::from_str(text).map_err(|error| format!("experiments/{name}.toml: {error}"))?;
    let reference: Table =
        toml::from_str(reference).map_err(|error| format!("{}: {error}", experiment.reference))?;
    let machine = Machine::named(&experiment.machine).map_err(|error| error.to_string())?;
    let plan = match &experiment.matrix {
        Some(matrix) => Plan::matrix(matrix, &reference),
        None => Plan::figures(&experiment.figures, &reference),
    }
    .ok_or_else(|| {
        format!(
            "{} does not hold what experiments/{name}.toml asks of it",
            experiment.reference
        )
    })?;
    let mut scenarios = Vec::new();
    for (workload, threads, locks) in &plan.cells {
        for lock in locks {
            let mut scenario = Scenario::new(machine.clone(), lock, *workload, *threads);
            scenario.seed = seed;
            scenario.placement = placement(&experiment.placement)?;
            scenario.stop = Stop::Acquisitions(experiment.acquisitions);
            scenarios.push(scenario);
        }
    }
    let total = scenarios.len();
    let outcomes = run_all(&scenarios, workers, |done| progress(done, total))
        .map_err(|error| error.to_string())?;
    let figures: Vec<Reproduced> = plan
        .names
        .iter()
        .zip(&plan.published)
        .zip(outcomes.chunks(2))
        .map(|((name, published), pair)| Reproduced {
            name: name.clone(),
            published: *published,
            ours: pair[1].ops_per_s / pair[0].ops_per_s,
        })
        .collect();
    let (theirs, ours): (Vec<f64>, Vec<f64>) = figures
        .iter()
        .filter_map(|figure| Some((figure.published?, figure.ours)))
        .unzip();
    Ok(Reproduction {
        name: (*name).to_owned(),
        report: experiment.report,
        title: experiment.title,
        machine: machine.name,
        source: reference
            .get("source")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        shape: plan.shape,
        agreement: agreement(&theirs, &ours),
        figures,
        accesses: outcomes.iter().map(|outcome| outcome.accesses).sum(),
        trace_hash: outcomes.iter().fold(0, |hash: u64, outcome| {
            hash.rotate_left(5) ^ outcome.trace_hash
        }),
    })
}

fn placement(name: &str) -> Result<Placement, String> {
    match name {
        "compact" => Ok(Placement::Compact),
        "numbered" => Ok(Placement::Numbered),
        "spread" => Ok(Placement::Spread),
        _ => Err(format!(
            "no placement is called `{name}`; there are compact, numbered and spread"
        )),
    }
}

struct Plan {
    /// Workload, threads, baseline and experiment.
    cells: Vec<(Workload, usize, [String; 2])>,
    names: Vec<String>,
    published: Vec<Option<f64>>,
    shape: Option<Shape>,
}

impl Plan {
    fn matrix(matrix: &MatrixOf, reference: &Table) -> Option<Self> {
        let integers = |key: &str| -> Option<Vec<u32>> {
            reference
                .get(key)?
                .as_array()?
                .iter()
                .map(|n| u32::try_from(n.as_integer()?).ok())
                .collect()
        };
        let (threads, critical) = (integers("threads")?, integers("critical_length")?);
        let mut plan = Self {
            cells: Vec::new(),
            names: Vec::new(),
            published: Vec::new(),
            shape: None,
        };
        let mut blocks = Vec::new();
        for block in reference.get("block")?.as_array()? {
            let non_critical =
                u32::try_from(block.get("non_critical_length")?.as_integer()?).ok()?;
            blocks.push(non_critical);
            let rows = block.get("ratio")?.as_array()?;
            for (&threads, row) in threads.iter().zip(rows) {
                for (&critical, ratio) in critical.iter().zip(row.as_array()?) {
                    plan.cells.push((
                        Workload::Matrix {
                            critical,
                            non_critical,
                        },
                        threads as usize,
                        [matrix.baseline.clone(), matrix.experiment.clone()],
                    ));
                    plan.names.push(format!(
                        "non_critical={non_critical} threads={threads} critical={critical}"
                    ));
                    plan.published.push(Some(number(ratio)?));
                }
            }
        }
        plan.shape = Some(Shape {
            threads: threads.into_iter().map(|n| n as usize).collect(),
            critical,
            non_critical: blocks,
        });
        Some(plan)
    }

    fn figures(figures: &[FigureOf], reference: &Table) -> Option<Self> {
        let mut plan = Self {
            cells: Vec::new(),
            names: Vec::new(),
            published: Vec::new(),
            shape: None,
        };
        for figure in figures {
            let workload = match figure.workload.as_str() {
                "fstat" => Workload::Fstat(Fstat::default()),
                "xfs-create" => Workload::XfsCreate(XfsCreate::default()),
                _ => return None,
            };
            plan.cells.push((
                workload,
                figure.threads,
                [figure.baseline.clone(), figure.experiment.clone()],
            ));
            plan.names.push(figure.name.clone());
            plan.published.push(match &figure.published {
                None => None,
                Some(expression) => Some(published(reference, expression)?),
            });
        }
        Some(plan)
    }
}

/// `key.key`, or `table.key / table.key` with means over the table's rows.
fn published(reference: &Table, expression: &str) -> Option<f64> {
    if let Some((over, under)) = expression.split_once(" / ") {
        return Some(published(reference, over)? / published(reference, under)?);
    }
    let mut keys = expression.split('.');
    let first = reference.get(keys.next()?)?;
    let find = |start: &Value| -> Option<f64> {
        number(keys.clone().try_fold(start, |value, key| value.get(key))?)
    };
    match first {
        Value::Array(rows) => {
            let values: Option<Vec<f64>> = rows.iter().map(find).collect();
            let values = values?;
            Some(values.iter().sum::<f64>() / values.len() as f64)
        }
        table => find(table),
    }
}

fn number(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or_else(|| Some(value.as_integer()? as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_found() {
        let find = |experiment: &str, expression: &str| {
            let (.., reference) = EXPERIMENTS
                .iter()
                .find(|(name, ..)| *name == experiment)
                .unwrap();
            published(&toml::from_str(reference).unwrap(), expression).unwrap()
        };
        assert_eq!(find("mplock-anderson", "ratio.padded_over_packed"), 1.37);
        let xfs = find(
            "qspinlock-xfs",
            "row.ticket.files_per_s / row.qspinlock.files_per_s",
        );
        assert!((xfs - 1.132).abs() < 0.001, "{xfs}");
    }
}
