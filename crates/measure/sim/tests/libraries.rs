//! The locks of libraries: what their descriptions promise, simulated.

use crate::programs;

use locklab_replay::{Program, Step};
use locklab_sim::{
    FigureKey, Machine, Scenario, Subject, Waiters, Workload, can_be_simulated, library_locks,
    simulate,
};
use programs::{acquire, program, release, run, run_on, run_under, turn};

fn read(outside: u64, inside: u64) -> [Step; 4] {
    let (lock, shared) = (0, true);
    let [before, _, within, after] = turn(outside, inside);
    [before, Step::Acquire { lock, shared }, within, after]
}

#[test]
fn all_exclude_and_get_on_with_too_few_cpus_or_enough() {
    let of_programs = [
        "std",
        "parking_lot",
        "pthread",
        "pthread-adaptive",
        "std-rwlock",
        "parking_lot-rwlock",
        "pthread-rwlock",
        "pthread-rwlock-w",
    ];
    for lock in of_programs {
        let listed = library_locks().filter(|known| *known == lock);
        assert_eq!(listed.count(), 1, "{lock}");
        assert!(can_be_simulated(lock));
        let machine = Machine::builtin("flat-16").unwrap();
        let workload = Workload::Matrix {
            critical: 4,
            non_critical: 32,
        };
        // A second holder would be an error, and so would a waiter that nobody wakes.
        let found = simulate(&Scenario::new(machine, lock, workload, 8)).unwrap();
        assert_eq!(found.outcome.acquisitions, 10_000, "{lock}");
        for (cpus, inside) in [(2, 300), (2, 30_000), (8, 300), (8, 30_000)] {
            // Of different lengths, so that no wake-up always comes just when it is held.
            let writes = [500, 900, 1300].map(|outside| turn(outside, inside));
            let reads = [700, 1100, 1500].map(|outside| read(outside, inside));
            let threads: Vec<&[Step]> = writes.iter().chain(&reads).map(|turn| &turn[..]).collect();
            let program = program(&threads, 1, 0);
            let found = run(&program, Some(lock), cpus).unwrap();
            let most = run(&program, None, cpus).unwrap().rate;
            let (least, most) = match lock {
                // Writers that never get it leave more to readers than a fair order does.
                "pthread-rwlock" => (0.1 * most, f64::INFINITY),
                _ => (0.1 * most, 1.01 * most),
            };
            assert!(
                (least..most).contains(&found.rate),
                "{lock}, {cpus} CPUs, {inside} ns: {found:?}, ideal {most}"
            );
        }
    }
}

#[test]
fn those_that_spin_get_short_sections_without_a_sleep_and_long_ones_by_one() {
    let of = |lock, inside| {
        // Of different lengths, so that no wake-up always comes just when it is held.
        let turns = [inside, inside + inside / 4].map(|outside| turn(outside, inside));
        run(&program(&[&turns[0], &turns[1]], 1, 0), Some(lock), 2).unwrap()
    };
    let sleeps = of("pthread", 400);
    for lock in ["std", "parking_lot", "pthread-adaptive"] {
        let found = of(lock, 400);
        assert!(
            found.rate > 1.3 * sleeps.rate && found.wait.p99 < 2000.0,
            "{lock}: {found:?}\npthread: {sleeps:?}"
        );
        let long = of(lock, 200_000);
        assert!(long.burnt < 0.2, "{lock}: {long:?}");
    }
}

#[test]
fn a_waiter_of_std_does_not_spin_past_sleepers() {
    // Two hold for long in turn, so that one of three always sleeps; who comes then
    // sleeps at once, where an adaptive mutex of glibc spins.
    let turn = turn(500, 20_000);
    let program = program(&[&turn[..]; 6], 1, 0);
    let [std, adaptive] =
        ["std", "pthread-adaptive"].map(|lock| run(&program, Some(lock), 6).unwrap());
    assert!(std.burnt < adaptive.burnt, "{std:?}\n{adaptive:?}");
}

#[test]
fn parking_lot_hands_the_lock_to_the_first_sleeper_now_and_then() {
    // The holder asks again at once, before a woken thread runs.
    let turn = turn(10, 20_000);
    let program = program(&[&turn[..]; 2], 1, 0);
    let [fair, unfair] = ["parking_lot", "std"].map(|lock| run(&program, Some(lock), 2).unwrap());
    assert!(fair.jain > 0.9 && fair.wait.max < 3e6, "{fair:?}");
    assert!(unfair.jain < 0.8, "{unfair:?}");
}

#[test]
fn glibcs_rwlock_prefers_readers_to_writers_that_wait() {
    // There is always a reader inside: a writer waits for ever.
    let (reads, writes) = (read(100, 4000), turn(1000, 4000));
    let program = program(&[&reads[..], &reads, &reads, &reads, &writes], 1, 0);
    let of = |lock| run(&program, Some(lock), 5).unwrap();
    let prefers = of("pthread-rwlock");
    assert!(prefers.rate > 3.6, "{prefers:?}");
    // In these the writer gets its turns, and no reader is inside meanwhile.
    for lock in [
        "rw-queued",
        "std-rwlock",
        "parking_lot-rwlock",
        "pthread-rwlock-w",
    ] {
        let fair = of(lock);
        assert!(fair.rate < 0.8 * prefers.rate, "{lock}: {fair:?}");
    }
}

#[test]
fn glibcs_other_rwlock_prefers_writers_to_readers_that_wait() {
    // There is always a writer that waits, and a reader that would.
    let (reads, writes) = (read(100, 4000), turn(100, 4000));
    let program = program(&[&writes[..], &writes, &writes, &reads, &reads], 1, 0);
    let of = |lock| run(&program, Some(lock), 5).unwrap();
    let [readers, writers] = ["pthread-rwlock", "pthread-rwlock-w"].map(of);
    assert!(writers.rate < 1.05, "{writers:?}");
    assert!(readers.rate > 1.2 * writers.rate, "{readers:?}");
    assert!(
        readers.jain > 1.3 * writers.jain,
        "{readers:?}\n{writers:?}"
    );
}

#[test]
fn a_program_of_glibc_shares_its_rwlocks_and_no_mutex() {
    let [reads, short] = [read(200, 4000), turn(200, 50)];
    let nested = |lock: u32| {
        let mut steps = reads.to_vec();
        steps.extend(short);
        for step in &mut steps[..4] {
            match step {
                Step::Acquire { lock: of, .. } | Step::Release { lock: of } => *of = lock,
                _ => {}
            }
        }
        steps
    };
    let of = |shared: u32| -> Program {
        let steps = nested(shared);
        let mut program = program(&[&steps[..]; 4], 2, 0);
        program.locks[1].shared = true;
        program
    };
    let rate = |program: &Program| run_under(program, Subject::Glibc, 4).unwrap().rate;
    assert!(rate(&of(1)) > 3.4);
    assert!(rate(&of(0)) < 1.3);
    // Without rwlocks it is what its mutex alone is.
    let [before, after] = [acquire(0), release(0)];
    let steps = [Step::Work(3000), before, Step::Work(1000), after];
    let plain = program(&[&steps[..]; 4], 1, 0);
    let [all, alone] = [
        Subject::Glibc,
        Subject::Lock("pthread", locklab_sim::Waiters::Spin),
    ]
    .map(|lock| run_under(&plain, lock, 4).unwrap());
    assert_eq!(all, alone);
}

#[test]
fn a_queue_whose_waiters_sleep_finds_its_way_out_of_a_convoy() {
    // A wake-up takes as long as a waiter spins before it sleeps. If all took the same,
    // each would come too late for the next, for ever after one long section.
    let mut turns = turn(600, 2500).repeat(100);
    turns.extend(turn(600, 100_000));
    let program = program(&[&turns[..]; 2], 1, 0);
    let rate = |spread| {
        let machine = Machine::builtin("flat-16").unwrap();
        let spin_ns =
            1000.0 * machine.get(FigureKey::CorePauseCycles) / machine.get(FigureKey::CoreClockGhz);
        let slow = [
            (FigureKey::SchedulerWakeUs, 1.05 * spin_ns / 1e3),
            (FigureKey::SchedulerWakeSpread, spread),
        ];
        let machine = slow.into_iter().fold(machine, |machine, (key, value)| {
            machine.with(key, value).unwrap()
        });
        let lock = Subject::Lock("malthusian", Waiters::SpinThenPark);
        run_on(&machine, &program, lock, 2).unwrap().rate
    };
    let (same, differ) = (rate(1.0), rate(2.5));
    assert!(differ > 2.0 * same, "{same} {differ}");
}
