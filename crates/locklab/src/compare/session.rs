//! Runs an experiment: workload by workload, pair by pair, in the order that
//! the coin says.
//!
//! Knows nothing of what a workload does, and judges nothing. Whatever goes
//! wrong in one workload, the next goes on.

use super::lab::Lab;
use super::records::Recorder;
use super::{Invalid, Measurement, Run, RunPair, Spec, Subject};
use crate::counters::Filter;
use crate::workloads::{Fault, Figures, Workload};
use locklab_judge::{Order, Settings, Side, coin, fork_seed};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What hears of each run.
pub trait Listener {
    /// A run of this workload begins; so many of so many are done.
    fn progress(&mut self, done: u64, of: u64, workload: &str);
    /// Something that a user should know now.
    fn note(&mut self, text: &str);
}

/// An experiment under way.
pub struct Session<'a> {
    /// What to run.
    pub spec: &'a Spec,
    /// Where.
    pub lab: &'a mut Lab,
    /// Where samples go.
    pub recorder: &'a mut Recorder,
    /// Who is told.
    pub listener: &'a mut dyn Listener,
}

impl Session<'_> {
    /// Runs every workload that can be; says whether it was interrupted.
    ///
    /// `measurements` have the pairs that an earlier session left, and get
    /// those that are new.
    pub fn run(
        &mut self,
        workloads: &mut [Box<dyn Workload>],
        measurements: &mut [Measurement],
    ) -> bool {
        self.lab.seed = self.spec.seed;
        let started = Instant::now();
        let offset = measurements
            .iter()
            .flat_map(|m| &m.pairs)
            .map(|pair| pair.baseline.started.max(pair.experiment.started))
            .fold(0.0, f64::max);
        let clock = move || offset + started.elapsed().as_secs_f64();
        let per = u64::from(2 * (self.spec.pairs + self.spec.warm_up));
        for (index, (workload, measurement)) in workloads
            .iter_mut()
            .zip(measurements.iter_mut())
            .enumerate()
        {
            let before = index as u64 * per;
            match self.workload(index, workload.as_mut(), measurement, before, &clock) {
                Ok(()) => {}
                Err(Stop::Interrupted) => {
                    measurement.stopped = Some("interrupted".into());
                    return true;
                }
                Err(Stop::Skipped(why)) => {
                    self.listener.note(&format!("{}: {why}", measurement.name));
                    measurement.stopped = Some(why);
                }
            }
        }
        false
    }

    fn workload(
        &mut self,
        index: usize,
        workload: &mut dyn Workload,
        measurement: &mut Measurement,
        before: u64,
        clock: &dyn Fn() -> f64,
    ) -> Result<(), Stop> {
        let spec = self.spec;
        let of = u64::from(2 * (spec.pairs + spec.warm_up)) * spec.workloads.len() as u64;
        if measurement.pairs.len() >= spec.pairs as usize {
            return Ok(());
        }
        workload
            .check(spec.subjects(), self.lab)
            .map_err(Stop::Skipped)?;
        let name = measurement.name.clone();
        for round in 0..spec.warm_up {
            for side in [Side::Baseline, Side::Experiment] {
                self.listener
                    .progress(before + u64::from(2 * round), of, &name);
                let log = format!("{name}-warm-up-{}-{side}", round + 1);
                self.warm_up(workload, side, &log)?;
            }
        }
        let coins = fork_seed(spec.seed, index as u64);
        let tolerated = Settings::default().tolerated_failures * f64::from(spec.pairs);
        let mut failed = 0_u32;
        while measurement.pairs.len() < spec.pairs as usize {
            let number = measurement.pairs.last().map_or(0, |pair| pair.index + 1);
            let done = u64::from(2 * spec.warm_up) + 2 * measurement.pairs.len() as u64;
            self.listener.progress(before + done, of, &name);
            let order = coin(coins, u64::from(number));
            let pair = self.pair(workload, &name, number, order, clock)?;
            self.recorder.keep(&name, &pair);
            let fault = pair.invalid().cloned();
            measurement.pairs.push(pair);
            match fault {
                Some(Invalid::CheckFailed(_)) => {
                    return Err(Stop::Skipped(
                        "stopped, because its own check failed in a run".into(),
                    ));
                }
                Some(fault) => {
                    failed += 1;
                    // Two may be chance, whatever the number of pairs.
                    if f64::from(failed) > tolerated.max(2.0) {
                        return Err(Stop::Skipped(format!(
                            "given up after {failed} failed pairs; the last because {}",
                            fault.why()
                        )));
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    /// A warm-up that fails once is tried again: a run may fail by chance.
    fn warm_up(&mut self, workload: &mut dyn Workload, side: Side, log: &str) -> Result<(), Stop> {
        let mut last = None;
        for _ in 0..2 {
            self.lab.begin(log, 0, Filter::User);
            match workload.run(subject(self.spec, side), self.lab) {
                Ok(_) => return Ok(()),
                Err(Fault::Interrupted) => return Err(Stop::Interrupted),
                Err(Fault::Hopeless(why)) => return Err(Stop::Skipped(why)),
                Err(Fault::Failed(why) | Fault::CheckFailed(why) | Fault::Counter(why)) => {
                    last = Some(why);
                }
            }
        }
        let why = last.unwrap_or_default();
        Err(Stop::Skipped(format!(
            "the {side} failed twice before the first pair: {why}"
        )))
    }

    fn pair(
        &mut self,
        workload: &mut dyn Workload,
        name: &str,
        number: u32,
        order: Order,
        clock: &dyn Fn() -> f64,
    ) -> Result<RunPair, Stop> {
        let not_run = || Run {
            invalid: Some(Invalid::Interrupted),
            ..Run::default()
        };
        let mut pair = RunPair {
            index: number,
            baseline_first: order == Order::BaselineFirst,
            baseline: not_run(),
            experiment: not_run(),
        };
        for (place, side) in order.sides().into_iter().enumerate() {
            if self.lab.interrupt.load(Ordering::Relaxed) {
                self.keep_half(name, place, &pair);
                return Err(Stop::Interrupted);
            }
            let log = format!("{name}-{:03}-{side}", number + 1);
            // User and kernel misses in separate runs, both runs of a pair
            // the same.
            let filter = if number.is_multiple_of(2) {
                Filter::User
            } else {
                Filter::Kernel
            };
            self.lab.begin(&log, number, filter);
            let started = clock();
            let (values, invalid) = match workload.run(subject(self.spec, side), self.lab) {
                Ok(values) => (values, None),
                Err(Fault::Interrupted) => {
                    self.keep_half(name, place, &pair);
                    return Err(Stop::Interrupted);
                }
                Err(Fault::CheckFailed(why)) => (Figures::new(), Some(Invalid::CheckFailed(why))),
                Err(Fault::Counter(why)) => (Figures::new(), Some(Invalid::Counter(why))),
                Err(Fault::Failed(why) | Fault::Hopeless(why)) => {
                    (Figures::new(), Some(Invalid::Failed(why)))
                }
            };
            let run = Run {
                started,
                values,
                invalid,
            };
            match side {
                Side::Baseline => pair.baseline = run,
                Side::Experiment => pair.experiment = run,
            }
        }
        Ok(pair)
    }

    /// Stores the one run that was made, if one was.
    fn keep_half(&mut self, name: &str, runs: usize, pair: &RunPair) {
        if runs > 0 {
            self.recorder.keep(name, pair);
        }
    }
}

fn subject(spec: &Spec, side: Side) -> &Subject {
    match side {
        Side::Baseline => &spec.baseline,
        Side::Experiment => &spec.experiment,
    }
}

/// Why a workload is not complete.
enum Stop {
    Interrupted,
    Skipped(String),
}
