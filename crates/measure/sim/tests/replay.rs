//! Programs whose answer is known, under simulated locks and schedulers.

use crate::programs;

use locklab_replay::Step;
use locklab_sim::{Machine, Placement, Replay, SimError, Subject, replay};
use programs::{acquire, program, release, run, turn};

#[test]
fn threads_that_never_meet_all_work() {
    let alone = [Step::Work(5000), acquire(0), Step::Work(50), release(0)];
    let other = [Step::Work(5000), acquire(1), Step::Work(50), release(1)];
    let program = program(&[&alone, &other], 2, 0);
    for lock in [None, Some("futex"), Some("mcs"), Some("hmcs")] {
        let found = run(&program, lock, 2).unwrap();
        assert!((1.95..=2.01).contains(&found.rate), "{lock:?}: {found:?}");
    }
}

#[test]
fn nothing_beats_the_ideal_lock_and_it_serialises() {
    let turn = turn(1000, 1000);
    let program = program(&[&turn[..]; 8], 1, 0);
    let ideal = run(&program, None, 8).unwrap();
    // The lock is always held: one thread inside, on average one outside.
    assert!((1.9..=2.01).contains(&ideal.rate), "{ideal:?}");
    for lock in ["futex", "ticket", "mcs", "ttas", "malthusian"] {
        let found = run(&program, Some(lock), 8).unwrap();
        assert!(found.rate < ideal.rate, "{lock}: {found:?}");
        assert!(found.rate > 0.2 * ideal.rate, "{lock}: {found:?}");
    }
}

#[test]
fn data_that_moves_with_a_lock_costs_each_handoff_and_no_ideal_lock() {
    let turn = turn(10, 1000);
    let with = |migration_ns| {
        let mut program = program(&[&turn[..]; 2], 1, 0);
        program.locks[0].migration_ns = migration_ns;
        program
    };
    let rate = |lock, migration_ns| run(&with(migration_ns), lock, 2).unwrap().rate;
    for lock in ["ticket", "mcs"] {
        let (free, dear) = (rate(Some(lock), None), rate(Some(lock), Some(1000.0)));
        assert!(
            (0.45..0.65).contains(&(dear / free)),
            "{lock}: {free} {dear}"
        );
    }
    assert_eq!(rate(None, None), rate(None, Some(1000.0)));
}

#[test]
fn threads_share_too_few_cpus() {
    let turn = turn(20_000, 20);
    let program = program(&[&turn[..]; 8], 1, 0);
    for lock in [None, Some("futex")] {
        let found = run(&program, lock, 2).unwrap();
        assert!((1.8..=2.01).contains(&found.rate), "{lock:?}: {found:?}");
    }
}

#[test]
fn a_lock_in_order_of_arrival_that_spins_collapses_without_enough_cpus() {
    let turn = turn(700, 1000);
    let program = program(&[&turn[..]; 8], 1, 0);
    let [sleeps, spins] = ["futex", "mcs"].map(|lock| run(&program, Some(lock), 2).unwrap());
    assert!(spins.rate < 0.3 * sleeps.rate, "{spins:?}\n{sleeps:?}");
    assert!(spins.burnt > 1.5, "{spins:?}");
}

#[test]
fn any_lock_spins_and_then_sleeps() {
    let turn = turn(50_000, 200_000);
    let program = program(&[&turn[..]; 4], 1, 0);
    for lock in ["mcs", "ticket", "clh", "phase-fair", "bravo"] {
        let parks = run(&program, Some(&format!("{lock}+park")), 4).unwrap();
        let spins = run(&program, Some(lock), 4).unwrap();
        assert!(
            parks.burnt < 0.7 * spins.burnt,
            "{lock}: {parks:?}\n{spins:?}"
        );
        assert!(
            parks.rate > 0.8 * spins.rate,
            "{lock}: {parks:?}\n{spins:?}"
        );
    }
    // And leaves its CPU to who can go on.
    let turn = programs::turn(700, 1000);
    let program = programs::program(&[&turn[..]; 8], 1, 0);
    let [parks, spins] = ["mcs+park", "mcs"].map(|lock| run(&program, Some(lock), 2).unwrap());
    assert!(parks.rate > 2.0 * spins.rate, "{parks:?}\n{spins:?}");
}

/// Short sections, and more threads than CPUs: handed over in order, each costs a wake-up.
#[test]
fn threads_that_run_pass_those_that_sleep_if_they_may() {
    let turn = turn(300, 100);
    let program = program(&[&turn[..]; 4], 1, 0);
    for lock in ["mcs", "reciprocating"] {
        let with = |how: &str| run(&program, Some(&format!("{lock}+{how}")), 2).unwrap();
        let (parks, barges) = (with("park"), with("barging"));
        assert!(
            barges.rate > 3.0 * parks.rate,
            "{lock}: {barges:?}\n{parks:?}"
        );
        assert!(barges.rate < run(&program, None, 2).unwrap().rate);
    }
}

#[test]
fn who_sleeps_burns_no_cpu() {
    let turn = turn(50_000, 200_000);
    let program = program(&[&turn[..]; 4], 1, 0);
    let [sleeps, spins] = ["futex", "mcs"].map(|lock| run(&program, Some(lock), 4).unwrap());
    assert!(
        sleeps.burnt < 0.2 && spins.burnt > 1.0,
        "{sleeps:?}\n{spins:?}"
    );
    assert!(sleeps.waited > 0.5, "{sleeps:?}");
}

#[test]
fn a_thread_waits_for_what_another_posts() {
    let (channel, times) = (0, 1);
    let producer = [Step::Work(10_000), Step::Post { channel, times }];
    let consumer = [Step::Await { channel }, Step::Work(5000)];
    let program = program(&[&producer, &consumer], 0, 1);
    let found = run(&program, Some("futex"), 2).unwrap();
    // The consumer works for half of the time, or a little less: the producer
    // also wakes it.
    assert!((1.3..=1.5).contains(&found.rate), "{found:?}");
    assert_eq!(found.forced, 0);
    // A wait that nobody ends is cut short, and the program goes on.
    let waits = [Step::Await { channel }, Step::Work(5000)];
    let program = programs::program(&[&waits, &waits], 0, 1);
    assert!(run(&program, Some("futex"), 2).unwrap().forced > 0);
}

#[test]
fn a_program_that_takes_no_lock_for_long_is_not_stuck() {
    let busy = [Step::Work(1_000_000)];
    let mut program = program(&[&busy, &busy], 0, 0);
    // This takes a fifth of a second.
    program.threads[0].steps = vec![Step::Work(200_000_000)];
    let machine = Machine::builtin("flat-16").unwrap();
    let found = replay(&Replay {
        machine: &machine,
        lock: Subject::Ideal,
        program: &program,
        roles: &program.cast(None, 1),
        hardware_threads: None,
        placement: Placement::Spread,
        seed: 1,
        work_ns: 1e9,
        most_events: u64::MAX,
    });
    assert!((1.95..=2.01).contains(&found.unwrap().rate));
}

#[test]
fn an_idle_thread_leaves_its_cpu_to_others() {
    let idle = [Step::Idle(1_000_000), Step::Work(1000)];
    let busy = [Step::Work(10_000)];
    let program = program(&[&idle, &busy], 0, 0);
    let found = run(&program, Some("futex"), 1).unwrap();
    assert!((0.95..=1.01).contains(&found.rate), "{found:?}");
}

#[test]
fn readers_share_what_the_lock_lets_them() {
    let read = [
        Step::Work(500),
        Step::Acquire {
            lock: 0,
            shared: true,
        },
        Step::Work(4000),
        release(0),
    ];
    let program = program(&[&read[..]; 4], 1, 0);
    let of = |lock| run(&program, lock, 4).unwrap().rate;
    assert!(of(None) > 3.9);
    assert!(of(Some("rw-queued")) > 3.5);
    assert!(of(Some("mcs")) < 1.3);
}

#[test]
fn a_seed_gives_the_same_run_and_another_another() {
    let turn = turn(3000, 1000);
    let program = program(&[&turn[..]; 6], 1, 0);
    let one = run(&program, Some("futex-adaptive"), 3).unwrap();
    assert_eq!(one, run(&program, Some("futex-adaptive"), 3).unwrap());
}

#[test]
fn threads_that_take_two_locks_in_opposite_orders_deadlock_under_every_lock() {
    let nested = |outer, inner| {
        [
            acquire(outer),
            Step::Work(1000),
            acquire(inner),
            Step::Work(1000),
            release(inner),
            release(outer),
            Step::Work(1000),
        ]
    };
    let opposite = program(&[&nested(0, 1), &nested(1, 0)], 2, 0);
    let same = program(&[&nested(0, 1), &nested(0, 1)], 2, 0);
    for lock in [None, Some("mcs"), Some("futex")] {
        let error = run(&opposite, lock, 2).unwrap_err();
        assert!(matches!(error, SimError::Deadlock(_)), "{lock:?}: {error}");
        run(&same, lock, 2).unwrap();
    }
}

#[test]
fn what_cannot_be_run_is_said() {
    let turn = turn(1000, 100);
    let program = program(&[&turn[..]], 1, 0);
    let error = run(&program, Some("no-such"), 2).unwrap_err();
    assert!(matches!(error, SimError::Refused(_)));
    let error = run(&program, None, 99).unwrap_err();
    assert!(error.to_string().contains("99 CPUs"), "{error}");
}

#[test]
fn a_run_that_comes_to_its_most_events_is_cut_short_and_says_how_sure_it_is() {
    let turn = turn(1000, 500);
    let program = program(&[&turn, &turn], 1, 0);
    let machine = Machine::builtin("flat-16").unwrap();
    let run = |most_events| {
        replay(&Replay {
            machine: &machine,
            lock: Subject::Glibc,
            program: &program,
            roles: &program.cast(None, 1),
            hardware_threads: None,
            placement: Placement::Spread,
            seed: 1,
            work_ns: 20e6,
            most_events,
        })
        .unwrap()
    };
    let (whole, cut) = (run(u64::MAX), run(8000));
    assert_eq!(whole.cut, None);
    assert!(cut.events < whole.events, "{} {}", cut.events, whole.events);
    let unsure = cut.cut.unwrap();
    assert!(unsure < 0.5, "{unsure}");
    assert!((cut.rate / whole.rate - 1.0).abs() < 0.2, "{cut:?}");
}
