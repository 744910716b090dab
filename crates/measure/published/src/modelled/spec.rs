//! The specification of a simulated matrix, and the check that it can be
//! carried out.

use locklab_harness::experiment::Key;
use locklab_host::error::Error;
use locklab_sim::band::{draws, with_system};
use locklab_sim::{
    FigureKey, Fstat, MOST_THREADS, Machine, Mixed, Outcome, Placement, Scenario, Stop, Workload,
    can_be_simulated, current_name,
};
use locklab_workload::{Cells, Place, Unit, Work, mix};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

/// A run ends when half the 95 % interval of its rate is this fraction of it:
/// less than the differences between pairs, since each has a machine and
/// placements of its own (a standard deviation of 6 % over the cells of report 3,
/// to which this adds a tenth).
const PRECISION: f64 = 0.04;

/// The most acquisitions of a run for each of its threads, and for all of them.
const A_THREAD: u64 = 100;
const LONGEST: u64 = 10_000;

/// The seed of the systems that a machine may have: the same in every comparison.
const SYSTEMS: u64 = 0x7379_7374_656d;

/// Two locks in a matrix on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the baseline lock.
    pub baseline: String,
    /// Name of the experiment lock.
    pub experiment: String,
    /// Holds what threads do; those of a virtual machine have a virtual CPU each.
    #[serde(flatten, serialize_with = "as_stored")]
    pub cells: Cells,
    /// Acquisitions of one run, all threads; `None` for as many as the
    /// precision requires.
    pub acquisitions: Option<u64>,
    /// Operations of each thread, which ends after them; `None` where all work until the run
    /// ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// The CPUs that threads get; `None` for compact, and random on a virtual
    /// machine.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// Number of physical CPUs (hardware threads) that are used; `None` for
    /// all.
    pub physical: Option<usize>,
}

/// Returns the cells as stores have them, where the usual unit of a simulated matrix was
/// never written.
fn as_stored<S: Serializer>(cells: &Cells, to: S) -> Result<S::Ok, S::Error> {
    let mut fields = serde_json::to_value(cells).map_err(S::Error::custom)?;
    if let (true, Some(fields)) = (cells.unit.is_units(), fields.as_object_mut()) {
        fields.remove("unit");
    }
    fields.serialize(to)
}

/// Returns a virtual machine with this many virtual CPUs, if requested; otherwise
/// the machine unchanged.
///
/// # Errors
/// If it is not a virtual machine, or cannot have that many.
pub fn with_vcpus(machine: Machine, vcpus: Option<usize>) -> Result<Machine, Error> {
    match vcpus {
        None => Ok(machine),
        Some(_) if machine.get(FigureKey::VmVcpus) == 0.0 => Err(Error::Usage(format!(
            "{} is no virtual machine; --vcpus is for those, such as xeon-8380-vm",
            machine.name
        ))),
        Some(vcpus) => machine.with(FigureKey::VmVcpus, vcpus as f64),
    }
}

/// Returns the default numbers of threads: powers of two, and one thread on every CPU.
#[must_use]
pub fn default_threads(machine: &Machine) -> Vec<usize> {
    let cpus = machine.cpus();
    std::iter::successors(Some(1), |n| Some(n * 2))
        .take_while(|n| *n < cpus)
        .chain([cpus])
        .collect()
}

impl Spec {
    /// Returns two locks, everything else as in the command's defaults.
    #[must_use]
    pub fn new(baseline: &str, experiment: &str, cells: Cells) -> Self {
        Self {
            baseline: current_name(baseline).into(),
            experiment: current_name(experiment).into(),
            cells,
            acquisitions: None,
            operations: None,
            placement: None,
            physical: None,
        }
    }

    /// Checks that `machine` can run it.
    ///
    /// # Errors
    /// If a lock cannot be simulated, there are too many threads, `physical`
    /// is out of range, or a run has no acquisitions. The message says what is possible.
    pub fn check(&self, machine: &Machine) -> Result<(), Error> {
        for name in [&self.baseline, &self.experiment] {
            if !can_be_simulated(name) {
                return Err(Error::Usage(format!(
                    "{name} cannot be simulated; the locks of `locklab locks` can, and your own \
                     in a C or C++ file"
                )));
            }
        }
        self.check_mix(machine)?;
        let most = match machine.get(FigureKey::VmVcpus) > 0.0 {
            true => machine.cpus(),
            false => MOST_THREADS,
        };
        if let Some(more) = self.cells.threads.iter().find(|threads| **threads > most) {
            return Err(Error::Usage(match most {
                MOST_THREADS => format!(
                    "{more} threads on {}, where at most {MOST_THREADS} can be simulated",
                    machine.name
                ),
                cpus => format!(
                    "{more} threads on {}, a virtual machine of {cpus} CPUs, whose own scheduler \
                     is not simulated: give at most {cpus} threads, or --vcpus",
                    machine.name
                ),
            }));
        }
        let there = machine.hardware_threads();
        if self
            .physical
            .is_some_and(|physical| physical == 0 || physical > there)
        {
            return Err(Error::Usage(format!(
                "physical must be from 1 to {there}, what {} has",
                machine.name
            )));
        }
        let has_small = machine.get(FigureKey::TopologySmallClusters) > 0.0;
        if let (true, Some(placement @ (Placement::Numbered | Placement::Spread))) =
            (has_small, self.placement)
        {
            return Err(Error::Usage(format!(
                "placement {} pins threads whatever a core can do, and {} has big and small \
                 cores: leave it out (big cores first), or give compact or random",
                placement.name(),
                machine.name
            )));
        }
        if self.acquisitions == Some(0) {
            return Err(Error::Usage(
                "a run of no acquisitions shows nothing; give --set acquisitions=1000".into(),
            ));
        }
        if self.operations == Some(0) {
            return Err(Error::Usage(
                "threads that do no operations show nothing; give --set operations=1000".into(),
            ));
        }
        if self.operations.is_some() && self.acquisitions.is_some() {
            return Err(Error::Usage(
                "operations says when each thread ends, and acquisitions when all do; leave \
                 out one of the two"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Returns whether what a turn does makes sense.
    fn check_mix(&self, machine: &Machine) -> Result<(), Error> {
        self.cells.check()?;
        if self.cells.work == Work::Fstat {
            return match self.is_plain() {
                true => Ok(()),
                false => Err(Error::Usage(
                    "fstat touches no lines, takes one lock and has no length; leave out \
                     --reads, --unit, lines, locks, nested, distribution, hold_sleep and hog, or \
                     the workload"
                        .into(),
                )),
            };
        }
        self.cells.critical.iter().try_for_each(|&length| {
            let units = self.units(length, machine);
            self.cells.mix.check_fits(units, length, self.cells.unit)
        })
    }

    /// Returns whether it is the matrix of the kernel benchmark, and nothing else.
    fn is_plain(&self) -> bool {
        self.cells.unit.is_units() && self.cells.is_usual()
    }

    /// Returns the units of a section of this length.
    fn units(&self, length: u64, machine: &Machine) -> u64 {
        match self.cells.unit {
            Unit::Units => length.saturating_add(1),
            Unit::Nanoseconds => {
                let cycles = length as f64 * machine.get(FigureKey::CoreClockGhz);
                (cycles / machine.get(FigureKey::CoreUnitCycles)).round() as u64
            }
        }
    }

    /// Returns the key of a cell, which has an axis for the locks where that is asked.
    #[must_use]
    pub fn key(&self, [threads, critical, non_critical, locks]: Place) -> Key {
        let threads = usize::try_from(threads).unwrap_or(usize::MAX);
        let key = Key::point(threads, critical, non_critical);
        match mix::is_one_lock(&self.cells.locks) {
            true => key,
            false => key.at_once(u32::try_from(locks).unwrap_or(u32::MAX)),
        }
    }

    /// Returns whether there are more threads than physical CPUs.
    #[must_use]
    pub fn is_oversubscribed(&self, machine: &Machine, threads: usize) -> bool {
        threads > self.physical.unwrap_or_else(|| machine.hardware_threads())
    }

    /// Returns so many variants of the machine: its bands, and where threads share CPUs
    /// those of the system's figures.
    #[must_use]
    pub fn variants(&self, machine: &Machine, count: usize) -> Vec<Machine> {
        let drawn = draws(machine, count);
        let shares = |threads: &usize| self.is_oversubscribed(machine, *threads);
        if machine.get(FigureKey::VmVcpus) > 0.0 || !self.cells.threads.iter().any(shares) {
            return drawn;
        }
        let systems = drawn.iter().enumerate();
        systems
            .map(|(number, machine)| with_system(machine, number, SYSTEMS))
            .collect()
    }

    /// Returns the CPUs that threads get. A guest's threads are bound to none, and its virtual
    /// CPUs run on any: so it is in report 3, and so it is simulated there too.
    #[must_use]
    pub fn placement(&self, machine: &Machine) -> Placement {
        match self.placement {
            Some(placement) => placement,
            None if machine.get(FigureKey::VmVcpus) > 0.0 => Placement::Random,
            None => Placement::Compact,
        }
    }

    /// Returns the condition that ends a run with this many threads.
    #[must_use]
    pub fn stop(&self, machine: &Machine, threads: usize) -> Stop {
        if let Some(operations) = self.operations {
            return Stop::Each(operations);
        }
        match self.acquisitions {
            _ if self.is_oversubscribed(machine, threads) => Stop::slices(machine),
            Some(acquisitions) => Stop::Acquisitions(acquisitions),
            None => Stop::Precise {
                half_width: PRECISION,
                most: (A_THREAD * threads as u64).max(LONGEST),
            },
        }
    }

    /// Returns the same as text, for all its numbers of threads.
    #[must_use]
    pub fn length(&self, machine: &Machine) -> String {
        let mut parts: Vec<String> = Vec::new();
        for &threads in &self.cells.threads {
            let part = match self.stop(machine, threads) {
                Stop::Milliseconds(ms) => format!("{ms} ms of simulated time (time slices)"),
                Stop::Slices { ms, half_width } => format!(
                    "{ms} ms of simulated time (time slices), and of a lock that sleeps a quarter or \
                     half of it if its rate is known to +-{} % then",
                    100.0 * half_width
                ),
                Stop::Precise { half_width, .. } => format!(
                    "until its rate is known to +-{} % (batch means), at most {A_THREAD} \
                     acquisitions a thread or {LONGEST}",
                    100.0 * half_width
                ),
                Stop::Acquisitions(count) => format!("{count} acquisitions"),
                Stop::Each(count) | Stop::Round(count) => {
                    return format!(
                        "{count} operations of each thread, which then ends; rates are all \
                         operations by the time until the last has ended"
                    );
                }
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        format!("{}, after a warm-up", parts.join("; "))
    }

    /// Returns the outcome with the rate that is asked for: of fixed work it is that until the
    /// last thread has ended.
    pub(crate) fn by_its_rule(&self, outcome: Outcome) -> Outcome {
        match self.operations {
            Some(_) => Outcome {
                ops_per_s: outcome.ops_per_s_until_the_last(),
                ..outcome
            },
            None => outcome,
        }
    }

    /// Returns the scenario of one run of one lock in one cell.
    #[must_use]
    pub fn scenario(
        &self,
        machine: &Machine,
        [threads, critical, non_critical, locks]: Place,
        lock: &str,
        seed: u64,
    ) -> Scenario {
        let length = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let workload = match self.cells.work {
            Work::Units if self.is_plain() => Workload::Matrix {
                critical: length(critical),
                non_critical: length(non_critical),
            },
            Work::Units => Workload::Mixed(Mixed {
                critical: self.units(critical, machine),
                non_critical: self.units(non_critical, machine),
                locks: length(locks),
                mix: self.cells.mix,
                hog: match self.cells.mix.hog {
                    0 => 0,
                    length => self.units(length, machine),
                },
            }),
            Work::Fstat => Workload::Fstat(Fstat::default()),
        };
        let threads = usize::try_from(threads).unwrap_or(usize::MAX);
        let mut scenario = Scenario::new(machine.clone(), lock, workload, threads);
        scenario.hardware_threads = self.physical;
        scenario.seed = seed;
        scenario.stop = self.stop(machine, threads);
        // This was checked before the first run.
        scenario.placement = self.placement(machine);
        scenario
    }
}
