//! Recorded programs that are written down, replayed in blocks of a few
//! milliseconds. Nothing here says how fast anything is.

use super::*;
use crate::plan::Spec;
use crate::replay::Replay;
use crate::script::Action;
use locklab_harness::experiment::Order;
use locklab_replay::{Class, Lock, Program, Recorded, Step, Thread};
use locklab_workload::Cells;

const LOCK: Lock = Lock {
    image: 0,
    address: 0x1000,
    shared: false,
    acquired: 1,
    contended: 0,
    waited_ns: 0.0,
    held_ns: 0.0,
    // Its holders write beside it; those of a lock of which that is not known, in a
    // line of its own.
    migration_ns: Some(40.0),
};

fn acquire(lock: u32, shared: bool) -> Step {
    Step::Acquire { lock, shared }
}

fn release(lock: u32) -> Step {
    Step::Release { lock }
}

/// Returns two threads with roles of their own, one of which takes no lock, and two that do
/// alike: they nest, read, hand over and sleep.
fn program() -> Program {
    let thread = |number, class, steps: &[Step]| Thread {
        number,
        class,
        steps: steps.to_vec(),
        work_ns: 2000.0,
    };
    let worker = [
        Step::Work(500),
        acquire(0, false),
        Step::Work(300),
        acquire(1, true),
        Step::Work(100),
        release(0),
        release(1),
        Step::Post {
            channel: 0,
            times: 1,
        },
        acquire(1, false),
        release(1),
    ];
    let main = [
        Step::Await { channel: 0 },
        acquire(0, false),
        Step::Work(1000),
        release(0),
        Step::Idle(1000),
    ];
    let class = |threads, scales| Class {
        threads,
        scales,
        acquisitions_per_s: 1.0,
        work: 0.5,
        sites: Vec::new(),
    };
    Program {
        locks: vec![
            LOCK,
            Lock {
                shared: true,
                migration_ns: None,
                ..LOCK
            },
        ],
        threads: vec![
            thread(0, 1, &main),
            thread(1, 0, &worker),
            thread(2, 0, &worker),
            thread(3, 1, &[Step::Work(10), Step::Idle(1000)]),
        ],
        channels: 1,
        classes: vec![class(2, true), class(2, false)],
        modules: Vec::new(),
        holds: Vec::new(),
        recorded: Recorded {
            window_ns: 10_000.0,
            matched_ns: 100.0,
            work_ns: 6000.0,
            ..Recorded::default()
        },
    }
}

#[test]
fn every_step_stays_and_lengths_become_units() {
    let replay = Replay::new(program(), "a.trace").unwrap();
    let scripts = replay.scripts(4, 5.0, 1);
    assert_eq!(
        scripts[0].actions,
        [
            Action::Await(0),
            Action::Acquire {
                place: 0,
                shared: false
            },
            Action::Compute(200),
            Action::Release {
                place: 0,
                shared: false
            },
            Action::Idle(1000),
        ]
    );
    // The release of a reader is one of a reader, and that of a writer is not.
    let releases = |act: &&Action| matches!(act, Action::Release { .. });
    let of_worker: Vec<&Action> = scripts[1].actions.iter().filter(releases).collect();
    let shared = [(0, false), (1, true), (1, false)];
    let expected = shared.map(|(place, shared)| Action::Release { place, shared });
    assert!(of_worker.into_iter().eq(&expected));
}

#[test]
fn what_moves_with_a_lock_becomes_units() {
    let replay = Replay::new(program(), "a.trace").unwrap();
    assert_eq!(replay.migration_steps(5.0), [Some(8), None]);
}

#[test]
fn only_classes_that_scale_have_other_numbers_of_threads() {
    let replay = Replay::new(program(), "a.trace").unwrap();
    assert_eq!(replay.workers(None), Ok(4));
    assert_eq!(replay.workers(Some(2)), Ok(4));
    assert_eq!(replay.workers(Some(5)), Ok(7));
    assert_eq!(replay.scripts(7, 5.0, 1).len(), 7);
    assert!(replay.workers(Some(0)).is_err());
    let unknown = Program {
        recorded: Recorded {
            unmatched_ns: 9000.0,
            ..program().recorded
        },
        ..program()
    };
    let replay = Replay::new(unknown, "a.trace").unwrap();
    assert_eq!(replay.workers(None), Ok(4));
    assert_eq!(
        replay.workers(Some(5)).unwrap_err().to_string(),
        "a.trace: its threads wait for what was not recorded, so that it can be run again with \
         its own number of threads only; leave out --threads"
    );
    let alone = Program {
        locks: Vec::new(),
        ..program()
    };
    assert!(Replay::new(alone, "a.trace").is_err());
}

#[test]
fn replays_keep_the_increments_of_all_locks() {
    let native = Native::probe();
    for (lock, workers, latency) in [
        ("qspinlock", 4, false),
        ("pthread", 4, true),
        ("phase-fair", 6, false),
    ] {
        let spec = Spec {
            cells: Cells {
                threads: vec![workers],
                latency,
                ..Cells::default()
            },
            slice: Some(Duration::from_millis(2)),
            time: Duration::from_millis(50),
            ..Spec::new("ticket", "tas")
        };
        let replay = Replay::new(program(), "a.trace").unwrap();
        let plan = Plan::replaying(spec, replay, &native).unwrap();
        assert!(
            native.facts(&plan)[..]
                .iter()
                .any(|(name, _)| name == "Program")
        );
        let design = Design {
            seed: 3,
            ..Design::usual(8)
        };
        let code = crate::subject::code(lock).unwrap();
        let interrupt = Arc::new(AtomicBool::new(false));
        let (mut slices, experiment) = native
            .backend_of([code, code], plan, design, interrupt)
            .unwrap();
        let turn = Turn {
            cell: 0,
            pair: 0,
            order: Order::Together,
            seed: 5,
        };
        let samples = slices.run_together(&experiment.cells[0], &turn).unwrap();
        for sample in samples {
            // A loaded machine may void a block; it may not fail a check.
            let failed = matches!(sample.invalid, Some(Invalid::CheckFailed(_)));
            assert!(!failed, "{lock}: {:?}", sample.invalid);
        }
    }
}

#[test]
fn processes_are_refused() {
    let spec = Spec {
        processes: true,
        ..Spec::new("ticket", "tas")
    };
    let replay = Replay::new(program(), "a.trace").unwrap();
    let why = Plan::replaying(spec, replay, &Native::probe())
        .unwrap_err()
        .to_string();
    assert_eq!(
        why,
        "a recorded program is replayed by threads; leave out processes"
    );
}

#[test]
fn what_an_act_takes_is_part_of_the_recorded_work() {
    let of = |act_ns| {
        let replay = Replay::new(program(), "a.trace").unwrap();
        replay.on_machine(act_ns, 0).scripts(4, 5.0, 1)[0].actions[2]
    };
    assert_eq!(of(0.0), Action::Compute(200));
    assert_eq!(of(50.0), Action::Compute(190));
    assert_eq!(of(1e6), Action::Compute(0));
    assert!((0.0..=50.0).contains(&crate::replay::act_ns(5.0)));
}
