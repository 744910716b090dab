//! The backend that measures two locks on this machine.
//!
//! A pair of the harness is one block of slices (`block`). Cells
//! alternate block by block, so that a noisy minute affects all of them;
//! one whose verdict is beyond doubt gives its time to the others.

use crate::block::Block;
use crate::figures;
use crate::lock_code::LockCode;
use crate::plan::{Plan, PlannedCell};
use crate::probe::Native;
use crate::request::Request;
use crate::settling::calibrate;
use crate::subject;
use crate::timeline::{SliceLength, Windows};
use crate::work::Critical;
use crate::workers::{Ending, OfThisMachine, Workers};
use locklab_document::number::duration;
use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{
    Cell, Design, Experiment, Facts, Invalid, Labels, Provenance, Sample, Source,
};
use locklab_harness::matrix::metrics;
use locklab_harness::verdicts::primary_pairs;
use locklab_host::clock;
use locklab_host::error::Error;
use locklab_host::machine::Machine;
use locklab_host::topology::real_time;
use locklab_judge::{Direction, Interim, interim, is_look};
use locklab_workload::Work;
use serde_json::{Value, json};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Fewest pairs of slices that make a block, where it has time for more than
/// one.
const LEAST_SLICES: u32 = 3;
/// The margin of cells with more threads than CPUs: what is measured there is the
/// scheduler with the lock, and no lock is chosen for less than this.
const OVERSUBSCRIBED: f64 = 0.1;
/// Length of the windows of short-term fairness, in ns.
const WINDOW: u64 = 1_000_000;

/// Locks under threads or processes of this machine.
pub struct Slices {
    pub(crate) plan: Plan,
    design: Design,
    facts: Facts,
    caveats: Vec<String>,
    pub(crate) machine: Machine,
    pub(crate) codes: Vec<LockCode>,
    clock_cost: f64,
    grain: u64,
    /// Time of one block of each cell, in ns.
    pub(crate) blocks: Vec<u64>,
    /// Slices of each cell; planned, then calibrated.
    pub(crate) slices: Vec<SliceLength>,
    descriptors: Vec<RawFd>,
    /// Files that stay open while their descriptors are used.
    _files: Vec<File>,
    pub(crate) workers: Box<dyn Workers>,
    /// The end of the time of all cells, in ns of the monotonic clock.
    latest: u64,
}

impl Native {
    /// Returns the experiment of `plan`, without pairs, and the backend that
    /// measures them. `interrupt` ends a block soon when it is set.
    ///
    /// # Errors
    /// [`Error::Failed`] if one of the locks does not exist, the files that fstat needs
    /// cannot be made, or this process has a real-time scheduling policy.
    pub fn backend(
        &self,
        plan: Plan,
        design: Design,
        interrupt: Arc<AtomicBool>,
    ) -> Result<(Slices, Experiment), Error> {
        let code = |name: &str| {
            subject::code(name).ok_or_else(|| {
                Error::Failed(format!(
                    "there is no lock called '{name}'; 'locklab locks' lists them all"
                ))
            })
        };
        let codes = [code(&plan.spec.baseline)?, code(&plan.spec.experiment)?];
        self.backend_of(codes, plan, design, interrupt)
    }

    /// Returns the same for locks that have no name.
    ///
    /// # Errors
    /// The same errors as [`Native::backend`].
    pub fn backend_of(
        &self,
        codes: impl Into<Vec<LockCode>>,
        plan: Plan,
        design: Design,
        interrupt: Arc<AtomicBool>,
    ) -> Result<(Slices, Experiment), Error> {
        if real_time() {
            return Err(Error::Failed(
                "this process has a real-time scheduling policy, under which spinning threads \
                 would keep the machine from anything else, ending the run included; start it \
                 without chrt"
                    .into(),
            ));
        }
        let files = files(&plan)?;
        let slices = Slices {
            codes: codes.into(),
            machine: self.machine.clone(),
            clock_cost: self.clock_cost,
            grain: self.grain,
            blocks: plan.blocks(design.pairs),
            slices: plan.cells.iter().map(|cell| plan.slice(cell)).collect(),
            descriptors: files.iter().map(AsRawFd::as_raw_fd).collect(),
            _files: files,
            workers: Box::new(OfThisMachine {
                processes: plan.spec.processes,
                quota: self.environment.quota.is_some(),
                interrupt,
            }),
            latest: u64::MAX,
            facts: self.facts(&plan),
            caveats: self.caveats(&plan),
            plan,
            design: design.clone(),
        };
        let experiment = slices.experiment(design);
        Ok((slices, experiment))
    }
}

fn files(plan: &Plan) -> Result<Vec<File>, Error> {
    let most = plan.spec.cells.most_threads();
    match plan.spec.cells.work {
        Work::Units => Ok(Vec::new()),
        Work::Fstat => (0..most)
            .map(|_| tempfile::tempfile())
            .collect::<Result<_, _>>()
            .map_err(|e| {
                Error::Failed(format!(
                    "cannot make {most} files in {} for fstat: {e}; set TMPDIR or ask for fewer \
                     threads",
                    std::env::temp_dir().display()
                ))
            }),
    }
}

/// Returns a cell that has no pairs yet.
fn empty(cell: &PlannedCell, plan: &Plan, delta: f64) -> Cell {
    let key = cell.key(&plan.spec);
    let metrics = metrics(cell.threads, plan.spec.cells.waits(), Source::Backend);
    Cell {
        oversubscribed: cell.oversubscribed,
        delta: cell.oversubscribed.then_some(OVERSUBSCRIBED.max(delta)),
        ..Cell::new(key, metrics)
    }
}

impl Slices {
    pub(crate) fn request(&self, index: usize, seed: u64) -> Request {
        let (plan, cell) = (&self.plan, &self.plan.cells[index]);
        let SliceLength { settle, length } = self.slices[index];
        let least = if cell.oversubscribed { 1 } else { LEAST_SLICES };
        Request {
            codes: self.codes.clone(),
            threads: cell.threads,
            cpus: plan.cpus.clone(),
            critical: (0..cell.threads)
                .map(|worker| match plan.spec.cells.work {
                    Work::Units => Critical::Units(cell.critical_units_of(worker)),
                    Work::Fstat => Critical::Fstat(self.descriptors[worker]),
                })
                .collect(),
            non_critical: cell.non_critical_units,
            locks: cell.locks,
            mix: plan.spec.cells.mix,
            replay: plan
                .replay
                .clone()
                .map(|replay| (replay, plan.calibration.step_ns())),
            settle,
            length,
            slices: Vec::new(),
            windows: Windows {
                length: WINDOW,
                count: usize::try_from(length / WINDOW).unwrap_or(usize::MAX),
            },
            latency: plan.spec.cells.latency,
            clock_cost: self.clock_cost,
            // Calibration found a slice that is longer than planned.
            time: self.blocks[index].max(2 * (settle + length) * u64::from(least)),
            least,
            latest: self.latest,
            grain: self.grain,
            seed,
            layout: plan.spec.layout,
        }
    }
}

impl Backend for Slices {
    fn experiment(&self, design: Design) -> Experiment {
        let (plan, spec) = (&self.plan, &self.plan.spec);
        let cells = plan.cells.iter();
        let cells = cells.map(|cell| empty(cell, plan, design.delta)).collect();
        Experiment {
            kind: locklab_harness::matrix::KIND.into(),
            labels: Labels::new(&spec.baseline, &spec.experiment),
            spec: serde_json::to_value(spec).unwrap_or_default(),
            design,
            provenance: Provenance::Hardware(self.machine.name.clone()),
            facts: self.facts.clone(),
            caveats: self.caveats.clone(),
            cells,
            interrupted: None,
        }
    }

    fn fingerprint(&self) -> Value {
        json!({ "spec": self.plan.spec, "machine": self.machine })
    }

    fn bias_fingerprint(&self, _cell: &Cell) -> Option<Value> {
        let spec = &self.plan.spec;
        let mut print = json!({
            "baseline": spec.baseline,
            "lengths": (spec.cells.unit, spec.cells.work),
            "slice": (spec.slice, spec.layout),
            "set-up": (&spec.pin, spec.processes, spec.cells.latency),
            "machine": self.machine,
        });
        // What was stored before there were others is of the usual mix.
        if !spec.cells.mix.is_usual() {
            print["mix"] = json!(spec.cells.mix);
        }
        Some(print)
    }

    fn pairing(&self) -> Pairing {
        Pairing::Together
    }

    fn schedule(&self) -> Schedule {
        Schedule::RoundByRound
    }

    /// The time that was asked for ends it, however slow the machine is and whatever pairs
    /// are still missing then.
    fn estimate(&self, _cells: &[Cell], _pairs: u32) -> Option<Duration> {
        self.time()
    }

    fn time(&self) -> Option<Duration> {
        Some(self.plan.spec.time)
    }

    fn now(&self) -> Instant {
        self.workers.now()
    }

    fn until(&mut self, end: Instant) {
        let left = end.saturating_duration_since(self.workers.now());
        self.latest = clock::now().saturating_add(clock::nanos(left));
    }

    fn interim(&self, cell: &Cell) -> Interim {
        let pairs = primary_pairs(cell);
        let Design {
            pairs: first,
            delta,
            ..
        } = self.design;
        if !is_look(pairs.len(), first as usize) {
            return Interim::Open;
        }
        let band = cell.bias_band.unwrap_or(0.0);
        let delta = cell.delta.unwrap_or(delta);
        interim(&pairs, Direction::HigherIsBetter, delta, band)
    }

    fn begin(&mut self, cell: &mut Cell, index: usize) -> Result<(), Stopped> {
        let planned = &self.plan.cells[index];
        // With one thread only the caches have to settle; with more threads
        // than CPUs the scheduler's ticks are longer than any lock remembers.
        let found =
            if self.plan.spec.slice.is_none() && planned.threads > 1 && !planned.oversubscribed {
                let request = self.request(index, index as u64);
                // Both locks have the slices of the slower one.
                let time = self.plan.calibration_time();
                let found = calibrate(&request, time, &mut *self.workers)?;
                found.and_then(|each| each.into_iter().max_by_key(|slice| slice.settle))
            } else {
                None
            };
        if let Some(found) = found {
            self.slices[index] = found;
        }
        let SliceLength { settle, length } = self.slices[index];
        let how = match (self.plan.spec.slice, found) {
            (Some(_), _) => "as asked",
            (None, Some(_)) => "found by calibration",
            (None, None) => "as planned",
        };
        let [settle, length] = [settle, length].map(|ns| duration(Duration::from_nanos(ns)));
        cell.facts.retain(|(name, _)| name != "Slices");
        cell.facts.push((
            "Slices".into(),
            format!("{length} after {settle} left out, {how}"),
        ));
        Ok(())
    }

    fn run_together(&mut self, _cell: &Cell, turn: &Turn) -> Result<[Sample; 2], Stopped> {
        let request = self.request(turn.cell, turn.seed);
        let block = Arc::new(Block::new(request).map_err(Stopped::Fatal)?);
        Ok(match self.workers.run(&block)? {
            Ending::Well => {
                let mut samples = figures::samples(&block).into_iter();
                [(); 2].map(|()| samples.next().unwrap_or_default())
            }
            Ending::Badly(why) => [Sample::invalid(why.clone()), Sample::invalid(why)],
            Ending::Fault(fault) => {
                let cut = Invalid::Failed("the other lock's fault ended its block".into());
                let mut samples = [(); 2].map(|()| Sample::invalid(cut.clone()));
                samples[fault.side] = Sample::invalid(Invalid::CheckFailed(fault.why));
                samples
            }
        })
    }
}

/// Returns the planned pairs of a matrix on hardware: as many as let one cell alone
/// be called, and two more, before the first interim analysis.
#[must_use]
pub fn pairs_for(cells: usize) -> u32 {
    let needed = locklab_judge::pairs_needed(locklab_judge::Family::FalseDiscovery, cells);
    u32::try_from(needed + 2).unwrap_or(u32::MAX).max(12)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod resolution;

#[cfg(test)]
mod machines;

#[cfg(test)]
mod replays;
