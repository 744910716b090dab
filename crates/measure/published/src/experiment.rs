//! A published experiment, as a file that a user could write.
//!
//! Each file names a machine, locks, a workload and the source of the published
//! figures. Nothing in it can tune the model: of the machine it may
//! change only figures of the published machine's data sheet.

use crate::agreement::FLAT;
use crate::lockhammer;
use crate::program_locks;
use crate::reference::{Reference, not_toml};
use crate::rule::Rule;
use locklab_host::error::Error;
use locklab_locks::catalogue;
use locklab_sim::{
    Counter, Counting, FigureKey, Fstat, Loop, Machine, Placement, Scenario, Stop, Workload,
    XfsCreate,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        /// The experiments: name and file, in which the published figures are too.
        pub const EXPERIMENTS: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!("../experiments/", $name, ".toml")),
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
    "awn-ticket-opteron",
    "cas-loops-d2191",
    "cas-loops-e5-2680v4",
    "fairness-graviton2",
    "fairness-haswell",
    "guests-dbench",
    "guests-ebizzy",
    "guests-kcbench",
    "rust-spin-e5-2690v3",
    "ticket-opteron",
    "vcpus-kernel-build",
    "vcpus-locktorture",
    "mutexes-e5-2680v4",
    "mutexes-e5-2690v3",
    "mutexes-epyc-7502",
    "mutexes-epyc-7571",
    "mutexes-i7-10750h",
    "mutexes-i7-7820hq",
    "mutexes-parking-lot-419",
    "mutexes-parking-lot-461",
    "mutexes-swift-nio",
    "mutexes-tr-1950x",
    "mutexes-tr-3970x",
    "mutexes-zio",
    "spinlocks-i5-2500k",
);

/// The figures of a published machine's data sheet that a file may change, of the source of
/// its kernel, and of what a wake-up costs through a hypervisor.
const FACTS: [FigureKey; 11] = [
    FigureKey::TopologySockets,
    FigureKey::TopologyClusters,
    FigureKey::TopologyCores,
    FigureKey::TopologyThreads,
    FigureKey::CoreClockGhz,
    FigureKey::CorePauseCycles,
    FigureKey::VmVcpus,
    FigureKey::VmPleWindowCycles,
    FigureKey::SchedulerLatencyUs,
    FigureKey::SchedulerWakeCallUs,
    FigureKey::SchedulerWakeUs,
];

/// Counters without a lock, which a file may name in the place of a lock, and what a
/// turn does to them.
const COUNTERS: [(&str, Counting); 2] = [
    (
        "counter-cas",
        Counting::CompareAndSwap { reads_again: true },
    ),
    (
        "counter-cas-seen",
        Counting::CompareAndSwap { reads_again: false },
    ),
];

/// Returns what a turn does, if this is a counter and no lock.
pub(crate) fn counting(lock: &str) -> Option<Counting> {
    let found = COUNTERS.iter().find(|(known, _)| *known == lock);
    found
        .map(|(_, counting)| *counting)
        .or_else(|| lockhammer::counting(lock))
}

/// Returns a loop around a lock, or around the changes of a counter.
pub(crate) fn workload(lock: &str, turn: Loop) -> Workload {
    match counting(lock) {
        None => Workload::Loop(Loop {
            write_one_in: lockhammer::write_one_in(lock),
            ..turn
        }),
        Some(counting) => Workload::Counter(Counter {
            inside_ns: turn.inside_ns,
            outside_ns: turn.outside_ns,
            counting,
            by_clock: turn.by_clock,
        }),
    }
}

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
    /// Says what the file compares; there is one kind that can be simulated.
    pub kind: ExperimentKind,
    /// Number of the report, if it is one of the five.
    pub report: Option<u32>,
    /// The subject of the experiment.
    pub title: String,
    /// Name of the machine.
    pub machine: String,
    /// Says how close that is to the published machine.
    pub near: Option<String>,
    /// Figures of the published machine's data sheet, which replace those of
    /// the machine file.
    #[serde(default)]
    pub facts: BTreeMap<String, f64>,
    /// The published figures.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "BTreeMap<String, serde_json::Value>")
    )]
    pub published: Option<Reference>,
    /// File of the published figures, where they are not in this one.
    pub reference: Option<String>,
    /// Says what would settle the figures that the model misses: a measurement that nobody
    /// has published, as far as is known.
    pub settled_by: Option<String>,
    /// The rule by which the published figures were made.
    pub rule: Rule,
    /// The placement of threads on CPUs.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub placement: Placement,
    /// Acquisitions per cell.
    pub acquisitions: u64,
    /// Operations of each thread in a published program that repeats fixed work and prints the
    /// mean of the times. Where threads share CPUs each does all of them: how many slices they
    /// take decides who is preempted. Elsewhere as many are enough as make the acquisitions.
    pub operations: Option<u64>,
    /// Says that the threads of a round sleep at a barrier until all of it are let go, and that
    /// its time is from then until who lets them go has seen all come to a second one.
    #[serde(default)]
    pub barrier: bool,
    /// A whole published matrix.
    pub matrix: Option<MatrixOf>,
    /// Figures of single cells, where no whole matrix was published.
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
    /// Says whether only the direction of the published figure is compared: what was
    /// measured is near to what is simulated, and not the same.
    #[serde(default)]
    pub direction_only: bool,
    /// Names the quantity of the ratio.
    #[serde(default)]
    pub measure: Measure,
    /// Name of a workload, with its default parameters.
    pub workload: Option<String>,
    /// Alternatively, a loop around one lock.
    #[serde(rename = "loop")]
    pub turn: Option<LoopOf>,
    /// Number of threads.
    pub threads: Threads,
    /// Number of threads of the baseline, if different.
    pub baseline_threads: Option<usize>,
    /// Virtual machines that share the hardware, each with so many threads; the
    /// figure is of all of them together. Each is simulated with its part of the
    /// hardware threads.
    pub guests: Option<usize>,
    /// Number of those of the baseline, if different.
    pub baseline_guests: Option<usize>,
    /// The baseline lock.
    pub baseline: String,
    /// The lock that is compared with it.
    pub experiment: String,
    /// The side whose waiters do not pause in the published program.
    pub without_pause: Option<Side>,
}

/// Names the quantity of a published ratio.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Operations per second.
    #[default]
    Rate,
    /// The fewest operations of a thread over the most of one.
    Fairness,
}

/// The direction of a figure that has no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The ratio is above 1.
    Above,
    /// The ratio is below 1.
    Below,
}

/// One number of threads, or several.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Threads {
    /// All figures have the same number.
    One(usize),
    /// Several, each with a figure of its own.
    Each(Vec<usize>),
}

/// One or both of the two locks of a figure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The baseline only.
    Baseline,
    /// The experiment only.
    Experiment,
    /// Both locks.
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
    /// See [`Loop`].
    #[serde(default)]
    pub counts_in_line: u32,
    /// One hold in this many, times the number of threads, takes
    /// [`LoopOf::long_ns`] more.
    #[serde(default)]
    pub long_one_in_per_thread: u32,
    /// See [`Loop`].
    #[serde(default)]
    pub long_ns: f64,
    /// See [`Loop`].
    #[serde(default)]
    pub locks: u32,
    /// Mean time per operation, divided by the number of threads, for which
    /// the holder stops all threads, so rarely and so long that it is added to
    /// the simulated time.
    #[serde(default)]
    pub stall_ns_over_threads: f64,
}

/// One side of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) lock: String,
    pub(crate) threads: usize,
    pub(crate) workload: Workload,
    pub(crate) pause: bool,
    /// Added to the simulated time of each operation, ns.
    pub(crate) stall_ns: f64,
    /// Virtual machines that share the hardware.
    pub(crate) guests: usize,
    /// Operations of each thread where threads share CPUs; none where time slices end the run.
    pub(crate) operations: Option<u64>,
    /// Says whether they sleep at a barrier before.
    pub(crate) barrier: bool,
}

impl Run {
    /// Returns its scenario on a machine.
    pub(crate) fn scenario(
        &self,
        mut machine: Machine,
        placement: Placement,
        stop: Stop,
        seed: u64,
    ) -> Result<Scenario, Error> {
        if !self.pause {
            // A turn of an empty loop.
            machine = machine.with(FigureKey::CorePauseCycles, 1.0)?;
        }
        // A counter has no lock, and none is taken.
        let lock = counting(&self.lock).map_or(self.lock.as_str(), |_| "tas");
        let mut scenario = Scenario::new(machine, lock, self.workload, self.threads);
        if self.guests > 1 {
            let part = scenario.machine.hardware_threads() / self.guests;
            scenario.hardware_threads = Some(part);
        }
        scenario.seed = seed;
        scenario.placement = placement;
        scenario.stop = match (scenario.is_oversubscribed(), self.operations) {
            (true, Some(operations)) if self.barrier => Stop::Round(operations),
            (true, Some(operations)) => Stop::Each(operations),
            (true, None) => Stop::slices(&scenario.machine),
            (false, _) => stop,
        };
        Ok(scenario)
    }
}

/// One ratio to simulate.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) published: Option<f64>,
    pub(crate) direction: Option<Direction>,
    pub(crate) measure: Measure,
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
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let experiment: Self =
            toml::from_str(text).map_err(|error| not_toml(file, text, &error))?;
        let check = || {
            experiment.machine()?;
            match (&experiment.published, &experiment.reference) {
                (Some(published), None) => published.check()?,
                (None, Some(_)) => {}
                _ => {
                    return Err(Error::Usage(
                        "it needs the published figures: either `[published]`, or the file of \
                         `reference`"
                            .into(),
                    ));
                }
            }
            if experiment.figures.is_empty() == experiment.matrix.is_none() {
                return Err(Error::Usage(
                    "it needs either a `matrix` or at least one `figure`".into(),
                ));
            }
            if experiment.acquisitions == 0 {
                return Err(Error::Usage("`acquisitions` is 0; give at least 1".into()));
            }
            let fixed = experiment.rule != Rule::FixedTime;
            if experiment.operations.is_some_and(|n| n == 0 || !fixed) {
                return Err(Error::Usage(
                    "`operations` says how many each thread did, by a rule of fixed work: give at \
                     least 1, or leave it out"
                        .into(),
                ));
            }
            if experiment.barrier && experiment.operations.is_none() {
                return Err(Error::Usage(
                    "`barrier` is before so many operations of each thread: give `operations`"
                        .into(),
                ));
            }
            let matrix = experiment.matrix.iter();
            let pairs = matrix.map(|matrix| [&matrix.baseline, &matrix.experiment]);
            let figures = experiment.figures.iter();
            let figures = figures.map(|figure| [&figure.baseline, &figure.experiment]);
            for lock in pairs.chain(figures).flatten() {
                let known = catalogue::ALL.iter().any(|entry| entry.info.name == lock);
                if !known && counting(lock).is_none() && !program_locks::is_known(lock) {
                    return Err(Error::Usage(format!(
                        "no lock is called `{lock}`; `locklab locks` lists them"
                    )));
                }
            }
            experiment.figures.iter().try_for_each(FigureOf::check)
        };
        check().map_err(|error: Error| error.reworded(|what| format!("{file}: {what}")))?;
        Ok(experiment)
    }

    /// Returns one of [`EXPERIMENTS`].
    ///
    /// # Errors
    /// If there is no such experiment; the message lists them.
    pub fn built_in(name: &str) -> Result<Self, Error> {
        let found = EXPERIMENTS.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| {
            let known: Vec<_> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
            Error::Usage(format!(
                "there is no experiment called `{name}`; there are {}",
                known.join(", ")
            ))
        })?;
        Self::parse(&format!("experiments/{name}.toml"), text)
    }

    /// Returns the machine, with the figures of the published one.
    pub(crate) fn machine(&self) -> Result<Machine, Error> {
        let machine = Machine::named(&self.machine)?;
        self.facts
            .iter()
            .try_fold(machine, |machine, (key, &value)| {
                match FACTS.into_iter().find(|fact| fact.name() == key) {
                    Some(fact) => machine.with(fact, value),
                    None => Err(Error::Usage(format!(
                        "`{key}` is no fact of a data sheet; those are {}",
                        FACTS.map(FigureKey::name).join(", ")
                    ))),
                }
            })
    }

    /// Returns its single figures, with the published values.
    pub(crate) fn cells(&self, reference: &Reference) -> Result<Vec<Cell>, Error> {
        let cells = self.figures.iter().map(|figure| figure.cells(reference));
        let mut cells = cells.collect::<Result<Vec<_>, _>>()?.concat();
        for cell in &mut cells {
            for run in [&mut cell.baseline, &mut cell.experiment] {
                run.operations = self.operations;
                run.barrier = self.barrier;
            }
        }
        Ok(cells)
    }
}

impl FigureOf {
    fn check(&self) -> Result<(), Error> {
        let fault = |what: &str| Err(Error::Usage(format!("figure `{}`: {what}", self.name)));
        let counters = [&self.baseline, &self.experiment];
        if self.turn.is_none() && counters.iter().any(|lock| counting(lock).is_some()) {
            return fault("a counter has a `loop`");
        }
        if [self.guests, self.baseline_guests].contains(&Some(0)) {
            return fault("0 guests do nothing; give at least 1");
        }
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

    fn cells(&self, reference: &Reference) -> Result<Vec<Cell>, Error> {
        let cell = |name: String, threads: usize| {
            let below = self.baseline_threads.unwrap_or(threads);
            let published = self.published.as_ref();
            let published = published
                .map(|expression| reference.figure(expression, threads, below))
                .transpose()?;
            let direction = match (self.direction_only, published) {
                (false, _) => None,
                (true, Some(ratio)) if ratio > 1.0 + FLAT => Some(Direction::Above),
                (true, Some(ratio)) if ratio < 1.0 - FLAT => Some(Direction::Below),
                (true, _) => {
                    let what = format!("the figure `{name}` has no direction");
                    return Err(Error::Usage(what));
                }
            };
            Ok(Cell {
                name,
                published: published.filter(|_| direction.is_none()),
                direction,
                measure: self.measure,
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
            (Some(turn), _) => workload(
                lock,
                Loop {
                    inside_ns: turn.inside_ns,
                    outside_ns: turn.outside_ns,
                    write_percent: turn.write_percent,
                    counts_in_line: turn.counts_in_line,
                    long_one_in: turn.long_one_in_per_thread * threads as u32,
                    long_ns: turn.long_ns,
                    locks: turn.locks,
                    ..Loop::default()
                },
            ),
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
            guests: match side {
                Side::Baseline => self.baseline_guests.or(self.guests),
                _ => self.guests,
            }
            .unwrap_or(1),
            operations: None,
            barrier: false,
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/experiment.rs"]
mod tests;
