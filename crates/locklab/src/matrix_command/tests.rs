//! Arguments, defaults, and what A/A runs leave behind.

use super::bias::{bands, keep_bands};
use super::question::spec;
use super::*;
use crate::matrix::{RunPair, Spec, Unit};
use crate::native::test_run;
use crate::native::work::Calibration;
use clap::Parser;
use locklab_host::machine::Machine;
use locklab_host::topology::Topology;

fn spec_of(arguments: &str, cpus: usize) -> Result<Spec, String> {
    let words = ["locklab", "matrix"].into_iter();
    let cli = crate::cli::Cli::try_parse_from(words.chain(arguments.split(' '))).unwrap();
    match cli.command {
        crate::cli::Command::Matrix(args) => spec(&args, cli.common.seed, cpus),
        _ => unreachable!("it says matrix"),
    }
}

fn machine() -> Machine {
    Machine {
        name: "test".into(),
        kernel: "Linux".into(),
        compiler: "rustc".into(),
        host: "here".into(),
        cpus: vec![0, 1],
    }
}

fn plan_of(arguments: &str) -> Plan {
    let topology = Topology {
        order: vec![0, 1],
        known: true,
        cores: 2,
        nodes: 1,
    };
    let calibration = Calibration {
        unit_ns: 4.0,
        cycle_ns: 0.25,
    };
    Plan::new(spec_of(arguments, 2).unwrap(), &topology, calibration).unwrap()
}

#[test]
fn the_default_matrix_takes_about_two_minutes_and_can_call_a_lone_cell() {
    let locks = "virt-spin virt-spin-backoff";
    let threads = |cpus| spec_of(locks, cpus).unwrap().threads;
    assert_eq!(threads(1), [1, 2]);
    assert_eq!(threads(2), [1, 2, 4]);
    assert_eq!(threads(8), [1, 4, 8, 16]);
    let plan = plan_of(locks);
    let time = plan.estimate().as_secs();
    assert!((60..=120).contains(&time), "{time} s");
    assert_eq!(
        locklab_judge::fewest_callable(
            locklab_judge::Family::FalseDiscovery,
            plan.cells.len(),
            plan.spec.pairs as usize
        ),
        Some(1)
    );
}

#[test]
fn lists_lose_their_repetitions() {
    let spec = spec_of("ticket mcs --threads 2,1,2 --critical 3,3", 2).unwrap();
    assert_eq!((spec.threads, spec.critical), (vec![2, 1], vec![3]));
    let spec = spec_of("ticket mcs --pin 1,0 --unit ns --seed 9", 8).unwrap();
    assert_eq!(spec.pin, Some(vec![1, 0]));
    assert_eq!(spec.threads, [1, 2, 4]);
    assert_eq!((spec.unit, spec.seed), (Unit::Nanoseconds, 9));
}

#[test]
fn an_aa_run_teaches_its_set_up_and_no_other() {
    let plan = plan_of("ticket --aa --threads 2 --critical 0 --non-critical 1");
    let measured = Measured {
        spec: plan.spec.clone(),
        provenance: Provenance::Hardware("test".into()),
        environment: vec![],
        caveats: vec![],
        cells: vec![Cell {
            point: plan.cells[0].point,
            oversubscribed: false,
            bias_band: None,
            pairs: (0..10_u32)
                .map(|index| {
                    let mut experiment = test_run();
                    experiment.ops_per_s *= 1.0 + 0.001 * f64::from(index);
                    RunPair {
                        index,
                        baseline_first: index % 2 == 0,
                        baseline: test_run(),
                        experiment,
                    }
                })
                .collect(),
        }],
        interrupted: None,
    };
    let store = Store::open(Path::new(":memory:")).unwrap();
    let id = store.begin("key", "", &measured).unwrap();
    let mut recorder = Recorder::new(store, id);
    keep_bands(&mut recorder, &measured, &machine());
    recorder.with(|store, _| {
        let cell = "--threads 2,4 --critical 0 --non-critical 1";
        let bands_of = |arguments: &str, machine: &Machine| {
            bands(store, &plan_of(&format!("{arguments} {cell}")), machine).unwrap()
        };
        let known = bands_of("ticket mcs", &machine());
        assert_eq!(known.len(), 1);
        let band = known[&plan.cells[0].point];
        assert!(band > 0.004 && band < 0.01, "{band}");
        // Another baseline, another set-up, another machine.
        assert!(bands_of("mcs ticket", &machine()).is_empty());
        assert!(bands_of("ticket mcs --run-ms 51", &machine()).is_empty());
        let other = Machine {
            host: "there".into(),
            ..machine()
        };
        assert!(bands_of("ticket mcs", &other).is_empty());
        // An A/A run is judged without the band that it makes.
        assert!(bands_of("ticket --aa", &machine()).is_empty());
        Ok(())
    });
    assert_eq!(recorder.failure(), None);
}
