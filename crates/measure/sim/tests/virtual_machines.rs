//! Tests what the simulator must say of virtual machines: pauses between attempts,
//! and vCPUs that are preempted.

use locklab_sim::{Machine, Scenario, Stop, Workload, run};

#[test]
fn backoff_changes_nothing_for_one_thread() {
    let machine = Machine::builtin("xeon-8380-vm").unwrap();
    for critical in [0, 4, 128] {
        let workload = Workload::Matrix {
            critical,
            non_critical: 1,
        };
        let rate = |lock: &str| {
            let mut scenario = Scenario::new(machine.clone(), lock, workload, 1);
            scenario.stop = Stop::Acquisitions(1000);
            run(&scenario).unwrap().ops_per_s
        };
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
    for (vcpus, least) in [(9, 0.7), (16, 0.3), (32, 0.1)] {
        let part = rate("tas", vcpus) / alone;
        assert!(part > least, "{vcpus}: {part}");
    }
    let paravirtual = rate("qspinlock-pv", 8);
    for vcpus in [9, 16, 32] {
        assert!(rate("qspinlock-pv", vcpus) > 0.8 * paravirtual, "{vcpus}");
    }
}
