//! Machines with big and small cores, and machines that do not know their system.

use locklab_harness::backend::Backend;
use locklab_harness::experiment::Design;
use locklab_published::modelled::{Simulated, Spec};
use locklab_sim::{Machine, Placement, run};
use locklab_workload::Cells;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn spec(threads: usize, placement: Option<Placement>) -> Spec {
    let cells = Cells {
        threads: vec![threads],
        critical: vec![4],
        non_critical: vec![4000],
        ..Cells::default()
    };
    Spec {
        placement,
        ..Spec::new("pthread", "std", cells)
    }
}

fn operations(threads: usize, placement: Option<Placement>) -> Vec<u64> {
    let machine = Machine::builtin("apple-m2-air").unwrap();
    let spec = spec(threads, placement);
    spec.check(&machine).unwrap();
    let place = [threads as u64, 4, 4000, 1];
    run(&spec.scenario(&machine, place, "std", 1))
        .unwrap()
        .ops_by_thread
}

#[test]
fn shares_are_by_the_speed_of_cores_and_big_ones_are_first() {
    for placement in [None, Some(Placement::Random)] {
        let four = operations(4, placement);
        let [least, most] = [four.iter().min(), four.iter().max()].map(|ops| *ops.unwrap() as f64);
        assert!(least > 0.9 * most, "{four:?} are all on big cores");
        let mut eight = operations(8, placement);
        eight.sort_unstable();
        let [small, big] = [&eight[..4], &eight[4..]].map(|ops| ops.iter().sum::<u64>() as f64);
        // Computing takes 0.51 of the speed; a cache hit is as quick.
        assert!((0.51..0.65).contains(&(small / big)), "{eight:?}");
    }
}

#[test]
fn threads_are_not_pinned_to_big_and_small_cores_by_their_numbers() {
    let machine = Machine::builtin("apple-m2-air").unwrap();
    for (placement, name) in [
        (Placement::Spread, "placement spread"),
        (Placement::Numbered, "placement numbered"),
    ] {
        let error = spec(8, Some(placement)).check(&machine).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with(name) && error.contains("big and small"),
            "{error}"
        );
    }
}

#[test]
fn a_machine_that_does_not_know_its_system_says_so_where_threads_share_cpus() {
    let caveats = |threads: usize| {
        let machine = Machine::builtin("apple-m2-air").unwrap();
        let never = Arc::new(AtomicBool::new(false));
        let backend = Simulated::new(spec(threads, None), machine, 1, never).unwrap();
        backend.experiment(Design::usual(4)).caveats.join("\n")
    };
    assert!(caveats(16).contains("The file of apple-m2-air has no [scheduler]"));
    assert!(!caveats(8).contains("[scheduler]"));
}

#[test]
fn what_a_file_says_of_small_cores_must_fit() {
    let text = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../machines/apple-m2-air.toml"),
    )
    .unwrap();
    for (from, to, expected) in [
        (
            "small_clusters = 1",
            "small_clusters = 2",
            "leave at least one big one",
        ),
        (
            "cores = 4\n",
            "cores = 4\nthreads = 2\n",
            "cores without siblings",
        ),
        ("small_clusters = 1", "", "is of small cores"),
    ] {
        let error = Machine::parse("m.toml", &text.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
