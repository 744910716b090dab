//! The simulation of published experiments, and how well the
//! simulator agrees over several.

use crate::agreement::{Agreement, MISS, Published, agreement, factor_error};
use crate::experiment::{Cell, Direction, Experiment, MatrixOf, Measure, Run};
use crate::program_locks;
use crate::reference::Reference;
use crate::rule::Rule;
use crate::split::Group;
use locklab_host::error::Error;
use locklab_sim::{FigureKey, Outcome, Placement, Scenario, Workload, run_all};
use serde::Serialize;

/// Number of seeds over which a figure is averaged where threads are placed at
/// random, or share CPUs.
const SEEDS: usize = 3;
/// The same where threads that spin share CPUs in rounds: a round takes ten times as long if a
/// holder loses its CPU, and a published mean is of rounds of both kinds.
const SEEDS_OF_ROUNDS: usize = 6;

/// A simulated figure beside the published one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reproduced {
    /// The name of the figure.
    pub name: String,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// The direction of a published figure that has no size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The simulated figure, in the unit of the published one.
    pub ours: f64,
    /// The kind of question that it answers.
    pub question: Question,
}

impl Reproduced {
    /// Returns what was published of it, if anything was.
    pub fn theirs(&self) -> Option<Published> {
        let direction = self.direction.map(|direction| match direction {
            Direction::Above => Published::Above,
            Direction::Below => Published::Below,
        });
        direction.or(self.published.map(Published::Ratio))
    }

    fn pair(&self) -> Option<(Published, f64)> {
        Some((self.theirs()?, self.ours))
    }
}

/// Kinds of questions, for which a model may be right or wrong independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// One thread: the cost of a lock without contention.
    Uncontended,
    /// Threads of one socket.
    SameSocket,
    /// Threads of several sockets.
    AcrossSockets,
    /// Locks whose waiters may sleep, on as many CPUs as threads.
    Sleeping,
    /// Pauses between attempts, in a virtual machine that has all its CPUs.
    Backoff,
    /// The machine has more virtual CPUs than physical ones.
    Oversubscribed,
    /// There are more threads than CPUs, under an operating system.
    MoreThreads,
}

impl Question {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Uncontended,
        Self::SameSocket,
        Self::AcrossSockets,
        Self::Sleeping,
        Self::Backoff,
        Self::Oversubscribed,
        Self::MoreThreads,
    ];

    /// Returns the name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::SameSocket => "contended, same socket",
            Self::AcrossSockets => "contended, across sockets",
            Self::Sleeping => "locks that sleep",
            Self::Backoff => "backoff in a virtual machine",
            Self::Oversubscribed => "oversubscribed virtual machine",
            Self::MoreThreads => "more threads than CPUs",
        }
    }

    /// Returns the name in documents.
    pub fn key(self) -> &'static str {
        match self {
            Self::Uncontended => "uncontended",
            Self::SameSocket => "same-socket",
            Self::AcrossSockets => "across-sockets",
            Self::Sleeping => "sleeping",
            Self::Backoff => "backoff",
            Self::Oversubscribed => "oversubscribed",
            Self::MoreThreads => "more-threads",
        }
    }

    /// Returns the group of experiments that evaluates answers of this kind.
    pub fn judged_by(self) -> Group {
        match self {
            Self::Sleeping | Self::MoreThreads => Group::Sleeping,
            _ => Group::EvaluatedOnly,
        }
    }

    /// Returns the kind of a run, by its machine, its lock, its threads and their placement.
    pub fn of(scenario: &Scenario) -> Self {
        let machine = &scenario.machine;
        let of_guests = machine.get(FigureKey::VmVcpus) > 0.0;
        match scenario.threads {
            1 => Self::Uncontended,
            _ if scenario.is_oversubscribed() && of_guests => Self::Oversubscribed,
            _ if scenario.is_oversubscribed() => Self::MoreThreads,
            _ if of_guests => Self::Backoff,
            _ if program_locks::sleeps(&scenario.lock) => Self::Sleeping,
            _ if scenario.spans_sockets() => Self::AcrossSockets,
            _ => Self::SameSocket,
        }
    }
}

/// The shape of a published matrix, to print it beside the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Numbers of threads, the rows.
    pub threads: Vec<usize>,
    /// Critical lengths, the columns.
    pub critical: Vec<u32>,
    /// Non-critical lengths, the blocks.
    pub non_critical: Vec<u32>,
}

/// The result of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The name of the experiment.
    pub name: String,
    /// Number of the report, if it is one of the five.
    pub report: Option<u32>,
    /// The subject of the experiment.
    pub title: String,
    /// The group of the split that it belongs to; `None` if the split does not
    /// have it.
    pub group: Option<Group>,
    /// The modelled machine, and the figures that were changed.
    pub machine: String,
    /// Says how close that is to the published one.
    pub near: Option<String>,
    /// The CPUs that threads get, by the name of the placement.
    pub placement: &'static str,
    /// The rule by which the figures were made.
    pub rule: Rule,
    /// The source of the published figures.
    pub source: String,
    /// Holds what would settle the figures that the model misses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
    /// The shape, if the figures are those of a matrix, in its order.
    pub shape: Option<Shape>,
    /// Ours beside the published ones, in the order of the source.
    pub figures: Vec<Reproduced>,
    /// Agreement of the figures that were published.
    pub agreement: Agreement,
    /// Number of simulated accesses.
    pub accesses: u64,
    /// The hash of all traces.
    pub trace_hash: u64,
}

/// A simulated figure that is off by more than [`MISS`], or in the wrong
/// direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// The experiment that it is from.
    pub experiment: String,
    /// The name of the figure.
    pub figure: String,
    /// The published figure; none if only its direction was.
    pub published: Option<f64>,
    /// The simulated figure, in the unit of the published one.
    pub ours: f64,
    /// The factor by which the simulated figure is off, above or below; none
    /// beside a direction.
    pub factor: Option<f64>,
    /// Says whether the published ratio is on the other side of 1.
    pub wrong_direction: bool,
}

impl Reproduction {
    /// Returns the published figures and the simulated ones.
    pub fn pairs(&self) -> Vec<(Published, f64)> {
        self.figures.iter().filter_map(Reproduced::pair).collect()
    }

    /// Returns its misses, the worst first.
    pub fn misses(&self) -> Vec<Miss> {
        let miss = |figure: &Reproduced| {
            let (theirs, ours) = figure.pair()?;
            let factor = theirs.ratio().map(|theirs| factor_error(theirs, ours));
            let wrong_direction = theirs.contradicts(ours);
            let far = factor.is_some_and(|factor| factor > MISS);
            (far || wrong_direction).then(|| Miss {
                experiment: self.name.clone(),
                figure: figure.name.clone(),
                published: theirs.ratio(),
                ours,
                factor,
                wrong_direction,
            })
        };
        let mut misses: Vec<Miss> = self.figures.iter().filter_map(miss).collect();
        let factor = |miss: &Miss| miss.factor.unwrap_or(1.0);
        misses.sort_by(|a, b| factor(b).total_cmp(&factor(a)));
        misses
    }
}

/// Returns the score of a group: over all figures of its experiments, equally weighted,
/// or over those that answer one kind of question.
pub fn score<'a>(
    group: Group,
    question: Option<Question>,
    reports: impl IntoIterator<Item = &'a Reproduction>,
) -> Agreement {
    let of_group = reports.into_iter().filter(|r| r.group == Some(group));
    let pairs: Vec<_> = of_group
        .flat_map(|report| &report.figures)
        .filter(|figure| question.is_none_or(|question| figure.question == question))
        .filter_map(Reproduced::pair)
        .collect();
    agreement(&pairs)
}

/// Simulates one of [`EXPERIMENTS`](crate::EXPERIMENTS).
///
/// # Errors
/// If there is no such experiment (the message lists them), or a lock does not
/// work in the simulator.
pub fn reproduce(
    name: &str,
    seed: u64,
    workers: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Reproduction, Error> {
    let experiment = Experiment::built_in(name)?;
    let reference = experiment.published.as_ref();
    let reference = reference.ok_or_else(|| {
        Error::Failed(format!("experiments/{name}.toml has no published figures"))
    })?;
    simulate_experiment(name, &experiment, reference, seed, workers, progress)
}

/// Simulates any experiment.
///
/// # Errors
/// If the reference lacks a figure that the experiment names, the machine or a
/// placement does not exist, or a lock does not work in the simulator.
pub fn simulate_experiment(
    name: &str,
    experiment: &Experiment,
    reference: &Reference,
    seed: u64,
    workers: usize,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Reproduction, Error> {
    program_locks::register();
    let (cells, shape) = match &experiment.matrix {
        Some(matrix) => cells_of(matrix, reference).map(|(cells, shape)| (cells, Some(shape))),
        None => experiment.cells(reference).map(|cells| (cells, None)),
    }
    .map_err(|error| {
        let file = experiment.reference.as_deref().unwrap_or(name);
        error.reworded(|what| format!("{file}: {what}"))
    })?;
    // What several figures have in common, mostly a baseline, is simulated once.
    let mut runs: Vec<&Run> = Vec::new();
    let mut sides: Vec<usize> = Vec::with_capacity(2 * cells.len());
    for run in cells
        .iter()
        .flat_map(|cell| [&cell.baseline, &cell.experiment])
    {
        let known = runs.iter().position(|known| *known == run);
        sides.push(known.unwrap_or(runs.len()));
        if known.is_none() {
            runs.push(run);
        }
    }
    // A published figure is a mean over runs, and each run places threads anew.
    // A matrix has so many cells that chance evens out over them.
    let mut oversubscribed = false;
    for run in &runs {
        oversubscribed |= scenario(experiment, run, seed)?.is_oversubscribed();
    }
    let seeds = match (experiment.placement, &experiment.matrix) {
        _ if oversubscribed => SEEDS,
        (Placement::Random, None) => SEEDS,
        _ => 1,
    };
    let mut scenarios = Vec::new();
    let mut ends = Vec::with_capacity(runs.len());
    for run in &runs {
        let varies = run.barrier && oversubscribed && !program_locks::sleeps(&run.lock);
        let draws = if varies { SEEDS_OF_ROUNDS } else { seeds };
        for draw in 0..draws as u64 {
            scenarios.push(scenario(experiment, run, seed.wrapping_add(draw))?);
        }
        ends.push(scenarios.len());
    }
    let total = scenarios.len();
    let outcomes = run_all(&scenarios, workers, |done| progress(done, total))?;
    let draws = |run: usize| run.checked_sub(1).map_or(0, |before| ends[before])..ends[run];
    let value = |measure: Measure, run: usize| {
        let outcomes = outcomes[draws(run)].iter();
        let count = outcomes.len() as f64;
        match measure {
            Measure::Rate => {
                let rates = outcomes.map(|outcome| rate(experiment.rule, runs[run], outcome));
                match experiment.operations {
                    Some(_) => rate_of_mean_time(rates),
                    None => rates.sum::<f64>() / count,
                }
            }
            Measure::Fairness => outcomes.map(fairness).sum::<f64>() / count,
        }
    };
    let figures: Vec<Reproduced> = cells
        .iter()
        .zip(sides.chunks(2))
        .map(|(cell, sides)| Reproduced {
            name: cell.name.clone(),
            published: cell.published,
            direction: cell.direction,
            ours: value(cell.measure, sides[1]) / value(cell.measure, sides[0]),
            // The most demanding kind over both sides and all draws.
            question: sides
                .iter()
                .flat_map(|side| &scenarios[draws(*side)])
                .map(Question::of)
                .max()
                .unwrap_or(Question::Uncontended),
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
        placement: experiment.placement.name(),
        rule: experiment.rule,
        source: reference.source.clone(),
        settled_by: experiment.settled_by.clone(),
        shape,
        figures,
        agreement: agreement(&[]),
        accesses: outcomes.iter().map(|outcome| outcome.accesses).sum(),
        trace_hash: Outcome::hash_of_all(&outcomes),
    };
    report.agreement = agreement(&report.pairs());
    Ok(report)
}

fn scenario(experiment: &Experiment, run: &Run, seed: u64) -> Result<Scenario, Error> {
    let stop = experiment.rule.stop(experiment.acquisitions, run.threads);
    run.scenario(experiment.machine()?, experiment.placement, stop, seed)
}

/// Returns the rate of the mean time of several runs: what a program prints that repeats its
/// work.
fn rate_of_mean_time(rates: impl ExactSizeIterator<Item = f64>) -> f64 {
    rates.len() as f64 / rates.map(|rate| 1.0 / rate).sum::<f64>()
}

/// Returns the operations a second of all guests, with the stalls that are not simulated.
fn rate(rule: Rule, run: &Run, outcome: &Outcome) -> f64 {
    run.guests as f64 / (1.0 / rule.rate(outcome) + run.stall_ns * 1e-9)
}

/// Returns the fewest operations of a thread over the most of one. None at all counts as
/// half of one, which is less than a run can show.
fn fairness(outcome: &Outcome) -> f64 {
    let by_thread = outcome.ops_by_thread.iter();
    let (fewest, most) = (by_thread.clone().min(), by_thread.max());
    let of = |operations: Option<&u64>| operations.map_or(0.5, |n| (*n as f64).max(0.5));
    of(fewest) / of(most)
}

/// Returns the cells of a published matrix of the kernel benchmark.
fn cells_of(matrix: &MatrixOf, reference: &Reference) -> Result<(Vec<Cell>, Shape), Error> {
    let missing = |key: &str| Error::Usage(format!("it has no `{key}`, which a matrix needs"));
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
            return Err(Error::Usage(format!(
                "the block of non-critical length {non_critical} is not {} rows of {} ratios",
                reference.threads.len(),
                critical.len()
            )));
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
                    guests: 1,
                    operations: None,
                    barrier: false,
                };
                cells.push(Cell {
                    name: format!(
                        "non_critical={non_critical} threads={threads} critical={critical}"
                    ),
                    published: Some(ratio),
                    direction: None,
                    measure: Measure::Rate,
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
#[path = "../tests/unit/reproduction.rs"]
mod tests;
