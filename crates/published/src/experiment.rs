//! A published experiment, as a file that a user could write.
//!
//! Each file names a machine, locks, a workload and the source of the published
//! figures. Nothing in it can tune the model: of the machine it may
//! change only figures of the published machine's data sheet.

use crate::reference::{Reference, one_sentence};
use crate::rule::Rule;
use locklab_locks::catalogue;
use locklab_sim::{Fstat, Loop, Machine, Placement, Scenario, Stop, Workload, XfsCreate};
use serde::Deserialize;
use std::collections::BTreeMap;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        /// The experiments: name, file, and file of published figures.
        pub const EXPERIMENTS: &[(&str, &str, &str)] = &[$((
            $name,
            include_str!(concat!("../experiments/", $name, ".toml")),
            include_str!(concat!("../reference/", $name, ".toml")),
        )),*];
    };
}

experiments!(
    "virt-backoff",
    "mplock-anderson",
    "qspinlock-xfs",
    "cna-kernel-4s",
    "cna-paper-2s",
    "cna-paper-4s",
    "concurrency-costs-graviton",
    "concurrency-costs-graviton2",
    "concurrency-costs-icelake",
    "concurrency-costs-skylake",
    "libslock-uncontended",
    "lockbench-graviton2",
    "lockbench-haswell",
    "qspinlock-scaling",
    "spinlocks-5700x3d",
    "spinlocks-i5-3450",
);

/// The figures of a published machine's data sheet that a file may change.
const FACTS: [&str; 6] = [
    "topology.sockets",
    "topology.clusters",
    "topology.cores",
    "topology.threads",
    "core.clock_ghz",
    "core.pause_cycles",
];

/// The kind of a published experiment, as every experiment file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExperimentKind {
    /// Figures that were published, simulated beside them.
    Published,
}

/// An experiment file.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What the file compares; there is one kind that can be simulated.
    pub kind: ExperimentKind,
    /// Number of the report, if it is one of the five.
    pub report: Option<u32>,
    /// The subject of the experiment.
    pub title: String,
    /// Name of the machine.
    pub machine: String,
    /// How close that is to the published machine.
    pub near: Option<String>,
    /// Figures of the published machine's data sheet, which replace those of
    /// the machine file.
    #[serde(default)]
    pub facts: BTreeMap<String, f64>,
    /// File of the published figures.
    pub reference: String,
    /// The rule by which the published figures were made.
    pub rule: Rule,
    /// The placement of threads on CPUs.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub placement: Placement,
    /// Acquisitions per cell.
    pub acquisitions: u64,
    /// A whole published matrix.
    pub matrix: Option<MatrixOf>,
    /// Single figures.
    #[serde(default, rename = "figure")]
    pub figures: Vec<FigureOf>,
}

/// The locks of a published matrix.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MatrixOf {
    /// The baseline lock.
    pub baseline: String,
    /// The lock that is compared with it.
    pub experiment: String,
}

/// One published ratio, or one for each of several numbers of threads.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FigureOf {
    /// The name in reports.
    pub name: String,
    /// Its place in the reference file: see [`Reference::figure`]. None if
    /// nothing was published.
    pub published: Option<String>,
    /// Name of a workload, with its default parameters.
    pub workload: Option<String>,
    /// Alternatively, a loop around one lock.
    #[serde(rename = "loop")]
    pub turn: Option<LoopOf>,
    /// Number of threads.
    pub threads: Threads,
    /// Number of threads of the baseline, if different.
    pub baseline_threads: Option<usize>,
    /// The baseline lock.
    pub baseline: String,
    /// The lock that is compared with it.
    pub experiment: String,
    /// The side whose waiters do not pause in the published program.
    pub without_pause: Option<Side>,
}

/// One number of threads, or several.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Threads {
    /// One.
    One(usize),
    /// Several, each with a figure of its own.
    Each(Vec<usize>),
}

/// One or both of the two locks of a figure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The baseline.
    Baseline,
    /// The experiment.
    Experiment,
    /// Both.
    Both,
}

/// A published loop around one lock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoopOf {
    /// See [`Loop`].
    #[serde(default)]
    pub inside_ns: f64,
    /// See [`Loop`].
    #[serde(default)]
    pub outside_ns: f64,
    /// See [`Loop`].
    pub write_percent: u32,
    /// One hold in this many, times the number of threads, takes
    /// [`LoopOf::long_ns`] more.
    #[serde(default)]
    pub long_one_in_per_thread: u32,
    /// See [`Loop`].
    #[serde(default)]
    pub long_ns: f64,
    /// Mean time per operation, divided by the number of threads, for which
    /// the holder stops all threads, so rarely and so long that it is added to
    /// the simulated time.
    #[serde(default)]
    pub stall_ns_over_threads: f64,
}

/// One side of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) lock: String,
    pub(crate) threads: usize,
    pub(crate) workload: Workload,
    pub(crate) pause: bool,
    /// Added to the simulated time of each operation, ns.
    pub(crate) stall_ns: f64,
}

impl Run {
    /// Its scenario on a machine.
    pub(crate) fn scenario(
        &self,
        mut machine: Machine,
        placement: Placement,
        stop: Stop,
        seed: u64,
    ) -> Result<Scenario, String> {
        if !self.pause {
            // A turn of an empty loop.
            machine = machine.with("core.pause_cycles", 1.0)?;
        }
        let mut scenario = Scenario::new(machine, &self.lock, self.workload, self.threads);
        scenario.seed = seed;
        scenario.placement = placement;
        scenario.stop = stop;
        Ok(scenario)
    }
}

/// One ratio to simulate.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) published: Option<f64>,
    pub(crate) baseline: Run,
    pub(crate) experiment: Run,
}

impl Experiment {
    /// Parses an experiment file; `file` is its name in errors.
    ///
    /// # Errors
    /// If it is not TOML, a key is unknown or missing, or a lock, machine,
    /// placement or reference that it names does not exist. The message names
    /// the file and, where it is known, the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let experiment: Self =
            toml::from_str(text).map_err(|error| one_sentence(file, text, &error))?;
        let check = || {
            experiment.machine()?;
            if experiment.figures.is_empty() == experiment.matrix.is_none() {
                return Err("it needs a `matrix` or one `figure` and more, not both".to_owned());
            }
            if experiment.acquisitions == 0 {
                return Err("`acquisitions` is 0; give at least 1".to_owned());
            }
            let matrix = experiment.matrix.iter();
            let pairs = matrix.map(|matrix| [&matrix.baseline, &matrix.experiment]);
            let figures = experiment.figures.iter();
            let figures = figures.map(|figure| [&figure.baseline, &figure.experiment]);
            for lock in pairs.chain(figures).flatten() {
                if !catalogue::ALL.iter().any(|entry| entry.info.name == lock) {
                    return Err(format!(
                        "no lock is called `{lock}`; `locklab locks` lists them"
                    ));
                }
            }
            experiment.figures.iter().try_for_each(FigureOf::check)
        };
        check().map_err(|error| format!("{file}: {error}"))?;
        Ok(experiment)
    }

    /// The machine, with the figures of the published one.
    pub(crate) fn machine(&self) -> Result<Machine, String> {
        let machine = Machine::named(&self.machine).map_err(|error| error.to_string())?;
        self.facts
            .iter()
            .try_fold(machine, |machine, (key, &value)| {
                if !FACTS.contains(&key.as_str()) {
                    return Err(format!(
                        "`{key}` is no fact of a data sheet; those are {}",
                        FACTS.join(", ")
                    ));
                }
                machine.with(key, value)
            })
    }

    /// Its single figures, with the published values.
    pub(crate) fn cells(&self, reference: &Reference) -> Result<Vec<Cell>, String> {
        let cells = self.figures.iter().map(|figure| figure.cells(reference));
        Ok(cells.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

impl FigureOf {
    fn check(&self) -> Result<(), String> {
        let fault = |what: &str| Err(format!("figure `{}`: {what}", self.name));
        if let Some(turn) = &self.turn {
            let lengths = [
                turn.inside_ns,
                turn.outside_ns,
                turn.long_ns,
                turn.stall_ns_over_threads,
            ];
            if lengths.iter().any(|ns| !(0.0..1e6).contains(ns)) {
                return fault("a length of its loop is not from 0 to 1,000,000 ns");
            }
            if turn.write_percent > 100 {
                return fault("`write_percent` is above 100");
            }
        }
        match (&self.turn, self.workload.as_deref()) {
            (None, None) => fault("it has no `workload` and no `loop`; give one of the two"),
            (Some(_), Some(_)) => fault("it has a `workload` and a `loop`; give one of the two"),
            (None, Some(name)) if !["fstat", "xfs-create"].contains(&name) => fault(&format!(
                "no workload is called `{name}`; there are fstat and xfs-create"
            )),
            _ => Ok(()),
        }
    }

    fn cells(&self, reference: &Reference) -> Result<Vec<Cell>, String> {
        let cell = |name: String, threads: usize| {
            let below = self.baseline_threads.unwrap_or(threads);
            let published = self.published.as_ref();
            let published = published
                .map(|expression| reference.figure(expression, threads, below))
                .transpose()?;
            Ok(Cell {
                name,
                published,
                baseline: self.run(&self.baseline, below, Side::Baseline),
                experiment: self.run(&self.experiment, threads, Side::Experiment),
            })
        };
        match &self.threads {
            Threads::One(threads) => Ok(vec![cell(self.name.clone(), *threads)?]),
            Threads::Each(several) => several
                .iter()
                .map(|&threads| cell(format!("{} threads={threads}", self.name), threads))
                .collect(),
        }
    }

    fn run(&self, lock: &str, threads: usize, side: Side) -> Run {
        let workload = match (&self.turn, self.workload.as_deref()) {
            (Some(turn), _) => Workload::Loop(Loop {
                inside_ns: turn.inside_ns,
                outside_ns: turn.outside_ns,
                write_percent: turn.write_percent,
                long_one_in: turn.long_one_in_per_thread * threads as u32,
                long_ns: turn.long_ns,
            }),
            (None, Some("xfs-create")) => Workload::XfsCreate(XfsCreate::default()),
            (None, _) => Workload::Fstat(Fstat::default()),
        };
        let stall = self.turn.map_or(0.0, |turn| turn.stall_ns_over_threads);
        Run {
            lock: lock.to_owned(),
            threads,
            workload,
            pause: self
                .without_pause
                .is_none_or(|whose| whose != Side::Both && whose != side),
            stall_ns: stall / threads as f64,
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/experiment.rs"]
mod tests;
