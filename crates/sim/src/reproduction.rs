//! What becomes of a published experiment in simulation, and how well the
//! simulator does over several.

use crate::agreement::{Agreement, MISS, agreement, factor_error, wrong_direction};
use crate::batch::run_all;
use crate::experiment::{Cell, EXPERIMENTS, Experiment, MatrixOf, Run};
use crate::metrics::Outcome;
use crate::reference::Reference;
use crate::scenario::{Scenario, Stop};
use crate::split::Group;
use crate::topology::Placement;
use crate::workload::Workload;
use serde::Serialize;

/// Seeds over which a figure is a mean where threads are placed at random.
const PLACEMENTS: usize = 3;

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
    /// Number of the report, if it is one of the five.
    pub report: Option<u32>,
    /// What it is about.
    pub title: String,
    /// What it is for; none if the split does not have it.
    pub group: Option<Group>,
    /// The modelled machine, and what was changed of it.
    pub machine: String,
    /// How near that is to the published one.
    pub near: Option<String>,
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

/// A figure of ours that is off by more than [`MISS`], or in the wrong
/// direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// Of which experiment.
    pub experiment: String,
    /// Which figure.
    pub figure: String,
    /// As published.
    pub published: f64,
    /// As simulated.
    pub ours: f64,
    /// By what factor ours is off, above or below.
    pub factor: f64,
    /// Whether the published ratio is on the other side of 1.
    pub wrong_direction: bool,
}

impl Reproduction {
    /// The published figures and ours.
    pub fn pairs(&self) -> (Vec<f64>, Vec<f64>) {
        let figures = self.figures.iter();
        figures
            .filter_map(|figure| Some((figure.published?, figure.ours)))
            .unzip()
    }

    /// Its misses, the worst first.
    pub fn misses(&self) -> Vec<Miss> {
        let miss = |figure: &Reproduced| {
            let (theirs, ours) = (figure.published?, figure.ours);
            let factor = factor_error(theirs, ours);
            let wrong_direction = wrong_direction(theirs, ours);
            (factor > MISS || wrong_direction).then(|| Miss {
                experiment: self.name.clone(),
                figure: figure.name.clone(),
                published: theirs,
                ours,
                factor,
                wrong_direction,
            })
        };
        let mut misses: Vec<Miss> = self.figures.iter().filter_map(miss).collect();
        misses.sort_by(|a, b| b.factor.total_cmp(&a.factor));
        misses
    }
}

/// The score of a group: over all figures of its experiments, each the same.
pub fn score<'a>(group: Group, reports: impl IntoIterator<Item = &'a Reproduction>) -> Agreement {
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for report in reports {
        if report.group == Some(group) {
            let pairs = report.pairs();
            theirs.extend(pairs.0);
            ours.extend(pairs.1);
        }
    }
    agreement(&theirs, &ours)
}

/// Simulates one of [`EXPERIMENTS`].
///
/// # Errors
/// One sentence: there is no such experiment, or a lock does not work.
pub fn reproduce(
    name: &str,
    seed: u64,
    workers: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Reproduction, String> {
    let found = EXPERIMENTS.iter().find(|(known, ..)| *known == name);
    let (_, experiment, reference) = found.ok_or_else(|| {
        let known: Vec<_> = EXPERIMENTS.iter().map(|(name, ..)| *name).collect();
        format!(
            "there is no experiment called `{name}`; there are {}",
            known.join(", ")
        )
    })?;
    let experiment = Experiment::parse(&format!("experiments/{name}.toml"), experiment)?;
    let reference = Reference::parse(&experiment.reference, reference)?;
    simulate_experiment(name, &experiment, &reference, seed, workers, progress)
}

/// Simulates an experiment of one's own.
///
/// # Errors
/// One sentence: the reference does not hold what the experiment asks of it,
/// or a lock does not work.
pub fn simulate_experiment(
    name: &str,
    experiment: &Experiment,
    reference: &Reference,
    seed: u64,
    workers: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Reproduction, String> {
    let (cells, shape) = match &experiment.matrix {
        Some(matrix) => cells_of(matrix, reference).map(|(cells, shape)| (cells, Some(shape))),
        None => experiment.cells(reference).map(|cells| (cells, None)),
    }
    .map_err(|error| format!("{}: {error}", experiment.reference))?;
    let runs: Vec<&Run> = cells
        .iter()
        .flat_map(|cell| [&cell.baseline, &cell.experiment])
        .collect();
    // A published figure is a mean over runs, and each run places threads anew.
    let seeds = match experiment.placement()? {
        Placement::Random => PLACEMENTS,
        _ => 1,
    };
    let mut scenarios = Vec::new();
    for run in &runs {
        for draw in 0..seeds as u64 {
            scenarios.push(scenario(experiment, run, seed.wrapping_add(draw))?);
        }
    }
    let total = scenarios.len();
    let outcomes = run_all(&scenarios, workers, |done| progress(done, total))
        .map_err(|error| error.to_string())?;
    let of_run = runs.iter().zip(outcomes.chunks(seeds));
    let rates: Vec<f64> = of_run
        .map(|(run, outcomes)| {
            let rates = outcomes.iter().map(|outcome| rate(run, outcome));
            rates.sum::<f64>() / seeds as f64
        })
        .collect();
    let figures: Vec<Reproduced> = cells
        .iter()
        .zip(rates.chunks(2))
        .map(|(cell, rates)| Reproduced {
            name: cell.name.clone(),
            published: cell.published,
            ours: rates[1] / rates[0],
        })
        .collect();
    let facts = experiment.facts.iter();
    let facts: Vec<String> = facts
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let mut report = Reproduction {
        name: name.to_owned(),
        report: experiment.report,
        title: experiment.title.clone(),
        group: Group::of(name),
        machine: if facts.is_empty() {
            experiment.machine.clone()
        } else {
            format!("{} with {}", experiment.machine, facts.join(", "))
        },
        near: experiment.near.clone(),
        source: reference.source.clone(),
        shape,
        figures,
        agreement: agreement(&[], &[]),
        accesses: outcomes.iter().map(|outcome| outcome.accesses).sum(),
        trace_hash: outcomes.iter().fold(0, |hash: u64, outcome| {
            hash.rotate_left(5) ^ outcome.trace_hash
        }),
    };
    let (theirs, ours) = report.pairs();
    report.agreement = agreement(&theirs, &ours);
    Ok(report)
}

fn scenario(experiment: &Experiment, run: &Run, seed: u64) -> Result<Scenario, String> {
    let mut machine = experiment.machine()?;
    if !run.pause {
        // A turn of an empty loop.
        machine = machine.with("core.pause_cycles", 1.0)?;
    }
    let mut scenario = Scenario::new(machine, &run.lock, run.workload, run.threads);
    scenario.seed = seed;
    scenario.placement = experiment.placement()?;
    scenario.stop = Stop::Acquisitions(experiment.acquisitions);
    Ok(scenario)
}

/// Operations a second, with the stalls that are not simulated.
fn rate(run: &Run, outcome: &Outcome) -> f64 {
    1.0 / (1.0 / outcome.ops_per_s + run.stall_ns * 1e-9)
}

/// The cells of a published matrix of the kernel benchmark.
fn cells_of(matrix: &MatrixOf, reference: &Reference) -> Result<(Vec<Cell>, Shape), String> {
    let missing = |key: &str| format!("it has no `{key}`, which a matrix needs");
    let critical = reference.figures.get("critical_length");
    let critical: Vec<u32> = critical
        .and_then(|value| value.clone().try_into().ok())
        .ok_or_else(|| missing("critical_length"))?;
    let blocks = reference.figures.get("block");
    let blocks: Vec<Block> = blocks
        .and_then(|value| value.clone().try_into().ok())
        .ok_or_else(|| missing("block"))?;
    let mut cells = Vec::new();
    for block in &blocks {
        let non_critical = block.non_critical_length;
        let full = block.ratio.len() == reference.threads.len();
        if !full || block.ratio.iter().any(|row| row.len() != critical.len()) {
            return Err(format!(
                "the block of non-critical length {non_critical} is not {} rows of {} ratios",
                reference.threads.len(),
                critical.len()
            ));
        }
        for (&threads, row) in reference.threads.iter().zip(&block.ratio) {
            for (&critical, &ratio) in critical.iter().zip(row) {
                let run = |lock: &str| Run {
                    lock: lock.to_owned(),
                    threads,
                    workload: Workload::Matrix {
                        critical,
                        non_critical,
                    },
                    pause: true,
                    stall_ns: 0.0,
                };
                cells.push(Cell {
                    name: format!(
                        "non_critical={non_critical} threads={threads} critical={critical}"
                    ),
                    published: Some(ratio),
                    baseline: run(&matrix.baseline),
                    experiment: run(&matrix.experiment),
                });
            }
        }
    }
    let shape = Shape {
        threads: reference.threads.clone(),
        critical,
        non_critical: blocks.iter().map(|b| b.non_critical_length).collect(),
    };
    Ok((cells, shape))
}

#[derive(serde::Deserialize)]
struct Block {
    non_critical_length: u32,
    ratio: Vec<Vec<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, expression: &str) -> f64 {
        let (_, experiment, reference) = EXPERIMENTS
            .iter()
            .find(|(known, ..)| *known == name)
            .unwrap();
        let experiment = Experiment::parse(name, experiment).unwrap();
        let reference = Reference::parse(&experiment.reference, reference).unwrap();
        reference.figure(expression, 8, 8).unwrap()
    }

    #[test]
    fn published_figures_are_found() {
        assert_eq!(found("mplock-anderson", "ratio.padded_over_packed"), 1.37);
        let xfs = found(
            "qspinlock-xfs",
            "row.ticket.files_per_s / row.qspinlock.files_per_s",
        );
        assert!((xfs - 1.132).abs() < 0.001, "{xfs}");
    }

    fn report(name: &str, figures: &[(f64, f64)]) -> Reproduction {
        let figures = figures.iter().enumerate();
        let figures = figures.map(|(at, &(published, ours))| Reproduced {
            name: format!("f{at}"),
            published: Some(published),
            ours,
        });
        Reproduction {
            name: name.to_owned(),
            report: None,
            title: String::new(),
            group: Group::of(name),
            machine: String::new(),
            near: None,
            source: String::new(),
            shape: None,
            figures: figures.collect(),
            agreement: agreement(&[], &[]),
            accesses: 0,
            trace_hash: 0,
        }
    }

    #[test]
    fn the_two_scores_are_apart_and_each_figure_counts_once() {
        let reports = [
            report("virt-backoff", &[(1.5, 1.2), (2.0, 2.0)]),
            report("cna-kernel-4s", &[(1.5, 0.9)]),
            report("of-ones-own", &[(9.0, 1.0)]),
        ];
        let structure = score(Group::Structure, &reports);
        assert_eq!((structure.figures, structure.direction), (2, Some(1.0)));
        let evaluated = score(Group::EvaluatedOnly, &reports);
        assert_eq!((evaluated.figures, evaluated.direction), (1, Some(0.0)));
    }

    #[test]
    fn misses_are_those_off_by_a_quarter_or_on_the_wrong_side() {
        let report = report(
            "x",
            &[(1.5, 1.3), (1.5, 1.1), (1.1, 0.99), (1.0, 1.2), (2.0, 0.5)],
        );
        let misses = report.misses();
        let names: Vec<_> = misses
            .iter()
            .map(|miss| (miss.figure.as_str(), miss.wrong_direction))
            .collect();
        assert_eq!(names, [("f4", true), ("f1", false), ("f2", true)]);
    }

    #[test]
    fn a_small_experiment_of_ones_own_is_simulated() {
        let experiment = Experiment::parse(
            "e.toml",
            "kind = \"published\"\ntitle = \"t\"\nmachine = \"flat-16\"\nreference = \"f.toml\"\n\
             placement = \"compact\"\nacquisitions = 500\n\
             [[figure]]\nname = \"a\"\npublished = \"ns.b / ns.a\"\nthreads = [1, 2]\n\
             baseline = \"ttas\"\nexperiment = \"mcs\"\n\
             loop = { write_percent = 50, outside_ns = 100, long_one_in_per_thread = 2, \
             long_ns = 50, stall_ns_over_threads = 10 }\n",
        )
        .unwrap();
        let text = "source = \"s\"\ndate = \"2019-03-04\"\nmachine = \"m\"\nread = \"r\"\n\
                    sure = \"s\"\nthreads = [1, 2]\n[ns]\na = [1, 2]\nb = [1, 3]\n";
        let reference = Reference::parse("f.toml", text).unwrap();
        let run = || simulate_experiment("own", &experiment, &reference, 1, 2, |_, _| {});
        let report = run().unwrap();
        assert_eq!(report.group, None);
        assert_eq!(report.figures[1].published, Some(1.5));
        assert!(report.figures.iter().all(|figure| figure.ours > 0.0));
        assert_eq!(report.trace_hash, run().unwrap().trace_hash);
        let missing = Reference::parse("f.toml", &text.replace("b = [1, 3]", "")).unwrap();
        let error = simulate_experiment("own", &experiment, &missing, 1, 2, |_, _| {});
        assert_eq!(error.unwrap_err(), "f.toml: it has no figure `ns.b`");
    }
}
