//! The order of execution, with an instrument that plays a script.

use super::*;
use crate::matrix::{Measured, Provenance, Spec, Unit, Work};
use crate::native::test_run;
use crate::native::work::Calibration;
use locklab_host::topology::Topology;
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

#[test]
fn a_disturbed_pair_is_run_again_and_a_failed_one_is_not() {
    struct Faulty(u32, Invalid);
    impl Instrument for Faulty {
        fn run(&mut self, _: &str, _: &PlannedCell) -> Result<(Run, Around), Stopped> {
            self.0 += 1;
            let mut run = test_run();
            run.invalid = (self.0 == 3).then(|| self.1.clone());
            Ok((run, Around::default()))
        }
    }
    for (invalid, runs, repeated) in [
        (Invalid::Disturbed("the machine slept".into()), 18, 1),
        (Invalid::Failed("a process died".into()), 16, 0),
    ] {
        let plan = plan(vec![2], 8);
        let mut faulty = Faulty(0, invalid);
        let outcome = Session {
            plan: &plan,
            recorder: &mut Recorder::nowhere(),
            listener: &mut Nobody,
            deadline: None,
            before: HashMap::new(),
            bands: HashMap::new(),
        }
        .run(&mut faulty);
        assert_eq!((faulty.0, outcome.repeated), (runs, repeated));
        assert_eq!(outcome.cells[0].pairs.len(), 8);
    }
}
