//! The order of execution, with a backend that plays a script.

use crate::common::script::{Script, cells, design, lengths, orders, run, run_until, store};
use locklab_harness::backend::{Backend, Pairing, Schedule, Stopped, Turn};
use locklab_harness::experiment::{Cell, Design, Experiment, Invalid, Order, Pair, Sample};
use locklab_harness::progress::Progress;
use locklab_harness::runner::{Runner, Stop};
use locklab_harness::store::Recorder;
use locklab_host::error::Error;
use locklab_judge::{Side, coin, fork_seed};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[test]
fn the_coin_says_who_goes_first_and_each_cell_has_its_own() {
    let mut cells = cells(2);
    let mut script = Script::default();
    let outcome = run(12, &mut cells, &mut script);
    assert_eq!(outcome.stopped, None);
    assert_eq!(script.runs.len(), 2 * 2 * 12);
    let mut runs = script.runs.iter();
    for (index, cell) in cells.iter().enumerate() {
        for (number, pair) in cell.pairs.iter().enumerate() {
            let order = coin(fork_seed(7, index as u64), number as u64);
            assert_eq!(pair.index as usize, number);
            assert_eq!(pair.order, order.into());
            for side in order.sides() {
                assert_eq!(runs.next(), Some(&(index, side)));
            }
        }
    }
    assert_ne!(orders(&cells[0]), orders(&cells[1]));
}

/// Returns what a pair records is the order in which its runs were made.
#[test]
fn the_recorded_order_is_the_order_of_running() {
    let mut cells = cells(1);
    run(12, &mut cells, &mut Script::default());
    for pair in &cells[0].pairs {
        let baseline_first = pair.baseline.started <= pair.experiment.started;
        assert_eq!(baseline_first, pair.order == Order::BaselineFirst);
    }
}

#[test]
fn both_sides_of_a_pair_have_one_seed_and_no_two_pairs_the_same() {
    let mut cells = cells(2);
    run(8, &mut cells, &mut Script::default());
    let mut seeds = Vec::new();
    for pair in cells.iter().flat_map(|c| &c.pairs) {
        assert_eq!(pair.baseline.values, pair.experiment.values);
        seeds.push(pair.baseline.values["rate"].to_bits());
    }
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 16);
}

/// Returns which runs the machine disturbs.
fn disturbed(runs: impl IntoIterator<Item = usize>) -> HashMap<usize, Invalid> {
    let one = |run| (run, Invalid::Disturbed("the machine slept".into()));
    runs.into_iter().map(one).collect()
}

#[test]
fn a_pair_that_was_disturbed_is_stored_and_run_again() {
    let mut cells = cells(1);
    let mut recorder = store(&cells);
    let mut script = Script {
        invalid: disturbed([3]),
        ..Script::default()
    };
    let outcome = run_until(8, &mut cells, &mut script, &mut recorder, None);
    assert_eq!(outcome.repeated, 1);
    let pairs = &cells[0].pairs;
    assert_eq!(pairs.len(), 8);
    assert!(pairs.iter().all(|p| p.invalid().is_none()));
    let stored = recorder.with(|store, id| {
        let (mut kept, damaged) = store.pairs(id)?;
        assert!(damaged.is_empty());
        Ok((kept.remove(&cells[0].key).unwrap(), store.samples(None)?.0))
    });
    let (kept, samples) = stored.unwrap();
    assert_eq!(&kept, pairs);
    assert_eq!(samples.iter().filter(|s| s.state == "repeated").count(), 2);
}

#[test]
fn a_machine_that_never_rests_ends_too() {
    let mut cells = cells(1);
    let mut script = Script {
        invalid: disturbed(0..100),
        ..Script::default()
    };
    let outcome = run(8, &mut cells, &mut script);
    assert_eq!(script.runs.len(), 16);
    assert_eq!(outcome.repeated, 8);
    // The last is kept, so that the report can say why there is nothing.
    let [pair] = cells[0].pairs.as_slice() else {
        panic!("{} pairs", cells[0].pairs.len());
    };
    assert!(matches!(pair.invalid(), Some(Invalid::Disturbed(_))));
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_stopped() {
    let mut complete = cells(2);
    run(8, &mut complete, &mut Script::default());

    let mut cells = cells(2);
    let mut recorder = store(&cells);
    // It stops in the middle of a pair of the second cell.
    let mut first = Script {
        stop_after: 21,
        ..Script::default()
    };
    let outcome = run_until(8, &mut cells, &mut first, &mut recorder, None);
    assert_eq!(outcome.stopped, Some(Stop::Interrupted));
    assert_eq!(cells[1].pairs.len(), 2);
    let halves = recorder.with(|store, _| store.samples(None)).unwrap().0;
    let not_run = |s: &&locklab_harness::store::StoredSample| {
        matches!(s.sample.invalid, Some(Invalid::Interrupted(_)))
    };
    assert_eq!(halves.iter().filter(not_run).count(), 1);

    let (mut before, _) = recorder.with(|store, id| store.pairs(id)).unwrap();
    for cell in &mut cells {
        cell.pairs = before.remove(&cell.key).unwrap_or_default();
    }
    let mut second = Script::default();
    let outcome = run_until(8, &mut cells, &mut second, &mut recorder, None);
    assert_eq!(outcome.stopped, None);
    // The half pair was run again, nothing else.
    assert_eq!(second.runs.len(), 32 - 20);
    assert_eq!(second.announced.len(), 6);
    let numbers = |cells: &[Cell]| -> Vec<Vec<(u32, Order)>> {
        let pair = |p: &Pair| (p.index, p.order);
        cells
            .iter()
            .map(|c| c.pairs.iter().map(pair).collect())
            .collect()
    };
    assert_eq!(numbers(&cells), numbers(&complete));
    // Time continues after the stored samples.
    let times: Vec<f64> = cells[1]
        .pairs
        .iter()
        .filter_map(|p| p.baseline.started)
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_store_that_fails_costs_the_copy_only() {
    let mut cells = cells(1);
    let mut recorder = store(&cells);
    recorder.with(|_, _| {
        Err::<(), _>(Error::Failed(
            "the store a.sqlite failed: the disk is full".into(),
        ))
    });
    run_until(8, &mut cells, &mut Script::default(), &mut recorder, None);
    assert_eq!(cells[0].pairs.len(), 8);
    assert_eq!(
        recorder.failure(),
        Some("the store a.sqlite failed: the disk is full")
    );
}

#[test]
fn a_subject_that_fails_its_check_is_not_run_on() {
    let mut cells = cells(2);
    let mut script = Script {
        invalid: [(0, Invalid::CheckFailed("lost".into()))].into(),
        ..Script::default()
    };
    let outcome = run(8, &mut cells, &mut script);
    assert_eq!((outcome.stopped, cells[0].pairs.len()), (None, 1));
    assert_eq!(cells[0].stopped.as_deref(), Some("lost"));
    assert_eq!((cells[1].pairs.len(), script.ended), (8, 2));
}

#[test]
fn a_cell_whose_runs_fail_is_given_up_and_the_others_are_not() {
    let mut cells = cells(2);
    let failed = |i| (i, Invalid::Failed("exit status 1".into()));
    let mut script = Script {
        invalid: (0..16).step_by(2).map(failed).collect(),
        ..Script::default()
    };
    run(8, &mut cells, &mut script);
    let why = cells[0].stopped.as_deref().unwrap();
    assert_eq!(
        why,
        "given up after 3 failed pairs; the last because exit status 1"
    );
    assert_eq!(cells[0].pairs.len(), 3);
    assert!(!cells[1].pairs.is_empty());
}

#[test]
fn a_cell_that_cannot_run_is_left_out_and_says_why() {
    let mut cells = cells(2);
    let mut script = Script {
        stop_after: 3,
        outcome: Stopped::Cell("nginx is not installed".into()),
        ..Script::default()
    };
    let outcome = run(8, &mut cells, &mut script);
    assert_eq!(outcome.stopped, None);
    for cell in &cells {
        assert_eq!(cell.stopped.as_deref(), Some("nginx is not installed"));
    }
    assert_eq!(script.begun, [0, 1]);
}

#[test]
fn pairs_that_are_run_again_take_no_more_than_the_longest_time() {
    let mut cells = cells(2);
    // Whatever is run, the machine disturbs it.
    let disturbed = |i| (i, Invalid::Disturbed("busy".into()));
    let mut script = Script {
        invalid: (0..100).map(disturbed).collect(),
        schedule: Schedule::RoundByRound,
        longest: Some(Duration::from_micros(10)),
        ..Script::default()
    };
    let outcome = run(8, &mut cells, &mut script);
    assert_eq!(outcome.stopped, Some(Stop::UsedUp));
    assert_eq!((outcome.repeated, script.runs.len()), (5, 10));
    assert_eq!(
        script.until,
        Some(script.started + Duration::from_micros(10))
    );
    // What the machine leaves in peace has its pairs within that time.
    let mut script = Script {
        longest: Some(Duration::from_micros(32)),
        ..Script::default()
    };
    assert_eq!(run(8, &mut cells, &mut script).stopped, None);
}

#[test]
fn a_time_limit_and_a_signal_stop_before_the_next_pair() {
    let mut cells = cells(1);
    let mut script = Script::default();
    let deadline = Some(Instant::now());
    let mut recorder = Recorder::nowhere();
    let outcome = run_until(8, &mut cells, &mut script, &mut recorder, deadline);
    assert_eq!(outcome.stopped, Some(Stop::TimeLimit));
    let outcome = Runner {
        design: &design(8),
        recorder: &mut recorder,
        progress: &Progress::hidden(),
        deadline: None,
        interrupt: &AtomicBool::new(true),
        undecided: &|_| Vec::new(),
    }
    .run(&mut script, &mut cells);
    assert_eq!(outcome.stopped, Some(Stop::Interrupted));
    assert!(cells[0].pairs.is_empty() && script.runs.is_empty());
}

/// Runs cells with two more rounds for those that are undecided: at the first look all
/// but the first cell, at the second the last.
fn run_rounds(cells: &mut [Cell], script: &mut Script, seen: &RefCell<Vec<Vec<usize>>>) {
    let undecided = |cells: Vec<Cell>| {
        seen.borrow_mut().push(lengths(&cells));
        let looks = seen.borrow().len();
        (0..cells.len()).map(|cell| cell >= looks).collect()
    };
    Runner {
        design: &Design {
            retry: 2,
            ..design(8)
        },
        recorder: &mut Recorder::nowhere(),
        progress: &Progress::hidden(),
        deadline: None,
        interrupt: &AtomicBool::new(false),
        undecided: &undecided,
    }
    .run(script, cells);
}

#[test]
fn what_is_undecided_gets_another_round_and_nothing_else_does() {
    for schedule in [Schedule::CellByCell, Schedule::RoundByRound] {
        let mut script = Script {
            schedule,
            ..Script::default()
        };
        let (mut cells, seen) = (cells(4), RefCell::default());
        run_rounds(&mut cells, &mut script, &seen);
        assert_eq!(lengths(&cells), [8, 16, 24, 24]);
        assert_eq!(*seen.borrow(), [vec![8; 4], vec![8, 16, 16, 16]]);
        assert_eq!((script.begun.len(), script.ended), (4 + 3 + 2, 4 + 3 + 2));
    }
}

/// A session that was interrupted in a later round sees at each look what it saw then.
#[test]
fn a_look_after_an_interruption_sees_no_more_than_the_first_time() {
    let (mut cells, seen) = (cells(4), RefCell::default());
    let mut first = Script {
        stop_after: 2 * (4 * 8 + 8 + 3),
        ..Script::default()
    };
    run_rounds(&mut cells, &mut first, &seen);
    assert_eq!(lengths(&cells), [8, 16, 11, 8]);
    seen.borrow_mut().clear();
    run_rounds(&mut cells, &mut Script::default(), &seen);
    assert_eq!(*seen.borrow(), [vec![8; 4], vec![8, 16, 16, 16]]);
    assert_eq!(lengths(&cells), [8, 16, 24, 24]);
}

#[test]
fn a_disturbed_pair_is_run_again_and_a_failed_one_is_not() {
    for (invalid, runs, repeated) in [
        (Invalid::Disturbed("the machine slept".into()), 18, 1),
        (Invalid::Failed("a process died".into()), 16, 0),
    ] {
        let mut cells = cells(1);
        let mut script = Script {
            invalid: [(2, invalid)].into(),
            ..Script::default()
        };
        let outcome = run(8, &mut cells, &mut script);
        assert_eq!((script.runs.len(), outcome.repeated), (runs, repeated));
        assert_eq!(cells[0].pairs.len(), 8);
    }
}

#[test]
fn round_by_round_every_cell_has_a_pair_before_any_has_two() {
    let mut cells = cells(3);
    let mut script = Script {
        schedule: Schedule::RoundByRound,
        pairing: Pairing::Together,
        ..Script::default()
    };
    run(2, &mut cells, &mut script);
    let order: Vec<usize> = script
        .runs
        .iter()
        .step_by(2)
        .map(|(cell, _)| *cell)
        .collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    let announced: Vec<(usize, u32)> = script.announced.iter().map(|t| (t.cell, t.pair)).collect();
    assert_eq!(announced, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    assert!(cells.iter().all(|c| orders(c) == [Order::Together; 2]));
    assert_eq!((script.begun.len(), script.ended), (3, 3));
}

#[test]
fn a_design_by_time_goes_on_until_cells_are_settled_or_the_time_is_used_up() {
    let mut settled = cells(3);
    let mut script = Script {
        time: Some(Duration::from_secs(3600)),
        settled: 20,
        schedule: Schedule::RoundByRound,
        ..Script::default()
    };
    let outcome = run(12, &mut settled, &mut script);
    assert_eq!((outcome.stopped, lengths(&settled)), (None, vec![20; 3]));
    assert_eq!(script.ended, 3);
    // After it nothing is begun, and nothing is kept that was disturbed.
    let mut late = cells(3);
    let mut script = Script {
        time: Some(Duration::from_secs(10)),
        takes: Duration::from_millis(900),
        invalid: disturbed([2]),
        schedule: Schedule::RoundByRound,
        ..Script::default()
    };
    let outcome = run(12, &mut late, &mut script);
    assert_eq!((outcome.stopped, outcome.repeated), (None, 1));
    assert_eq!(lengths(&late), [2, 2, 1]);
    assert_eq!(script.until, Some(script.started + Duration::from_secs(10)));
    // A disturbed pair costs nothing but time, while there is some.
    let mut restless = cells(1);
    let mut script = Script {
        invalid: disturbed((0..80).step_by(2)),
        time: Some(Duration::from_secs(3600)),
        settled: 10,
        ..Script::default()
    };
    let outcome = run(3, &mut restless, &mut script);
    assert_eq!((outcome.repeated, lengths(&restless)), (40, vec![10]));
}

#[test]
fn a_cell_beyond_doubt_and_wide_goes_on_with_a_quarter_of_the_pairs() {
    let lengths_of = |count: u64, interrupted: bool| {
        let mut cells = cells(count);
        let script = |stop_after| Script {
            time: Some(Duration::from_secs(4)),
            takes: Duration::from_millis(5),
            wide: 12,
            schedule: Schedule::RoundByRound,
            stop_after,
            ..Script::default()
        };
        if interrupted {
            let outcome = run(12, &mut cells, &mut script(120));
            assert_eq!(outcome.stopped, Some(Stop::Interrupted));
        }
        let outcome = run(12, &mut cells, &mut script(usize::MAX));
        assert_eq!(outcome.stopped, None);
        lengths(&cells)
    };
    // 400 pairs: from the 48th on the first cell has one for four of the others.
    assert_eq!(lengths_of(3, false), [45, 178, 177]);
    // Alone, it has all of them.
    assert_eq!(lengths_of(1, false), [400]);
    // A session that is resumed knows what the one before had decided.
    let resumed = lengths_of(3, true);
    assert!((44..=46).contains(&resumed[0]), "{resumed:?}");
}

#[test]
fn a_cell_whose_pairs_cost_four_times_as_much_has_half_as_many() {
    let mut cells = cells(3);
    let mut script = Script {
        time: Some(Duration::from_secs(4)),
        takes: Duration::from_millis(5),
        first_takes: 4,
        schedule: Schedule::RoundByRound,
        ..Script::default()
    };
    assert_eq!(run(12, &mut cells, &mut script).stopped, None);
    let [first, second, third] = lengths(&cells)[..] else {
        unreachable!("three cells")
    };
    assert!(first.abs_diff(second / 2) <= 1 && second.abs_diff(third) <= 1);
}

#[test]
fn a_shared_run_measures_a_pair_of_every_cell_and_one_coin_decides() {
    let mut cells = cells(3);
    let mut script = Script {
        schedule: Schedule::Shared,
        ..Script::default()
    };
    let outcome = run(8, &mut cells, &mut script);
    assert_eq!(outcome.stopped, None);
    assert_eq!((script.begun.len(), script.ended), (3, 3));
    for cell in &cells {
        let coins = (0..8).map(|pair| coin(7, pair).into());
        assert_eq!(orders(cell), coins.collect::<Vec<Order>>());
    }
    // One side in all cells, then the other.
    for (pair, runs) in script.runs.chunks(6).enumerate() {
        let sides = coin(7, pair as u64).sides().into_iter();
        let expected = sides.flat_map(|side| (0..3).map(move |cell| (cell, side)));
        assert_eq!(runs, expected.collect::<Vec<_>>());
    }
}

/// Returns what a boot measured before it broke off is stored, and its pairs are run
/// again under a new number and with a coin of their own.
#[test]
fn a_shared_run_that_breaks_off_loses_no_sample() {
    let mut cells = cells(3);
    let mut recorder = store(&cells);
    let mut script = Script {
        schedule: Schedule::Shared,
        // One pair of all, one side of the second, and one cell of its other.
        stop_after: 6 + 3 + 1,
        ..Script::default()
    };
    let outcome = run_until(8, &mut cells, &mut script, &mut recorder, None);
    assert_eq!(outcome.stopped, Some(Stop::Interrupted));
    // 10 runs, and for the two that lack their other half a mark of it.
    let samples = recorder.with(|store, _| store.samples(None)).unwrap().0;
    assert_eq!(samples.len(), 12);
    let (mut stored, _) = recorder.with(|store, id| store.pairs(id)).unwrap();
    for (index, cell) in cells.iter_mut().enumerate() {
        cell.pairs = stored.remove(&cell.key).unwrap();
        assert_eq!(cell.pairs.len(), if index == 0 { 2 } else { 1 });
    }
    script.stop_after = usize::MAX;
    let outcome = run_until(8, &mut cells, &mut script, &mut recorder, None);
    assert_eq!(outcome.stopped, None);
    for cell in &cells {
        let numbers: Vec<u32> = cell.pairs.iter().map(|pair| pair.index).collect();
        assert_eq!(numbers.len(), 8);
        assert!(numbers.is_sorted());
    }
}

/// A backend that promises samples and gives none.
struct Silent;

impl Backend for Silent {
    fn experiment(&self, _: Design) -> Experiment {
        unreachable!("these tests run cells")
    }

    fn fingerprint(&self) -> Value {
        Value::Null
    }

    fn bias_fingerprint(&self, _: &Cell) -> Option<Value> {
        None
    }

    fn schedule(&self) -> Schedule {
        Schedule::Shared
    }

    fn run(&mut self, _: &Cell, _: &Turn, _: Side) -> Result<Sample, Stopped> {
        unreachable!("cells are run together")
    }

    fn run_shared(
        &mut self,
        _: &[Turn],
        _: Side,
        _: &mut dyn FnMut(usize, Sample),
    ) -> Result<(), Stopped> {
        Ok(())
    }
}

#[test]
fn a_backend_without_samples_stops_its_cells_and_does_not_go_on_for_ever() {
    let mut cells = cells(2);
    let outcome = run(8, &mut cells, &mut Silent);
    assert_eq!(outcome.stopped, None);
    for cell in &cells {
        let why = cell.stopped.as_deref();
        assert_eq!(why, Some("its backend gave no sample"));
    }
}
