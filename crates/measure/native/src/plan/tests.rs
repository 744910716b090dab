//! Plans: their cells, their times, and what cannot run.

use super::*;
use locklab_workload::{Distribution, Unit};

fn plan(change: impl FnOnce(&mut Spec)) -> Result<Plan, Error> {
    let topology = Topology {
        order: vec![0, 2, 1],
        known: true,
        cores: 3,
        nodes: 1,
    };
    let calibration = Calibration {
        unit_ns: 4.0,
        cycle_ns: 0.25,
    };
    let mut spec = Spec {
        cells: Cells {
            threads: vec![1, 4],
            critical: vec![0, 2],
            ..Cells::default()
        },
        ..Spec::new("ticket", "mcs")
    };
    change(&mut spec);
    let beat = Beat {
        clock_interval: 10_000,
        tick: 4_000_000,
        start: [100_000, 300_000],
    };
    Plan::of(spec, &topology, calibration, beat)
}

#[test]
fn a_plan_has_every_cell_in_the_order_of_the_report() {
    let plan = plan(|_| {}).unwrap();
    let cells: Vec<(usize, u64, bool)> = plan
        .cells
        .iter()
        .map(|c| (c.threads, c.critical_units, c.oversubscribed))
        .collect();
    assert_eq!(
        cells,
        [(1, 1, false), (1, 3, false), (4, 1, true), (4, 3, true)]
    );
}

#[test]
fn each_number_of_locks_has_cells_of_its_own() {
    let plan = plan(|spec| {
        spec.cells.locks = vec![1, 8];
        spec.cells.critical = vec![0];
    })
    .unwrap();
    let keys: Vec<String> = plan
        .cells
        .iter()
        .map(|cell| cell.key(&plan.spec).to_string())
        .collect();
    assert_eq!(
        keys,
        [
            "1 x 0 x 1 x 1",
            "4 x 0 x 1 x 1",
            "1 x 0 x 1 x 8",
            "4 x 0 x 1 x 8"
        ]
    );
}

#[test]
fn the_time_asked_for_is_shared_out_and_kept() {
    let plan = plan(|spec| {
        spec.cells.threads = vec![1, 2, 4];
        spec.time = Duration::from_secs(20);
    })
    .unwrap();
    for pairs in [8, 14] {
        let blocks = plan.blocks(pairs);
        let all = blocks.iter().sum::<u64>() * u64::from(pairs);
        let asked = nanos(plan.spec.time);
        assert!(all <= asked / 10 * 6, "{pairs} pairs: {all}");
        assert!(all >= asked / 8, "{pairs} pairs: {all}");
        let crowded: u64 = blocks[4..].iter().sum();
        assert!(crowded < blocks[..4].iter().sum());
        // Contended cells have more than those of one thread; those of
        // more threads than CPUs have one pair of slices.
        assert!(blocks[2] > blocks[0]);
        let slice = plan.slice(&plan.cells[4]);
        assert_eq!(blocks[4], 2 * (slice.settle + slice.length));
        assert!(slice.length >= 3 * plan.beat.tick);
        // Contended slices follow the clock of the machine.
        let contended = plan.slice(&plan.cells[2]);
        assert_eq!((contended.settle, contended.length), (60_000, 250_000));
    }
    // What does not fit has fewer rounds: the time is a limit.
    assert!(plan.rounds(1000) < 1000.0);
}

#[test]
fn what_cannot_run_is_refused_in_a_sentence() {
    let refused = |change: fn(&mut Spec), part: &str| {
        let text = plan(change).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    };
    refused(|s| s.baseline = "tiket".into(), "the closest are ticket");
    refused(|s| s.experiment = "tickett".into(), "ticket");
    refused(|s| s.time = Duration::ZERO, "--time");
    refused(
        |s| s.slice = Some(Duration::from_micros(10)),
        "--set slice_us=50",
    );
    refused(|s| s.layout = Some(99), "--set layout=0 to 7");
    refused(
        |s| s.cells.critical = vec![u64::MAX],
        "more than a machine can count",
    );
    refused(|s| s.cells.critical = vec![u64::MAX - 1], "years");
    refused(
        |s| s.cells.non_critical = vec![1 << 40],
        "one turn of 1 thread takes",
    );
    refused(
        |s| {
            s.cells.unit = Unit::Nanoseconds;
            s.cells.critical = vec![u64::MAX];
        },
        "years",
    );
    refused(|s| s.cells.mix.lines = 4, "length 0 touches, which is 1");
    refused(|s| s.cells.mix.reads = 101, "--reads 0 to 100");
    refused(|s| s.cells.locks = vec![2, 1001], "give at most 1000");
    refused(
        |s| {
            s.cells.work = Work::Fstat;
            s.cells.mix.reads = 5;
        },
        "fstat touches no lines",
    );
    refused(
        |s| {
            s.cells.mix.distribution = Distribution::Bursty;
            s.cells.non_critical = vec![500_000];
        },
        "one turn of",
    );
    refused(|s| s.pin = Some(vec![0, 7]), "may use 0-2");
    refused(|s| s.pin = Some(vec![0, 0]), "twice");
    refused(|s| s.pin = Some(vec![]), "names no CPU");
    refused(
        |s| s.processes = true,
        "'mcs' does not work between processes",
    );
    refused(
        |s| {
            s.baseline = "mplock-ticket".into();
            s.cells.threads = vec![600];
        },
        "at most 512 threads",
    );
}

#[test]
fn the_default_matrix_goes_from_one_thread_to_as_many_as_there_are_cpus() {
    assert_eq!(default_threads(1), [1]);
    assert_eq!(default_threads(2), [1, 2]);
    assert_eq!(default_threads(8), [1, 4, 8]);
}
