//! Tests of src/program_locks.rs, with access to what is private there.

use super::*;
use locklab_sim::{Loop, Machine, Outcome, Stop, Workload, run};

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
    for (name, _) in LOCKS {
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
