//! Runs a plan: cell by cell, pair by pair, in the order that the coin says.
//!
//! A cell is finished before the next begins, because on a virtual machine
//! the CPUs move within minutes and pairs are compared within one placement
//! only. A pair whose CPUs moved, or were not there, is run again, and a cell
//! whose pairs lie in several placements goes on until one of them has
//! enough, both within a budget, so that a restless machine ends too. What is
//! repeated depends on the machine alone, never on what the locks did.
//!
//! Measures nothing itself (see [`Instrument`]) and judges nothing.

use crate::matrix::{Cell, Invalid, Point, Run, RunPair};
use crate::native::round_trip::{Around, settle};
use crate::native::run::Stopped;
use crate::plan::{Plan, PlannedCell};
use crate::store::{Slot, Store};
use locklab_judge::{Order, Side, coin, fork_seed};
use std::collections::HashMap;
use std::time::Instant;

/// What can run a lock in a cell.
pub trait Instrument {
    /// Runs it once, and says how far apart the CPUs were.
    ///
    /// # Errors
    /// There is no sample, and there will be none.
    fn run(&mut self, lock: &str, cell: &PlannedCell) -> Result<(Run, Around), Stopped>;
}

/// What hears of each run that has ended.
pub trait Listener {
    /// So many runs of the plan are done, out of so many; `now` is the cell.
    fn progress(&mut self, done: u64, of: u64, now: &Point);
}

/// Where samples go. A store that fails is left alone from then on; the
/// measurement is worth more than its copy.
pub struct Recorder {
    store: Option<(Store, i64)>,
    failure: Option<String>,
}

impl Recorder {
    /// Into experiment `experiment` of `store`.
    #[must_use]
    pub fn new(store: Store, experiment: i64) -> Self {
        Self {
            store: Some((store, experiment)),
            failure: None,
        }
    }

    /// Nowhere.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            store: None,
            failure: None,
        }
    }

    /// Does `work` on the store, if there is one that works.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Store, i64) -> Result<T, String>,
    ) -> Option<T> {
        let (store, experiment) = self.store.as_mut()?;
        match work(store, *experiment) {
            Ok(done) => Some(done),
            Err(e) => {
                self.failure = Some(e);
                self.store = None;
                None
            }
        }
    }

    /// What went wrong with the store, if something did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// What came of a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The cells that have at least one pair.
    pub cells: Vec<Cell>,
    /// Pairs that were run again because the machine was not steady.
    pub repeated: u32,
    /// Why it is not complete, if it is not.
    pub stopped: Option<Stop>,
}

/// Why a matrix is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT or SIGTERM.
    Interrupted,
    /// `--time-limit`.
    TimeLimit,
    /// Nothing more can be measured, for this reason.
    Fatal(String),
}

/// A plan under way.
pub struct Session<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// Where samples go.
    pub recorder: &'a mut Recorder,
    /// Who is told.
    pub listener: &'a mut dyn Listener,
    /// When to stop starting runs.
    pub deadline: Option<Instant>,
    /// Pairs that an interrupted session left.
    pub before: HashMap<Point, Vec<RunPair>>,
    /// Bias bands by cell.
    pub bands: HashMap<Point, f64>,
}

impl Session<'_> {
    /// Runs until all is done or something stops it.
    pub fn run(mut self, instrument: &mut dyn Instrument) -> Outcome {
        let started = Instant::now();
        // Samples of a resumed matrix go on after the last.
        let offset = self
            .before
            .values()
            .flatten()
            .flat_map(|pair| [&pair.baseline, &pair.experiment])
            .filter_map(|run| run.started)
            .fold(0.0, f64::max);
        let mut outcome = Outcome {
            cells: Vec::new(),
            repeated: 0,
            stopped: None,
        };
        let plan = self.plan;
        let per_cell = 2 * u64::from(plan.spec.pairs);
        for (index, cell) in plan.cells.iter().enumerate() {
            let mut pairs = self.before.remove(&cell.point).unwrap_or_default();
            let mut stopped = outcome.stopped.clone();
            let mut budget = plan.spec.pairs;
            let coins = fork_seed(plan.spec.seed, index as u64);
            while stopped.is_none() && budget > 0 && !self.enough(&pairs) {
                let done = index as u64 * per_cell + (2 * usable(&pairs)).min(per_cell);
                self.listener.progress(done, plan.runs(), &cell.point);
                if self.deadline.is_some_and(|end| Instant::now() >= end) {
                    stopped = Some(Stop::TimeLimit);
                    break;
                }
                let number = pairs.last().map_or(0, |pair| pair.index + 1);
                let first = coin(coins, u64::from(number));
                match self.pair(instrument, cell, number, first, offset, started) {
                    Ok((mut pair, ids, steady)) => {
                        // The last of the budget is kept as it is.
                        let kept = steady || budget == 1;
                        self.recorder.with(|store, _| match ids {
                            [Some(a), Some(b)] => {
                                store.close([(a, &pair.baseline), (b, &pair.experiment)], kept)
                            }
                            _ => Ok(()),
                        });
                        if !steady {
                            outcome.repeated += 1;
                            budget -= 1;
                        } else if usable(&pairs) >= u64::from(plan.spec.pairs) {
                            // Enough, but in several placements.
                            budget -= 1;
                        }
                        if kept {
                            pair.index = number;
                            pairs.push(pair);
                        }
                    }
                    Err(Stopped::Interrupted) => stopped = Some(Stop::Interrupted),
                    Err(Stopped::Fatal(why)) => stopped = Some(Stop::Fatal(why)),
                }
            }
            outcome.stopped = stopped;
            if !pairs.is_empty() {
                outcome.cells.push(Cell {
                    point: cell.point,
                    oversubscribed: cell.oversubscribed,
                    bias_band: self.bands.get(&cell.point).copied(),
                    pairs,
                });
            }
        }
        if outcome.stopped.is_none()
            && let Some(last) = plan.cells.last()
        {
            self.listener
                .progress(plan.runs(), plan.runs(), &last.point);
        }
        outcome
    }

    /// Runs one pair and stores its samples; says whether it was steady.
    #[allow(clippy::type_complexity)]
    fn pair(
        &mut self,
        instrument: &mut dyn Instrument,
        cell: &PlannedCell,
        number: u32,
        order: Order,
        offset: f64,
        started: Instant,
    ) -> Result<(RunPair, [Option<i64>; 2], bool), Stopped> {
        let spec = &self.plan.spec;
        let mut halves = Vec::with_capacity(2);
        for side in order.sides() {
            let lock = match side {
                Side::Baseline => &spec.baseline,
                Side::Experiment => &spec.experiment,
            };
            let at = offset + started.elapsed().as_secs_f64();
            let (mut run, around) = instrument.run(lock, cell)?;
            run.started = Some(at);
            let slot = Slot {
                point: cell.point,
                pair: number,
                baseline: side == Side::Baseline,
                baseline_first: order == Order::BaselineFirst,
            };
            let id = self
                .recorder
                .with(|store, experiment| store.add(experiment, &slot, &run));
            halves.push((run, around, id));
        }
        if order == Order::ExperimentFirst {
            halves.swap(0, 1);
        }
        let (Some(mut experiment), Some(mut baseline)) = (halves.pop(), halves.pop()) else {
            return Err(Stopped::Fatal("a pair has two runs".into()));
        };
        let steady = settle([
            (&mut baseline.0, &baseline.1),
            (&mut experiment.0, &experiment.1),
        ]) && !any(&baseline.0, &experiment.0, |invalid| {
            matches!(invalid, Invalid::Disturbed(_))
        });
        let pair = RunPair {
            index: number,
            baseline_first: order == Order::BaselineFirst,
            baseline: baseline.0,
            experiment: experiment.0,
        };
        Ok((pair, [baseline.2, experiment.2], steady))
    }

    /// Whether one placement has all the pairs that were asked for. Pairs
    /// that failed count: they are not repeated until they succeed. A lock
    /// that failed its check has nothing more to say.
    fn enough(&self, pairs: &[RunPair]) -> bool {
        let mut failed = 0;
        let mut by_class: HashMap<Option<&str>, u32> = HashMap::new();
        for pair in pairs {
            let invalid = |kind: fn(&Invalid) -> bool| any(&pair.baseline, &pair.experiment, kind);
            if invalid(|i| matches!(i, Invalid::CheckFailed(_))) {
                return true;
            }
            if invalid(|i| matches!(i, Invalid::Failed(_))) {
                failed += 1;
            } else if !invalid(|_| true) {
                let class = pair.baseline.round_trip.as_ref().map(|r| r.class.as_str());
                *by_class.entry(class).or_default() += 1;
            }
        }
        by_class.values().max().unwrap_or(&0) + failed >= self.plan.spec.pairs
    }
}

/// Whether one of two runs is invalid in this way.
fn any(a: &Run, b: &Run, kind: impl Fn(&Invalid) -> bool) -> bool {
    a.invalid.iter().chain(&b.invalid).any(kind)
}

/// Pairs that need not be repeated.
fn usable(pairs: &[RunPair]) -> u64 {
    let again =
        |invalid: &Invalid| matches!(invalid, Invalid::PlacementMoved(_) | Invalid::Disturbed(_));
    pairs
        .iter()
        .filter(|pair| !any(&pair.baseline, &pair.experiment, again))
        .count() as u64
}

#[cfg(test)]
mod tests;
