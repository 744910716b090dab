//! Simulated threads that do fixed work: what a user gets for `--set operations=N`.

use locklab_harness::backend::{Backend, Turn};
use locklab_harness::experiment::{Design, Order};
use locklab_harness::matrix::OPS;
use locklab_published::modelled::{Simulated, Spec};
use locklab_sim::{Machine, Stop, run};
use locklab_workload::Cells;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn spec(operations: Option<u64>) -> Spec {
    let cells = Cells {
        threads: vec![32],
        ..Cells::default()
    };
    Spec {
        operations,
        ..Spec::new("pthread", "std", cells)
    }
}

#[test]
fn each_thread_does_its_operations_also_where_threads_share_cpus() {
    let machine = Machine::builtin("flat-16").unwrap();
    let spec = spec(Some(40));
    assert_eq!(spec.stop(&machine, 32), Stop::Each(40));
    let said = spec.length(&machine);
    assert!(said.contains("40 operations of each thread"), "{said}");
    assert!(!said.contains("warm-up"), "{said}");
    let place = [32, 1, 1, 1];
    let outcome = run(&spec.scenario(&machine, place, "std", 5)).unwrap();
    assert_eq!(outcome.ops_by_thread, [40; 32]);
    let never = Arc::new(AtomicBool::new(false));
    let mut backend = Simulated::new(spec, machine, 1, never).unwrap();
    let cell = backend.experiment(Design::usual(1)).cells[0].clone();
    let turn = Turn {
        cell: 0,
        pair: 0,
        order: Order::BaselineFirst,
        seed: 5,
    };
    backend.announce(std::slice::from_ref(&turn));
    let Ok([_, std]) = backend.run_together(&cell, &turn) else {
        panic!("it is simulated");
    };
    assert_eq!(std.values[OPS], outcome.ops_per_s_until_the_last());
}

#[test]
fn a_store_finds_what_it_kept_without_fixed_work() {
    let text = serde_json::to_string(&spec(None)).unwrap();
    assert!(!text.contains("operations"), "{text}");
}
