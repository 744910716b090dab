//! Runs a plan: cell by cell, pair by pair, in the order that the coin says.
//!
//! A cell is finished before the next begins, because on a virtual machine
//! the CPUs move within minutes and pairs are compared within one placement
//! only. A pair whose CPUs moved is run again, and a cell whose pairs lie in
//! several placements goes on until one of them has enough, both within a
//! budget, so that a restless machine ends too. What is repeated depends on
//! the placement alone, never on what the locks did.
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
    /// Pairs that were run again because the CPUs moved.
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
        ]);
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
            let runs = [&pair.baseline, &pair.experiment];
            if runs
                .iter()
                .any(|run| matches!(run.invalid, Some(Invalid::CheckFailed(_))))
            {
                return true;
            }
            if runs
                .iter()
                .any(|run| matches!(run.invalid, Some(Invalid::Failed(_))))
            {
                failed += 1;
            } else if runs.iter().all(|run| run.invalid.is_none()) {
                let class = pair.baseline.round_trip.as_ref().map(|r| r.class.as_str());
                *by_class.entry(class).or_default() += 1;
            }
        }
        by_class.values().max().unwrap_or(&0) + failed >= self.plan.spec.pairs
    }
}

/// Pairs that moved are not usable; all others are.
fn usable(pairs: &[RunPair]) -> u64 {
    pairs
        .iter()
        .filter(|pair| {
            ![&pair.baseline, &pair.experiment]
                .iter()
                .any(|run| matches!(run.invalid, Some(Invalid::PlacementMoved(_))))
        })
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Measured, Provenance, Spec, Unit, Work};
    use crate::native::test_run;
    use crate::native::topology::Topology;
    use crate::native::work::Calibration;
    use std::path::Path;
    use std::time::Duration;

    /// Plays a script of round trips, one for each run; the last goes on.
    struct Script {
        round_trips: Vec<f64>,
        runs: Vec<String>,
        stop_after: usize,
        outcome: Stopped,
    }

    impl Script {
        fn steady() -> Self {
            Self::of(&[64.0])
        }

        fn of(round_trips: &[f64]) -> Self {
            Self {
                round_trips: round_trips.to_vec(),
                runs: Vec::new(),
                stop_after: usize::MAX,
                outcome: Stopped::Interrupted,
            }
        }
    }

    impl Instrument for Script {
        fn run(&mut self, lock: &str, _: &PlannedCell) -> Result<(Run, Around), Stopped> {
            if self.runs.len() >= self.stop_after {
                return Err(self.outcome.clone());
            }
            let at = self.runs.len().min(self.round_trips.len() - 1);
            self.runs.push(lock.to_owned());
            let ns = vec![self.round_trips[at]];
            let around = Around {
                before: ns.clone(),
                after: ns,
            };
            Ok((test_run(), around))
        }
    }

    struct Nobody;

    impl Listener for Nobody {
        fn progress(&mut self, done: u64, of: u64, _: &Point) {
            assert!(done <= of);
        }
    }

    fn plan(threads: Vec<usize>, pairs: u32) -> Plan {
        let spec = Spec {
            baseline: "ticket".into(),
            experiment: "mcs".into(),
            threads,
            critical: vec![0],
            non_critical: vec![1],
            unit: Unit::Units,
            work: Work::Units,
            pairs,
            run: Duration::from_millis(50),
            warm_up: Duration::from_millis(10),
            seed: 7,
            pin: None,
            processes: false,
            latency: false,
            aa: false,
            delta: 0.01,
        };
        let topology = Topology {
            order: vec![0, 1],
            known: true,
            cores: 2,
            nodes: 1,
        };
        let calibration = Calibration {
            unit_ns: 4.0,
            cycle_ns: 0.25,
        };
        Plan::new(spec, &topology, calibration).unwrap()
    }

    fn go(
        plan: &Plan,
        script: &mut Script,
        recorder: &mut Recorder,
        before: HashMap<Point, Vec<RunPair>>,
    ) -> Outcome {
        Session {
            plan,
            recorder,
            listener: &mut Nobody,
            deadline: None,
            before,
            bands: HashMap::new(),
        }
        .run(script)
    }

    fn store(plan: &Plan) -> Recorder {
        let store = Store::open(Path::new(":memory:")).unwrap();
        let header = Measured {
            spec: plan.spec.clone(),
            provenance: Provenance::Hardware("test".into()),
            environment: vec![],
            caveats: vec![],
            cells: vec![],
            interrupted: None,
        };
        let id = store.begin("key", "", &header).unwrap();
        Recorder::new(store, id)
    }

    #[test]
    fn the_coin_says_who_goes_first_and_each_cell_has_its_own() {
        let plan = plan(vec![2, 4], 12);
        let mut script = Script::steady();
        let outcome = go(&plan, &mut script, &mut Recorder::nowhere(), HashMap::new());
        assert_eq!(outcome.stopped, None);
        assert_eq!(script.runs.len() as u64, plan.runs());
        let mut runs = script.runs.iter();
        for (index, cell) in outcome.cells.iter().enumerate() {
            for (number, pair) in cell.pairs.iter().enumerate() {
                let order = coin(fork_seed(7, index as u64), number as u64);
                assert_eq!(pair.index as usize, number);
                assert_eq!(pair.baseline_first, order == Order::BaselineFirst);
                let first = if pair.baseline_first { "ticket" } else { "mcs" };
                assert_eq!(runs.next().unwrap(), first);
                runs.next();
            }
        }
        let firsts = |i: usize| -> Vec<bool> {
            outcome.cells[i]
                .pairs
                .iter()
                .map(|p| p.baseline_first)
                .collect()
        };
        assert_ne!(firsts(0), firsts(1));
    }

    #[test]
    fn a_pair_whose_cpus_moved_is_run_again() {
        let plan = plan(vec![2], 8);
        let mut recorder = store(&plan);
        // Moves in the second pair, and stays there.
        let mut script = Script::of(&[64.0, 64.0, 64.0, 325.0]);
        let outcome = go(&plan, &mut script, &mut recorder, HashMap::new());
        assert_eq!(outcome.repeated, 1);
        let pairs = &outcome.cells[0].pairs;
        // One pair was mid before the move; eight are far after it.
        assert_eq!(pairs.len(), 9);
        assert!(pairs.iter().all(|p| p.baseline.invalid.is_none()));
        let class = |p: &RunPair| p.baseline.round_trip.clone().unwrap().class;
        assert_eq!(class(&pairs[0]), "mid");
        assert!(pairs[1..].iter().all(|p| class(p) == "far"));
        let stored = recorder.with(|store, id| {
            let kept = store.pairs(id)?.remove(&plan.cells[0].point).unwrap();
            Ok((kept, store.samples(None)?))
        });
        let (kept, samples) = stored.unwrap();
        assert_eq!(&kept, pairs);
        assert_eq!(samples.iter().filter(|s| s.state == "repeated").count(), 2);
    }

    #[test]
    fn a_machine_that_never_rests_ends_too() {
        let plan = plan(vec![2], 8);
        let mut script = Script::of(&[64.0, 325.0].repeat(100));
        let outcome = go(&plan, &mut script, &mut Recorder::nowhere(), HashMap::new());
        assert_eq!(script.runs.len(), 16);
        assert!(matches!(
            outcome.cells[0].pairs[0].baseline.invalid,
            Some(Invalid::PlacementMoved(_))
        ));
    }

    #[test]
    fn an_interrupted_matrix_goes_on_where_it_stopped() {
        let plan = plan(vec![2, 4], 8);
        let mut whole = Script::steady();
        let complete = go(&plan, &mut whole, &mut Recorder::nowhere(), HashMap::new());

        let mut recorder = store(&plan);
        // In the middle of a pair of the second cell.
        let mut first = Script {
            stop_after: 21,
            ..Script::steady()
        };
        let outcome = go(&plan, &mut first, &mut recorder, HashMap::new());
        assert_eq!(outcome.stopped, Some(Stop::Interrupted));
        assert_eq!(outcome.cells[1].pairs.len(), 2);
        let before = recorder.with(|store, id| store.pairs(id)).unwrap();
        let mut second = Script::steady();
        let outcome = go(&plan, &mut second, &mut recorder, before);
        assert_eq!(outcome.stopped, None);
        // The half pair was run again, nothing else.
        assert_eq!(second.runs.len(), 32 - 20);
        let strip = |outcome: &Outcome| -> Vec<Vec<(u32, bool)>> {
            let pair = |p: &RunPair| (p.index, p.baseline_first);
            outcome
                .cells
                .iter()
                .map(|c| c.pairs.iter().map(pair).collect())
                .collect()
        };
        assert_eq!(strip(&outcome), strip(&complete));
    }

    #[test]
    fn a_store_that_fails_costs_the_copy_only() {
        let plan = plan(vec![2], 8);
        let mut recorder = store(&plan);
        recorder.with(|_, _| Err::<(), _>("the disk is full".into()));
        let outcome = go(&plan, &mut Script::steady(), &mut recorder, HashMap::new());
        assert_eq!(outcome.cells[0].pairs.len(), 8);
        assert_eq!(recorder.failure(), Some("the disk is full"));
    }

    #[test]
    fn a_lock_that_fails_its_check_is_not_run_on() {
        struct Broken(u32);
        impl Instrument for Broken {
            fn run(&mut self, _: &str, _: &PlannedCell) -> Result<(Run, Around), Stopped> {
                self.0 += 1;
                let mut run = test_run();
                run.invalid = Some(Invalid::CheckFailed("lost".into()));
                Ok((run, Around::default()))
            }
        }
        let plan = plan(vec![1, 2], 8);
        let mut broken = Broken(0);
        let outcome = Session {
            plan: &plan,
            recorder: &mut Recorder::nowhere(),
            listener: &mut Nobody,
            deadline: None,
            before: HashMap::new(),
            bands: HashMap::new(),
        }
        .run(&mut broken);
        assert_eq!((broken.0, outcome.cells.len()), (4, 2));
    }

    #[test]
    fn a_time_limit_stops_before_the_next_pair() {
        let plan = plan(vec![2], 8);
        let outcome = Session {
            plan: &plan,
            recorder: &mut Recorder::nowhere(),
            listener: &mut Nobody,
            deadline: Some(Instant::now()),
            before: HashMap::new(),
            bands: HashMap::new(),
        }
        .run(&mut Script::steady());
        assert_eq!(outcome.stopped, Some(Stop::TimeLimit));
        assert!(outcome.cells.is_empty());
    }
}
