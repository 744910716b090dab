//! The key by which a store finds a simulated experiment does not change: these
//! are keys that version 0.2 stored (`locklab/tests/stored/0.2.sqlite`).
//! They change only with the version or with a figure of the model `flat-16`.

use locklab_harness::backend::Backend;
use locklab_harness::experiment::Design;
use locklab_harness::ranking::{Question, Subject};
use locklab_harness::store::hash_of;
use locklab_published::modelled::{Ranked, Simulated, Spec};
use locklab_sim::Machine;
use locklab_workload::{Cells, Distribution, Mix};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes a key as [`locklab_harness::session::key_of`] of version 0.2 did.
fn key(backend: &dyn Backend, pairs: u32) -> String {
    let design = Design::usual(pairs);
    let kind = backend.experiment(design.clone()).kind;
    hash_of(&(backend.fingerprint(), kind, design, "locklab 0.2.0"))
}

fn spec() -> Spec {
    let cells = Cells {
        threads: vec![1, 4],
        critical: vec![2],
        non_critical: vec![8],
        locks: vec![1, 2],
        mix: Mix {
            lines: 2,
            distribution: Distribution::Bursty,
            ..Mix::default()
        },
        latency: true,
        ..Cells::default()
    };
    Spec {
        acquisitions: Some(200),
        ..Spec::new("ticket", "mcs", cells)
    }
}

#[test]
fn a_simulated_matrix_has_the_key_that_it_had() {
    let machine = Machine::named("flat-16").unwrap();
    let never = Arc::new(AtomicBool::new(false));
    let backend = Simulated::new(spec(), machine, 1, never).unwrap();
    assert_eq!(key(&backend, 8), "4f4a55b66ebd0a19c114f9bf3f497461");
}

#[test]
fn a_simulated_ranking_has_the_key_that_it_had() {
    let subject = |name: &str, bytes: u64, bytes_per_waiter: u64| Subject {
        name: name.into(),
        lock: name.into(),
        bytes,
        bytes_per_waiter,
        context_free: bytes_per_waiter == 0,
    };
    let question = Question {
        subjects: vec![
            subject("ticket", 4, 0),
            subject("mcs", 8, 64),
            subject("tas", 1, 0),
        ],
        ..Question::default()
    };
    let spec = Spec {
        cells: Cells {
            threads: vec![4],
            critical: vec![1],
            non_critical: vec![32],
            locks: vec![1],
            mix: Mix::default(),
            ..spec().cells
        },
        ..spec()
    };
    let machine = Machine::named("flat-16").unwrap();
    let never = Arc::new(AtomicBool::new(false));
    let backend = Ranked::new(spec, question, machine, 1, 1, never).unwrap();
    assert_eq!(key(&backend, 12), "84c2bf3492f7cfa4a88e86be559745cd");
}
