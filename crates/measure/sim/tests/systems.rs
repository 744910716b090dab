//! Tests more threads than CPUs under an operating system: what must be so whatever
//! its figures.

use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};
use locklab_sim::{
    FigureKey, Loop, Machine, Outcome, Scenario, Sim, Stop, Word, Workload, run, simulate_lock,
};
use std::cell::Cell;

/// Simulates threads that share two CPUs and one lock.
fn shared(lock: &str, threads: usize, inside_ns: f64, outside_ns: f64) -> Scenario {
    let machine = Machine::builtin("flat-16").unwrap();
    let workload = Workload::Loop(Loop {
        inside_ns,
        outside_ns,
        write_percent: 100,
        ..Loop::default()
    });
    let mut scenario = Scenario::new(machine, lock, workload, threads);
    scenario.hardware_threads = Some(2);
    scenario.stop = match threads > 2 {
        true => Stop::Milliseconds(30.0),
        false => Stop::Acquisitions(5_000),
    };
    scenario
}

fn outcome(lock: &str, threads: usize) -> Outcome {
    run(&shared(lock, threads, 50.0, 100.0)).unwrap()
}

#[test]
fn locks_that_sleep_keep_most_with_more_threads_and_spins_in_order_do_not() {
    // Waiters of glibc's mutex call the system as soon as they see that others do.
    for (lock, share) in [
        ("futex", 0.7),
        ("pthread", 0.5),
        ("std", 0.7),
        ("parking_lot", 0.7),
    ] {
        let (two, eight) = (outcome(lock, 2).ops_per_s, outcome(lock, 8).ops_per_s);
        assert!(eight > share * two, "{lock}: {two} and {eight}");
    }
    for lock in ["ticket", "mcs"] {
        let (two, eight) = (outcome(lock, 2).ops_per_s, outcome(lock, 8).ops_per_s);
        assert!(eight < 0.4 * two, "{lock}: {two} and {eight}");
    }
}

/// A lock whose waiters sleep needs no several slices to show its rate; one that spins does.
#[test]
fn locks_that_sleep_are_simulated_for_a_part_of_the_slices() {
    let slices = Stop::slices(&Machine::builtin("flat-16").unwrap());
    let Stop::Slices { ms, half_width } = slices else {
        panic!("{slices:?} of a machine that is not virtual");
    };
    for (lock, sleeps) in [("std", true), ("pthread", true), ("ttas", false)] {
        let [long, short] = [Stop::Milliseconds(ms), slices].map(|stop| {
            let mut scenario = shared(lock, 8, 50.0, 100.0);
            scenario.stop = stop;
            run(&scenario).unwrap()
        });
        let ratio = short.ops_per_s / long.ops_per_s;
        assert!((ratio - 1.0).abs() < 2.0 * half_width, "{lock}: {ratio}");
        assert_eq!(short.acquisitions < long.acquisitions / 2, sleeps, "{lock}");
    }
}

/// Who holds a lock when its slice ends keeps the others waiting for the slices of those
/// before it.
#[test]
fn a_holder_that_loses_its_cpu_is_waited_for_by_slices() {
    let slice_ns = Machine::builtin("flat-16")
        .unwrap()
        .get(FigureKey::SchedulerSliceUs)
        * 1e3;
    let longest = outcome("ttas", 6).longest_wait_ns;
    assert!(longest > slice_ns, "{longest}");
    let mut scenario = shared("ttas", 6, 50.0, 100.0);
    scenario.machine = scenario
        .machine
        .with(FigureKey::SchedulerSliceUs, 300.0)
        .unwrap();
    let shorter = run(&scenario).unwrap().longest_wait_ns;
    assert!(shorter < longest, "{shorter} and {longest}");
}

/// Returns the mean rate of three seeds with so many threads on two CPUs.
fn rate(lock: &str, threads: usize) -> f64 {
    let of = |seed| {
        let work = Workload::Matrix {
            critical: 1,
            non_critical: 32,
        };
        let machine = Machine::builtin("flat-16").unwrap();
        let mut scenario = Scenario::new(machine, lock, work, threads);
        scenario.hardware_threads = Some(2);
        scenario.seed = seed;
        scenario.stop = Stop::Milliseconds(28.0);
        run(&scenario).unwrap().ops_per_s
    };
    (1..=3).map(of).sum::<f64>() / 3.0
}

/// A slice that ends while the holder waits for a line of its section takes its CPU away
/// before it releases the lock.
#[test]
fn a_holder_that_waits_for_memory_loses_its_cpu_too() {
    let (two, four) = (rate("ttas", 2), rate("ttas", 4));
    assert!((0.55..0.85).contains(&(four / two)), "{two} and {four}");
}

/// What a queue does before a thread in line loses its CPU is no part of its rate.
#[test]
fn a_queue_that_collapses_has_the_rate_of_a_long_run() {
    let (two, four) = (rate("ticket", 2), rate("ticket", 4));
    assert!(four < 0.05 * two, "{two} and {four}");
}

/// Counts of two threads in one line travel with the lock; those in two lines stay.
#[test]
fn counts_that_share_a_line_travel_from_holder_to_holder() {
    let rate = |counts_in_line| {
        let mut scenario = shared("ticket", 2, 50.0, 100.0);
        scenario.workload = Workload::Loop(Loop {
            inside_ns: 50.0,
            outside_ns: 100.0,
            write_percent: 100,
            counts_in_line,
            ..Loop::default()
        });
        run(&scenario).unwrap().ops_per_s
    };
    let (none, own, one) = (rate(0), rate(1), rate(2));
    assert!(own > 0.95 * none, "{none} and {own}");
    assert!(one < 0.9 * own, "{own} and {one}");
}

/// Threads that never meet share the CPUs in equal parts, also within long work.
#[test]
fn work_is_shared_equally_and_interrupted() {
    let mut scenario = shared("pthread", 6, 10.0, 5e6);
    scenario.workload = Workload::Loop(Loop {
        locks: 64,
        inside_ns: 10.0,
        outside_ns: 5e6,
        ..Loop::default()
    });
    scenario.stop = Stop::Milliseconds(600.0);
    let outcome = run(&scenario).unwrap();
    assert!(outcome.jain > 0.97, "{:?}", outcome.ops_by_thread);
    let rate = outcome.ops_per_s * 5.25e-3;
    assert!((1.85..=2.05).contains(&rate), "{rate} CPUs' worth of work");
    assert!((0.62..=0.70).contains(&outcome.steal), "{}", outcome.steal);
}

/// A CPU whose threads all sleep takes one that waits for another CPU.
#[test]
fn no_cpu_stays_idle_while_threads_wait() {
    // Three compute all the time, on two CPUs: none gets two thirds of one only.
    let mut scenario = shared("pthread", 3, 10.0, 100_000.0);
    scenario.stop = Stop::Milliseconds(200.0);
    let outcome = run(&scenario).unwrap();
    assert!(outcome.steal < 0.36, "{}", outcome.steal);
}

#[test]
fn a_seed_gives_the_same_run_and_another_another() {
    let with = |seed| {
        let mut scenario = shared("std", 5, 100.0, 300.0);
        scenario.seed = seed;
        run(&scenario).unwrap().trace_hash
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

/// A machine without a `[scheduler]` has the defaults, and may have its own.
#[test]
fn every_machine_has_a_scheduler() {
    for (name, _) in locklab_sim::BUILTIN {
        let machine = Machine::builtin(name).unwrap();
        if machine.get(FigureKey::VmVcpus) > 0.0 {
            continue;
        }
        let workload = Workload::Matrix {
            critical: 1,
            non_critical: 8,
        };
        let mut scenario = Scenario::new(machine, "pthread", workload, 5);
        scenario.hardware_threads = Some(2);
        scenario.stop = Stop::Milliseconds(3.0);
        assert!(run(&scenario).unwrap().acquisitions > 100, "{name}");
    }
}

/// Threads of fixed work end, and use no CPU after that.
#[test]
fn threads_of_fixed_work_end_one_after_the_other() {
    let mut scenario = shared("pthread", 6, 50.0, 5_000.0);
    scenario.stop = Stop::Each(300);
    let outcome = run(&scenario).unwrap();
    assert_eq!(outcome.ops_by_thread, [300; 6]);
    let least = 6.0 * 300.0 * 5_050e-9 / 2.0;
    assert!(
        (least..1.6 * least).contains(&outcome.seconds),
        "{}",
        outcome.seconds
    );
    assert!(outcome.ops_per_s_until_the_last() < outcome.ops_per_s);
    assert!(
        (5_000.0..7_500.0).contains(&outcome.cpu_ns),
        "{}",
        outcome.cpu_ns
    );
}

/// The time of a futex call of [`in_the_middle_of_its_call`], ns.
const CALL_NS: u64 = 10_000;
/// When the first thread calls, ns.
const CALLS_AT: u64 = 50_000;

thread_local! {
    /// When the other thread acts, ns, and whether it changes the word or waits.
    static OTHER: Cell<(u64, bool)> = const { Cell::new((0, false)) };
    /// When the first thread's call ended, ns, and whether it woke the other.
    static FIRST: Cell<(u64, bool)> = const { Cell::new((0, false)) };
}

/// A spinlock before which one thread calls the system while another changes the word that it
/// looks at, or begins to sleep.
#[derive(Default)]
struct Meets {
    word: Word<u32>,
    held: Word<u32>,
}

fn until(ns: u64) {
    while Sim::now() < ns {
        Sim::relax();
    }
}

// SAFETY: of the swaps between two releases one finds it free.
unsafe impl RawLock<Sim> for Meets {
    type Ctx = ();
    const INFO: Info = Info {
        name: "meets",
        try_lock: false,
        parks: true,
        max_cpus: 2,
        ..Info::BASE
    };

    unsafe fn lock(&self, _: &()) {
        let (at, changes) = OTHER.get();
        match (Sim::cpu(), changes) {
            (0, true) => {
                until(CALLS_AT);
                Sim::wait(&self.word, 0);
                FIRST.set((Sim::now(), false));
            }
            (0, false) => {
                until(CALLS_AT);
                let woke = Sim::wake_if_any(&self.word);
                FIRST.set((Sim::now(), woke));
            }
            (_, true) => {
                until(at);
                self.word.swap(1, Ordering::AcqRel);
                // Later than any call that does not sleep.
                until(CALLS_AT + 3 * CALL_NS);
                Sim::wake(&self.word);
            }
            (_, false) => {
                until(at);
                Sim::wait(&self.word, 0);
            }
        }
        while self.held.swap(1, Ordering::Acquire) != 0 {
            Sim::relax();
        }
        if Sim::cpu() == 0 && !changes {
            until(CALLS_AT + 3 * CALL_NS);
            Sim::wake(&self.word);
        }
    }

    unsafe fn unlock(&self, _: &()) {
        self.held.store(0, Ordering::Release);
    }
}

/// Returns when the first thread's call ended, as a part of the time of a wait for nothing, and
/// whether it woke the other, which acts after such a part of it. A wake of nobody takes as long.
fn in_the_middle_of_its_call(part: f64, changes: bool) -> (f64, bool) {
    where_a_wake_of_nobody_takes(1.0, part, changes)
}

fn where_a_wake_of_nobody_takes(takes: f64, part: f64, changes: bool) -> (f64, bool) {
    let us = CALL_NS as f64 / 1e3;
    let machine = Machine::builtin("flat-16").unwrap();
    let machine = machine
        .with(FigureKey::SchedulerCallUs, us)
        .and_then(|machine| machine.with(FigureKey::SchedulerWakeNobodyUs, takes * us))
        .unwrap();
    let mut scenario = Scenario::new(machine, "meets", Workload::Loop(Loop::default()), 2);
    scenario.stop = Stop::Each(1);
    let at = CALLS_AT as f64 + part * CALL_NS as f64;
    OTHER.set((at as u64, changes));
    simulate_lock::<Meets>(&scenario).unwrap();
    let (ended, woke) = FIRST.get();
    ((ended - CALLS_AT) as f64 / CALL_NS as f64, woke)
}

#[test]
fn a_wait_looks_at_the_word_in_the_middle_of_its_call() {
    let (took, _) = in_the_middle_of_its_call(0.3, true);
    assert!((0.99..1.05).contains(&took), "it does not sleep: {took}");
    let (took, _) = in_the_middle_of_its_call(0.7, true);
    assert!(took > 3.0, "it sleeps until it is woken: {took}");
}

#[test]
fn a_wake_finds_who_has_looked_before_the_middle_of_its_call() {
    // Who waits looks half a call after it has begun.
    let (_, woke) = in_the_middle_of_its_call(-0.2, false);
    assert!(woke, "it slept when the waker looked");
    let (took, woke) = in_the_middle_of_its_call(0.2, false);
    assert!(!woke && (0.99..1.05).contains(&took), "{took}");
}

#[test]
fn a_wake_of_nobody_may_be_shorter_than_a_wait_for_nothing() {
    // It looks a quarter of the wait's time after it has begun, and the wait looks later.
    let (took, woke) = where_a_wake_of_nobody_takes(0.5, 0.0, false);
    assert!(!woke && (0.49..0.55).contains(&took), "{took}");
}

/// Returns the outcomes of some rounds, or of the same work without a barrier.
fn rounds(lock: &str, inside_ns: f64, stop: Stop) -> Vec<Outcome> {
    let of = |seed| {
        let mut scenario = shared(lock, 8, inside_ns, 50.0);
        let machine = scenario.machine;
        let older = machine.with(FigureKey::SchedulerLatencyUs, 24_000.0);
        scenario.machine = older.unwrap();
        scenario.seed = seed;
        scenario.stop = stop;
        run(&scenario).unwrap()
    };
    (1..=4).map(of).collect()
}

#[test]
fn a_round_is_all_work_from_the_release_of_its_threads_to_the_last() {
    for lock in ["ttas", "futex"] {
        for outcome in rounds(lock, 10.0, Stop::Round(500)) {
            assert_eq!(outcome.ops_by_thread, [500; 8], "{lock}");
            assert!((outcome.jain - 1.0).abs() < 1e-9);
            assert_eq!(outcome.acquisitions, 4000);
            // The barrier is left one after the other, which takes some time.
            assert!(outcome.seconds > 100e-6, "{lock}: {}", outcome.seconds);
        }
    }
}

/// By the rule of older systems threads that slept at a barrier preempt each other, also while
/// they hold a lock, long before a slice is over.
#[test]
fn threads_that_leave_a_barrier_preempt_holders() {
    let longest = |stop| {
        let rounds = rounds("ttas", 200.0, stop);
        let waits = rounds.iter().map(|outcome| outcome.longest_wait_ns);
        waits.fold(0.0, f64::max)
    };
    let (each, round) = (longest(Stop::Each(1000)), longest(Stop::Round(1000)));
    assert!(each < 3e6 && round > 6e6, "{each} and {round} ns");
}
