//! Tests the order of locks in the published reports; reference/scores.toml has the sizes.

use locklab_published::reproduce;
use locklab_sim::{Fstat, Machine, Scenario, Stop, Workload, band, run};

#[test]
fn the_big_locks_are_in_order_over_the_whole_band() {
    let machine = Machine::builtin("amd64-8").unwrap();
    for (change, machine) in band::variants(&machine) {
        let rate = |lock: &str| {
            let workload = Workload::Fstat(Fstat::default());
            let mut scenario = Scenario::new(machine.clone(), lock, workload, 8);
            scenario.stop = Stop::Acquisitions(4000);
            run(&scenario).unwrap().ops_per_s
        };
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
    assert!(ours("ticket_over_qspinlock_120_cpus") < 0.9);
}
