//! The specification of a native matrix (locks, lengths, threads, slices), and the plan
//! that it becomes: every cell with its units and its share of the time, and every reason
//! why it cannot run, before anything is measured.

mod replaying;
mod times;

use crate::layout::LAYOUTS;
use crate::probe::Native;
use crate::replay::Replay;
use crate::subject::{self, Subject};
use crate::timeline::pause;
use crate::work::Calibration;
use locklab_document::number::duration;
use locklab_harness::experiment::Key;
use locklab_host::clock::{self, nanos};
use locklab_host::error::Error;
use locklab_host::topology::{Topology, ranges};
use locklab_library_models::catalogue::current_name;
use locklab_workload::{Cells, MOST_THREADS, Work, mix, turns::longest};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The specification of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the baseline lock.
    pub baseline: String,
    /// Name of the experiment lock.
    pub experiment: String,
    /// Holds what threads do.
    #[serde(flatten)]
    pub cells: Cells,
    /// The recorded program that is replayed instead of turns of these lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// CPUs to pin to, in this order; `None`: cores, then siblings, then
    /// other nodes.
    pub pin: Option<Vec<usize>>,
    /// Processes and shared memory instead of threads.
    pub processes: bool,
    /// Measured part of a slice; `None`: found for each cell by a short
    /// calibration.
    pub slice: Option<Duration>,
    /// Code layout of both locks; `None`: drawn for each pair of slices.
    pub layout: Option<usize>,
    /// The time limit of all cells together.
    pub time: Duration,
}

const _: () = assert!(MOST_THREADS == locklab_locks::MAX_CPUS);

/// Returns one thread, half the CPUs and all of them. More threads than CPUs measure
/// the scheduler with the lock, and take the time of the others: they are on
/// request.
#[must_use]
pub fn default_threads(cpus: usize) -> Vec<usize> {
    let mut threads = vec![1, (cpus / 2).max(1), cpus];
    threads.dedup();
    threads.retain(|n| *n <= MOST_THREADS);
    threads
}

impl Spec {
    /// Returns two locks with one thread and with two, everything else as in the
    /// command's defaults.
    #[must_use]
    pub fn new(baseline: &str, experiment: &str) -> Self {
        Self {
            baseline: current_name(baseline).into(),
            experiment: current_name(experiment).into(),
            cells: Cells::default(),
            trace: None,
            pin: None,
            processes: false,
            slice: None,
            layout: None,
            time: Duration::from_secs(60),
        }
    }
}

/// The plan of an experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Holds what was asked for, with every default decided.
    pub spec: Spec,
    /// CPUs to pin to, best first.
    pub cpus: Vec<usize>,
    /// Calibration of a unit of work.
    pub calibration: Calibration,
    /// The times by which this machine measures.
    pub beat: Beat,
    /// The cells, in the order of the report.
    pub cells: Vec<PlannedCell>,
    /// The recorded program that all cells replay.
    pub replay: Option<Arc<Replay>>,
}

/// The times by which a machine measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The time from one read of the clock to the next, in ns.
    pub clock_interval: u64,
    /// A tick of its kernel, in ns: with more threads than CPUs, one waits so
    /// long for its turn.
    pub tick: u64,
    /// The time to start and end the threads of a block, in ns: of one, and of as
    /// many as there are CPUs.
    pub start: [u64; 2],
}

impl Beat {
    /// Reads those of this machine.
    #[must_use]
    pub fn of(native: &Native) -> Self {
        Self {
            clock_interval: pause(native.clock_cost),
            tick: clock::tick(),
            start: native.start,
        }
    }

    /// Returns the time to start and end a block of `threads` on `cpus` CPUs, in ns.
    fn start_of(&self, threads: usize, cpus: usize) -> u64 {
        let [one, all] = self.start;
        let each = all.saturating_sub(one) / (cpus.max(2) as u64 - 1);
        one + each * (threads as u64 - 1)
    }
}

/// One cell of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Threads, or processes.
    pub threads: usize,
    /// Length of its critical section, as specified.
    pub critical: u64,
    /// Length of its non-critical section, as specified.
    pub non_critical: u64,
    /// Number of locks that are used at once.
    pub locks: u32,
    /// Units of its critical section.
    pub critical_units: u64,
    /// Units of the first thread's, if that is a hog among the others; else 0.
    pub hog_units: u64,
    /// Units of its non-critical section.
    pub non_critical_units: u64,
    /// Says whether there are more threads than CPUs.
    pub oversubscribed: bool,
    /// Duration of one turn of every thread, in ns.
    pub round: f64,
}

/// The most locks: they, and each worker's contexts, are built for every slice.
const MOST_LOCKS_HERE: u32 = 1_000;

impl Plan {
    /// Plans `spec` for this machine.
    ///
    /// # Errors
    /// If a lock does not exist or does not work as required, the time or the
    /// slices are too short, or a number is out of range. The message says what
    /// to change.
    pub fn new(spec: Spec, native: &Native) -> Result<Self, Error> {
        let beat = Beat::of(native);
        Self::of(spec, &native.topology, native.calibration, beat)
    }

    pub(crate) fn of(
        spec: Spec,
        topology: &Topology,
        calibration: Calibration,
        beat: Beat,
    ) -> Result<Self, Error> {
        let cpus = cpus(&spec, topology)?;
        for name in [&spec.baseline, &spec.experiment] {
            spec.fits(&subject::find(name)?)?;
        }
        if spec.time.is_zero() {
            return Err(Error::Usage(
                "--time 0 measures nothing; give --time 10 or more".into(),
            ));
        }
        if spec.slice.is_some_and(|slice| nanos(slice) < 50_000) {
            return Err(Error::Usage(
                "a slice shorter than 50 microseconds ends before the locks have settled; give \
                 --set slice_us=50 or more"
                    .into(),
            ));
        }
        if let Some(layout) = spec.layout
            && layout >= LAYOUTS
        {
            return Err(Error::Usage(format!(
                "there is no layout {layout}; give --set layout=0 to {}",
                LAYOUTS - 1
            )));
        }
        check_mix(&spec)?;
        let Cells {
            unit, work, mix, ..
        } = spec.cells;
        let mut cells = Vec::new();
        for [threads, critical, non_critical, locks] in spec.cells.places() {
            let critical_units = match work {
                Work::Units => calibration.units(critical, unit)?,
                Work::Fstat => 0,
            };
            if work == Work::Units {
                mix.check_fits(critical_units, critical, unit)?;
            }
            let non_critical_units = calibration.units(non_critical, unit)?;
            let hog_units = match mix.hog {
                0 => 0,
                length => calibration.units(length, unit)?,
            };
            let units = critical_units as f64 * threads as f64
                + hog_units as f64
                + non_critical_units as f64;
            let asleep = mix.hold_sleep_ns as f64 * threads as f64;
            let threads = usize::try_from(threads).unwrap_or(usize::MAX);
            let cell = PlannedCell {
                threads,
                critical,
                non_critical,
                locks: u32::try_from(locks).unwrap_or(u32::MAX),
                critical_units,
                hog_units,
                non_critical_units,
                oversubscribed: threads > cpus.len(),
                round: units * calibration.unit_ns + asleep,
            };
            cell.check_fits(&spec, calibration)?;
            cells.push(cell);
        }
        Ok(Self {
            spec,
            cpus,
            calibration,
            beat,
            cells,
            replay: None,
        })
    }
}

impl PlannedCell {
    /// Returns its key in an experiment of `spec`, which has an axis for the locks
    /// where that is asked.
    #[must_use]
    pub fn key(&self, spec: &Spec) -> Key {
        let key = Key::point(self.threads, self.critical, self.non_critical);
        match mix::is_one_lock(&spec.cells.locks) {
            true => key,
            false => key.at_once(self.locks),
        }
    }

    /// Returns the units of the critical section of a worker.
    #[must_use]
    pub fn critical_units_of(&self, worker: usize) -> u64 {
        match (worker, self.hog_units) {
            (0, units) if units > 0 => units,
            _ => self.critical_units,
        }
    }

    /// Checks that every thread can have a turn in each slice.
    fn check_fits(&self, spec: &Spec, calibration: Calibration) -> Result<(), Error> {
        let limit = spec.slice.unwrap_or(Duration::from_millis(50));
        let longest = longest(spec.cells.mix.distribution) - 1.0;
        let beyond = longest * self.non_critical_units as f64 * calibration.unit_ns;
        if self.round + beyond.max(0.0) <= nanos(limit) as f64 {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "with critical length {} and non-critical length {}, one turn of {} {} takes {}, more \
             than the slice of {}; shorten the lengths or give a longer slice_us",
            self.critical,
            self.non_critical,
            self.threads,
            if self.threads == 1 {
                "thread"
            } else {
                "threads"
            },
            duration(Duration::from_secs_f64(self.round * 1e-9)),
            duration(limit)
        )))
    }
}

fn cpus(spec: &Spec, topology: &Topology) -> Result<Vec<usize>, Error> {
    let Some(pin) = &spec.pin else {
        return Ok(topology.order.clone());
    };
    for (i, cpu) in pin.iter().enumerate() {
        if !topology.order.contains(cpu) {
            let mut allowed = topology.order.clone();
            allowed.sort_unstable();
            return Err(Error::Usage(format!(
                "--pin names CPU {cpu}, which this process may not use; it may use {}",
                ranges(&allowed)
            )));
        }
        if pin[..i].contains(cpu) {
            return Err(Error::Usage(format!(
                "--pin names CPU {cpu} twice; name each CPU once"
            )));
        }
    }
    if pin.is_empty() {
        return Err(Error::Usage(
            "--pin names no CPU; name one at least, or leave it out".into(),
        ));
    }
    Ok(pin.clone())
}

impl Spec {
    /// Returns whether a lock can do what is asked.
    ///
    /// # Errors
    /// A sentence that says why it cannot, and what could.
    pub fn fits(&self, subject: &Subject) -> Result<(), Error> {
        check_lock(subject, self)
    }
}

/// Returns whether what a turn does makes sense.
fn check_mix(spec: &Spec) -> Result<(), Error> {
    spec.cells.check()?;
    if let Some(many) = spec
        .cells
        .locks
        .iter()
        .find(|locks| **locks > MOST_LOCKS_HERE)
    {
        return Err(Error::Usage(format!(
            "{many} locks are built anew for every slice, which takes longer than the slice; give \
             at most {MOST_LOCKS_HERE}, or --on MACHINE"
        )));
    }
    if spec.cells.work == Work::Fstat && !spec.cells.is_usual() {
        return Err(Error::Usage(
            "fstat touches no lines and takes one lock; leave out --reads, lines, locks, \
             nested, distribution, hold_sleep and hog, or the workload"
                .into(),
        ));
    }
    Ok(())
}

fn check_lock(subject: &Subject, spec: &Spec) -> Result<(), Error> {
    let info = &subject.info;
    subject.check_measured()?;
    if spec.processes && !info.shared_memory {
        let able: Vec<&str> = subject::all()
            .iter()
            .filter(|s| s.info.shared_memory)
            .map(|s| s.info.name)
            .collect();
        return Err(Error::Usage(format!(
            "'{}' does not work between processes, because it holds pointers or memory of one \
             process; those that do are {}",
            info.name,
            able.join(", ")
        )));
    }
    match spec.cells.most_threads() {
        asked if asked > info.max_cpus => Err(Error::Usage(format!(
            "'{}' serves at most {} threads, and {asked} were asked for; ask for fewer",
            info.name, info.max_cpus
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
