//! The kernel's own files: Debian's source package, if it is installed.

use locklab_sim::{Machine, Scenario, Stop, Workload, run};
use locklab_user_lock::UserLock;

/// Returns the lock, or none, after saying so, where the package is not installed.
fn kernel(name: &str) -> Option<UserLock> {
    match UserLock::named(name, &[]) {
        Ok(lock) => lock,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("apt-get install linux-source"), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

fn scenario(machine: &str, lock: &str, threads: usize, acquisitions: u64) -> Scenario {
    let work = Workload::Matrix {
        critical: 4,
        non_critical: 32,
    };
    let mut scenario = Scenario::new(Machine::builtin(machine).unwrap(), lock, work, threads);
    scenario.stop = Stop::Acquisitions(acquisitions);
    scenario
}

/// Ours is written from the papers, the kernel's is its own: the same
/// algorithm has the same throughput. (At 120 CPUs the order in which they
/// queue takes long to settle.)
#[test]
fn the_kernels_qspinlock_has_the_throughput_of_ours() {
    let Some(lock) = kernel("kernel:qspinlock") else {
        return;
    };
    assert_eq!(lock.facts().lock_bytes, 4);
    for (threads, acquisitions) in [(2, 10_000), (8, 10_000), (36, 100_000), (120, 200_000)] {
        let scenario = scenario("ivybridge-ex-4s", "qspinlock", threads, acquisitions);
        let ours = run(&scenario).unwrap().ops_per_s;
        let theirs = lock.simulate(&scenario).unwrap().outcome.ops_per_s;
        let percent = (theirs / ours - 1.0) * 100.0;
        println!("{threads:3} CPUs: ours {ours:.0}, the kernel's {theirs:.0}, {percent:+.2} %");
        assert!(percent.abs() < 3.0, "{threads} CPUs: {percent} %");
    }
}

#[test]
fn the_kernels_mcs_and_ticket_locks_run() {
    for (name, ours) in [("kernel:mcs", "mcs"), ("kernel:ticket", "ticket")] {
        let Some(lock) = kernel(name) else { return };
        let scenario = scenario("flat-16", ours, 8, 5_000);
        let expected = run(&scenario).unwrap().ops_per_s;
        let outcome = lock.simulate(&scenario).unwrap().outcome;
        let percent = (outcome.ops_per_s / expected - 1.0) * 100.0;
        println!("{name}: {percent:+.2} %");
        assert!(percent.abs() < 10.0, "{name}: {percent} %");
        assert!(outcome.jain > 0.99, "{name}");
    }
}

/// A tree of the user's with a patch on top: the pending bit is not used, so
/// that the second CPU queues, which costs it a node.
#[test]
fn a_patch_is_applied_and_changes_what_is_simulated() {
    let Some(lock) = kernel("kernel:qspinlock") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let patch = folder.path().join("no-pending.patch");
    std::fs::write(
        &patch,
        "--- a/kernel/locking/qspinlock.c
+++ b/kernel/locking/qspinlock.c
@@ -320,4 +320,6 @@
 \tu32 old, tail;
 \tint idx;
 
+\tif (val & _Q_LOCKED_MASK)
+\t\tgoto queue;
 \tBUILD_BUG_ON(CONFIG_NR_CPUS >= (1U << _Q_TAIL_CPU_BITS));
",
    )
    .unwrap();
    let name = format!("kernel:qspinlock --patch {}", patch.display());
    let patched = kernel(&name).unwrap();
    assert_eq!(patched.name(), "kernel:qspinlock+no-pending.patch");
    let scenario = scenario("ivybridge-ex-4s", "qspinlock", 2, 5_000);
    let before = lock.simulate(&scenario).unwrap().outcome;
    let after = patched.simulate(&scenario).unwrap().outcome;
    println!("{:.0} -> {:.0}", before.ops_per_s, after.ops_per_s);
    assert_ne!(before.trace_hash, after.trace_hash);
    assert!(after.accesses > before.accesses);

    std::fs::write(
        &patch,
        "--- a/mm/mmap.c\n+++ b/mm/mmap.c\n@@ -1 +1 @@\n-a\n+b\n",
    )
    .unwrap();
    let error = UserLock::named(&name, &[]).unwrap_err().to_string();
    assert!(error.contains("changes nothing that the lock"), "{error}");
    std::fs::write(
        &patch,
        "--- a/kernel/locking/qspinlock.c\n+++ b/kernel/locking/qspinlock.c\n@@ -1 +1 @@\n-a\n+b\n",
    )
    .unwrap();
    let error = UserLock::named(&name, &[]).unwrap_err().to_string();
    assert!(error.contains("does not apply"), "{error}");
    std::fs::remove_file(&patch).unwrap();
    let error = UserLock::named(&name, &[]).unwrap_err().to_string();
    assert!(error.contains("cannot read the patch"), "{error}");
}
