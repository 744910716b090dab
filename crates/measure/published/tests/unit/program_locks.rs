//! Tests of src/program_locks.rs, with access to what is private there.

use super::*;
use locklab_sim::{FigureKey, Foreign, Loop, Machine, Outcome, Scenario, Stop, Workload, run};
use std::sync::Arc;

fn simulate(lock: &str, machine: &str, threads: usize) -> Outcome {
    register();
    let turn = Loop {
        write_percent: 100,
        outside_ns: 1.0,
        ..Loop::default()
    };
    let machine = Machine::builtin(machine).unwrap();
    let mut scenario = Scenario::new(machine, lock, Workload::Loop(turn), threads);
    scenario.stop = Stop::Acquisitions(2_000);
    run(&scenario).unwrap_or_else(|error| panic!("{lock}: {error}"))
}

#[test]
fn every_lock_of_a_program_excludes_and_ends() {
    for (name, _) in all() {
        assert!(is_known(name), "{name}");
        for machine in ["xeon-e5-10c-2s", "graviton2"] {
            for threads in [1, 2, 8] {
                let outcome = simulate(name, machine, threads);
                assert!(outcome.acquisitions >= 2_000, "{name}, {threads} threads");
            }
        }
    }
    assert!(!is_known("ttas"));
}

#[test]
fn a_ticket_of_two_words_is_released_by_a_store_where_ours_is_not() {
    // One word needs a read-modify-write to change its half on Arm.
    let rate = |lock: &str| simulate(lock, "graviton2", 1).ops_per_s;
    let (one, two) = (rate("ticket"), rate("program:ticket-two-words"));
    assert!(two > 1.1 * one, "{two} is not above {one}");
}

#[test]
fn a_lock_that_is_not_inlined_takes_two_calls_longer() {
    let ns = |lock: Arc<dyn Foreign>| {
        let machine = Machine::builtin("xeon-e5-10c-2s").unwrap();
        let machine = machine.with(FigureKey::InterruptsPerSecond, 0.0).unwrap();
        let clock = machine.get(FigureKey::CoreClockGhz);
        let turn = Workload::Loop(Loop::default());
        let mut scenario = Scenario::new(machine, "program:ttas-swap", turn, 1);
        scenario.stop = Stop::Acquisitions(1_000);
        clock * 1e9 / lock.simulate(&scenario).unwrap().outcome.ops_per_s
    };
    let inlined = ns(simulated::<ReadFirst<true>>());
    let called = ns(simulated::<Called<ReadFirst<true>>>());
    assert!((called - inlined - 10.0).abs() < 0.5, "{called} {inlined}");
}

#[test]
fn waiters_that_yield_read_too_seldom_to_slow_a_release_down() {
    let per_second = |lock: &str| simulate(lock, "opteron-6168-4s", 24).ops_per_s;
    let ratio = per_second("program:awn") / per_second("program:awn-ticket");
    let without_yields = per_second("anderson") / per_second("ticket");
    assert!(ratio < without_yields, "{ratio} {without_yields}");
}
