//! Tests what holds for every lock, machine and seed.

use locklab_locks::{Fairness, catalogue};
use locklab_sim::{
    Arbitration, BUILTIN, FigureKey, Machine, Placement, Scenario, SimError, Stop, Workload, run,
    run_all, simulate,
};
use proptest::prelude::*;

fn matrix(critical: u32, non_critical: u32) -> Workload {
    Workload::Matrix {
        critical,
        non_critical,
    }
}

fn builtin(name: &str) -> Machine {
    Machine::builtin(name).unwrap()
}

#[test]
fn every_builtin_machine_is_readable() {
    for (name, text) in BUILTIN {
        let machine = Machine::parse(name, text).unwrap();
        assert_eq!(machine.name, *name);
    }
}

#[test]
fn same_seed_same_trace() {
    for entry in catalogue::ALL {
        let mut scenario =
            Scenario::new(builtin("epyc-7763-2s"), entry.info.name, matrix(2, 8), 12);
        scenario.stop = Stop::Acquisitions(500);
        let first = run(&scenario).unwrap();
        // On another thread, after other runs: nothing is left behind.
        let again =
            std::thread::scope(|scope| scope.spawn(|| run(&scenario)).join().unwrap()).unwrap();
        assert_eq!(first, again, "{}", entry.info.name);
        scenario.seed = 2;
        let other = run(&scenario).unwrap();
        assert_ne!(first.trace_hash, other.trace_hash, "{}", entry.info.name);
    }
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let mut scenarios = Vec::new();
    for lock in ["tas", "ticket", "mcs", "qspinlock-pv"] {
        for threads in [1, 3, 9] {
            let mut scenario = Scenario::new(builtin("xeon-8380-vm"), lock, matrix(2, 8), threads);
            scenario.hardware_threads = Some(8);
            scenario.stop = Stop::Acquisitions(200);
            scenarios.push(scenario);
        }
    }
    let alone: Vec<_> = scenarios.iter().map(|s| run(s).unwrap()).collect();
    for workers in [1, 2, 5] {
        let outcomes = run_all(&scenarios, workers, |_| {}).unwrap();
        assert_eq!(outcomes, alone, "{workers} workers");
    }
    // Of several that fail, the first in order is reported, whoever is first.
    scenarios[4].threads = 0;
    scenarios[7].stop = Stop::Acquisitions(0);
    for workers in [1, 2, 5] {
        let error = run_all(&scenarios, workers, |_| {}).unwrap_err();
        assert!(error.to_string().starts_with("zero threads"), "{error}");
    }
}

#[test]
fn each_handoff_of_a_ticket_lock_is_read_by_every_waiter_and_of_a_queue_by_one() {
    let moved = |lock: &str, threads: usize| {
        let scenario = Scenario::new(builtin("xeon-8380-2s"), lock, matrix(0, 0), threads);
        run(&scenario).unwrap().lines_moved
    };
    // One thread per core: the ticket is taken, the release written, and all
    // that wait read it.
    let ticket = moved("ticket", 32);
    assert!((20.0..36.0).contains(&ticket), "{ticket}");
    let (few, many) = (moved("mcs", 8), moved("mcs", 32));
    assert!((few - many).abs() < 0.5, "{few} and {many}");
}

#[test]
fn a_known_trace() {
    // Changes when the model does, and then only on purpose.
    let outcome = run(&Scenario::new(
        builtin("flat-16"),
        "ticket",
        matrix(4, 32),
        4,
    ))
    .unwrap();
    assert_eq!(format!("{:016x}", outcome.trace_hash), "1bdadf5b721b2459");
}

#[test]
fn one_thread_never_waits_for_a_line() {
    for entry in catalogue::ALL {
        let outcome = run(&Scenario::new(
            builtin("xeon-8380-2s"),
            entry.info.name,
            matrix(4, 1),
            1,
        ))
        .unwrap();
        assert!(
            outcome.lines_moved < 0.01,
            "{}: {}",
            entry.info.name,
            outcome.lines_moved
        );
        assert_eq!(outcome.handoffs[0], outcome.acquisitions);
    }
}

#[test]
fn handoffs_know_their_distance() {
    let mut scenario = Scenario::new(builtin("epyc-7763-2s"), "mcs", matrix(4, 4), 2);
    scenario.placement = Placement::Spread;
    let outcome = run(&scenario).unwrap();
    assert!(
        outcome.handoffs[4] > outcome.acquisitions / 2,
        "{outcome:?}"
    );
    scenario.placement = Placement::Compact;
    let outcome = run(&scenario).unwrap();
    assert_eq!(outcome.handoffs[4], 0);
    assert!(
        outcome.handoffs[2] > outcome.acquisitions / 2,
        "{outcome:?}"
    );
}

/// Also in a run that is shorter than one acquisition per thread, and with
/// more virtual CPUs than the machine has.
#[test]
fn streaks_are_one_at_least_and_nobody_is_starved_in_order_of_arrival() {
    let mut starved = 0;
    for (machine, threads, hardware) in [
        ("xeon-8380-2s", 48, None),
        ("xeon-8380-2s", 8, None),
        ("xeon-8380-vm", 12, Some(8)),
    ] {
        for entry in catalogue::ALL {
            for (acquisitions, non_critical) in [(40, 100), (4_000, 0)] {
                let lock = entry.info.name;
                let workload = matrix(4, non_critical);
                let mut scenario = Scenario::new(builtin(machine), lock, workload, threads);
                scenario.hardware_threads = hardware;
                scenario.stop = Stop::Acquisitions(acquisitions);
                let run = run(&scenario).unwrap();
                let handoffs: u64 = run.handoffs[1..].iter().sum();
                assert!(handoffs <= run.acquisitions, "{lock}");
                assert!(run.mean_streak >= 1.0, "{lock}: {}", run.mean_streak);
                assert!(
                    run.longest_streak as f64 >= run.mean_streak.floor(),
                    "{lock}"
                );
                // Who loses its CPU before it is in line is overtaken by all others.
                if entry.info.fairness == Fairness::Fifo && hardware.is_none() {
                    assert_eq!(run.starved, [0; 0], "{lock}, {machine}, {threads}");
                }
                starved += run.starved.len();
            }
        }
    }
    assert!(
        starved > 0,
        "no lock starves any thread: the count sees nothing"
    );
}

#[test]
fn what_cannot_be_run_is_said() {
    let error = |scenario: &Scenario| run(scenario).unwrap_err().to_string();
    let scenario = Scenario::new(builtin("flat-16"), "ticket", matrix(0, 0), 0);
    assert!(error(&scenario).starts_with("zero threads"));
    let scenario = Scenario::new(builtin("flat-16"), "ticket", matrix(0, 0), 1025);
    assert_eq!(
        error(&scenario),
        "1025 threads cannot be simulated; give at most 1024"
    );
    let guest = builtin("xeon-8380-vm");
    let most = guest.cpus();
    let scenario = Scenario::new(guest, "ticket", matrix(0, 0), most + 1);
    assert!(error(&scenario).contains("virtual CPUs of xeon-8380-vm: a system inside"));
    let scenario = Scenario::new(builtin("flat-16"), "nonesuch", matrix(0, 0), 1);
    assert!(matches!(run(&scenario), Err(SimError::Refused(_))));
    let mut scenario = Scenario::new(builtin("flat-16"), "ticket", matrix(0, 0), 1);
    scenario.stop = Stop::Acquisitions(0);
    assert!(error(&scenario).starts_with("zero acquisitions"));
    scenario.hardware_threads = Some(99);
    assert!(error(&scenario).starts_with("99 physical CPUs"));
}

#[test]
fn the_trace_is_json_with_waits_and_holds() {
    let mut scenario = Scenario::new(builtin("flat-16"), "mcs", matrix(1, 1), 3);
    scenario.stop = Stop::Acquisitions(50);
    scenario.trace = true;
    let trace = simulate(&scenario).unwrap().trace.unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    let names: Vec<_> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    for expected in ["waits for lock 0", "holds lock 0", "write context of CPU 1"] {
        assert!(
            names.iter().any(|name| name.starts_with(expected)),
            "{expected}"
        );
    }
}

#[test]
fn far_atomics_get_on_where_the_file_has_no_last_level_cache() {
    // It once was infinitely far away: two threads stood still for ever.
    let mut machine = builtin("graviton2");
    for (key, value) in [
        (FigureKey::CoreFarAtomics, 1.0),
        (FigureKey::TransferLlcNs, 0.0),
    ] {
        machine = machine.with(key, value).unwrap();
    }
    for threads in [2, 3] {
        let mut scenario = Scenario::new(machine.clone(), "tas", matrix(0, 0), threads);
        scenario.stop = Stop::Acquisitions(300);
        let outcome = run(&scenario).unwrap();
        assert!(outcome.line_wait_ns < 1e4, "{}", outcome.line_wait_ns);
    }
}

prop_compose! {
    fn machines()(
        sockets in 1..3u32, clusters in 1..3u32, cores in 1..4u32, threads in 1..3u32,
        cluster in 1.0..40.0, further in 0.0..40.0, remote in 0.0..100.0,
        shared_read in 0.0..20.0, invalidate in 0.0..5.0, pause in 1..200u32,
        store_buffer in 0..9u32, share in 0.0..0.6, arbitration in 0..3usize, arm in any::<bool>(),
        slice in 10..500u32, far in 0..2u32, wfe in 0..20u32, writes_first in 0.0..1.0, llc in 0.0..40.0,
        migrates in 0.0..1.0, ahead in 0.0..1.0,
    ) -> Machine {
        let mut machine = builtin("xeon-8380-vm");
        for (key, value) in [
            (FigureKey::TopologySockets, f64::from(sockets)),
            (FigureKey::TopologyClusters, f64::from(clusters)),
            (FigureKey::TopologyCores, f64::from(cores)),
            (FigureKey::TopologyThreads, f64::from(threads)),
            (FigureKey::TransferRemoteNs, 300.0),
            (FigureKey::TransferSocketNs, 150.0),
            (FigureKey::TransferClusterNs, cluster),
            (FigureKey::TransferSocketNs, cluster + further),
            (FigureKey::TransferRemoteNs, cluster + further + remote),
            (FigureKey::TransferRequestShare, share),
            (FigureKey::DirectorySharedReadNs, shared_read),
            (FigureKey::DirectoryInvalidateNs, invalidate),
            (FigureKey::CorePauseCycles, f64::from(pause)),
            (FigureKey::CoreStoreBuffer, f64::from(store_buffer)),
            (FigureKey::VmSliceUs, f64::from(slice)),
            (FigureKey::CoreFarAtomics, f64::from(far)),
            (FigureKey::CoreFarRmwNs, 5.0 * f64::from(far)),
            (FigureKey::CoreWfeCycles, f64::from(wfe)),
            (FigureKey::DirectoryWritesFirst, writes_first),
            (FigureKey::DirectoryMigrates, migrates),
            (FigureKey::CoreReadsAhead, ahead),
            (FigureKey::TransferLlcNs, llc),
        ] {
            machine = machine.with(key, value).unwrap();
        }
        machine.arbitration = Arbitration::ALL[arbitration].1;
        if arm {
            machine.arch = locklab_sim::Arch::Aarch64;
        }
        machine
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each simulation checks that nobody comes in while another holds, and
    /// (assertions are on in tests) that the directory is consistent.
    #[test]
    fn locks_exclude_and_nothing_is_lost(
        machine in machines(),
        lock in 0..catalogue::ALL.len(),
        threads in 1..8usize,
        physical in 1..8usize,
        critical in 0..6u32,
        non_critical in 0..40u32,
        seed in any::<u64>(),
    ) {
        let name = catalogue::ALL[lock].info.name;
        let mut scenario = Scenario::new(machine, name, matrix(critical, non_critical), threads);
        scenario.hardware_threads = Some(physical.min(scenario.machine.hardware_threads()));
        scenario.seed = seed;
        scenario.stop = Stop::Acquisitions(300);
        let outcome = run(&scenario).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(outcome.acquisitions, 300);
        prop_assert_eq!(outcome.handoffs.iter().sum::<u64>(), 300);
        // Each thread may be between an acquisition and the end of its
        // operation when counting begins or ends.
        let ops: u64 = outcome.ops_by_thread.iter().sum();
        prop_assert!(ops.abs_diff(300) <= threads as u64, "{} operations", ops);
        prop_assert!(outcome.jain > 0.0 && outcome.jain <= 1.0 + 1e-9);
        prop_assert!(outcome.latency.p50 <= outcome.latency.p99);
        prop_assert_eq!(&run(&scenario).unwrap(), &outcome);
    }
}
