//! What the simulator must say of the published reports, and of vCPUs that
//! are preempted. Where a target is missed, docs/simulator.md says so and no
//! test here pretends otherwise.

use locklab_sim::{Fstat, Machine, Scenario, Stop, Workload, band, reproduce, run};

fn rate(
    machine: &Machine,
    lock: &str,
    workload: Workload,
    threads: usize,
    acquisitions: u64,
) -> f64 {
    let mut scenario = Scenario::new(machine.clone(), lock, workload, threads);
    scenario.stop = Stop::Acquisitions(acquisitions);
    run(&scenario).unwrap().ops_per_s
}

#[test]
fn the_big_locks_are_in_order_over_the_whole_band() {
    let report = reproduce("mplock-anderson", 1, 2, |_, _| {}).unwrap();
    for figure in &report.figures {
        let off = figure.ours / figure.published.unwrap();
        // The target is 15 %: anderson is missed (docs/simulator.md).
        assert!((0.85..1.35).contains(&off), "{figure:?}");
    }
    let machine = Machine::builtin("amd64-8").unwrap();
    for (change, machine) in band::variants(&machine) {
        let rate = |lock| rate(&machine, lock, Workload::Fstat(Fstat::default()), 8, 4000);
        let (packed, padded, anderson) = (
            rate("mplock-ticket"),
            rate("mplock-ticket-padded"),
            rate("mplock-anderson"),
        );
        assert!(
            packed < padded && padded < anderson,
            "{change}: {packed} {padded} {anderson}"
        );
    }
}

#[test]
fn the_ticket_lock_is_far_behind_with_120_cpus() {
    let report = reproduce("qspinlock-xfs", 1, 2, |_, _| {}).unwrap();
    let ours = |name: &str| {
        report
            .figures
            .iter()
            .find(|figure| figure.name == name)
            .unwrap()
            .ours
    };
    // Published: 1.13. Ours is within 15 %, and nearly without a direction.
    assert!((0.96..1.30).contains(&ours("ticket_over_qspinlock")));
    assert!(ours("ticket_over_qspinlock_120_cpus") < 0.9);
}

#[test]
fn backoff_changes_nothing_for_one_thread() {
    let machine = Machine::builtin("xeon-8380-vm").unwrap();
    for critical in [0, 4, 128] {
        let workload = Workload::Matrix {
            critical,
            non_critical: 1,
        };
        let rate = |lock| rate(&machine, lock, workload, 1, 1000);
        let ratio = rate("virt-spin-backoff") / rate("virt-spin");
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
    }
}

#[test]
fn preempted_virtual_cpus_stop_queues_and_not_the_paravirtual_lock() {
    let machine = Machine::builtin("xeon-8380-vm").unwrap();
    let rate = |lock: &str, vcpus: usize| {
        let workload = Workload::Matrix {
            critical: 4,
            non_critical: 32,
        };
        let mut scenario = Scenario::new(machine.clone(), lock, workload, vcpus);
        scenario.hardware_threads = Some(8);
        scenario.stop = Stop::Milliseconds(20.0);
        run(&scenario).unwrap().ops_per_s
    };
    for lock in ["ticket", "mcs"] {
        let alone = rate(lock, 8);
        for vcpus in [9, 16, 32] {
            assert!(rate(lock, vcpus) < alone / 10.0, "{lock} {vcpus}");
        }
    }
    let alone = rate("tas", 8);
    for (vcpus, least) in [(9, 0.7), (16, 0.3), (32, 0.15)] {
        assert!(rate("tas", vcpus) > least * alone, "{vcpus}");
    }
    let paravirtual = rate("qspinlock-pv", 8);
    for vcpus in [9, 16, 32] {
        assert!(rate("qspinlock-pv", vcpus) > 0.8 * paravirtual, "{vcpus}");
    }
}
