//! Runs of a few milliseconds, of sound locks and of unsound ones. Nothing
//! here says how fast anything is.

use super::*;
use locklab_host::topology;

fn order<'a>(threads: usize, cpus: &'a [usize], interrupt: &'a AtomicBool) -> Order<'a> {
    Order {
        threads,
        processes: false,
        cpus,
        work: Work::Units,
        critical: 1,
        non_critical: 1,
        files: &[],
        warm_up: Duration::from_millis(1),
        run: Duration::from_millis(5),
        latency: false,
        clock_cost: 30.0,
        interrupt,
    }
}

fn run_of(order: &Order, lock: &str) -> Result<Run, Stopped> {
    crate::native::subject::visit(lock, order).unwrap()
}

#[test]
fn every_lock_runs_and_keeps_its_count() {
    let (cpus, interrupt) = (topology::allowed(), AtomicBool::new(false));
    for subject in crate::native::subject::all() {
        for threads in [1, 3] {
            let run = run_of(&order(threads, &cpus, &interrupt), subject.info.name).unwrap();
            // A loaded machine may void a run; it may not fail a check.
            assert!(
                !matches!(run.invalid, Some(Invalid::CheckFailed(_))),
                "{}: {:?}",
                subject.info.name,
                run.invalid
            );
            if run.invalid.is_none() {
                assert_eq!(run.per_thread.len(), threads);
            }
        }
    }
}

#[test]
fn processes_run_every_lock_that_can() {
    let (cpus, interrupt) = (topology::allowed(), AtomicBool::new(false));
    for subject in crate::native::subject::all() {
        if !subject.info.shared_memory {
            continue;
        }
        let run = run_of(
            &Order {
                processes: true,
                latency: true,
                ..order(2, &cpus, &interrupt)
            },
            subject.info.name,
        )
        .unwrap();
        assert!(
            !matches!(run.invalid, Some(Invalid::CheckFailed(_))),
            "{}: {:?}",
            subject.info.name,
            run.invalid
        );
    }
}

#[test]
fn latency_and_fstat_are_measured() {
    use std::os::fd::AsRawFd;
    let (cpus, interrupt) = (topology::allowed(), AtomicBool::new(false));
    let files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
    let descriptors = files.each_ref().map(AsRawFd::as_raw_fd);
    let wanted = Order {
        work: Work::Fstat,
        files: &descriptors,
        latency: true,
        ..order(2, &cpus, &interrupt)
    };
    // Tried again where a loaded machine voids the run.
    let run = (0..20)
        .map(|_| run_of(&wanted, "tas").unwrap())
        .find(|run| run.invalid.is_none())
        .unwrap();
    let latency = run.latency.unwrap();
    assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.max);
    // A file that is not open fails the workload's own check.
    let run = run_of(
        &Order {
            files: &[-1, -1],
            ..wanted
        },
        "tas",
    )
    .unwrap();
    let Some(Invalid::CheckFailed(why) | Invalid::Disturbed(why)) = run.invalid else {
        panic!("fstat of no file went well");
    };
    assert!(
        why.contains("fstat") || why.contains("longer") || why.contains("CPU"),
        "{why}"
    );
}

#[test]
fn an_interrupt_ends_a_run_without_a_sample() {
    let (cpus, interrupt) = (topology::allowed(), AtomicBool::new(true));
    let long = Order {
        run: Duration::from_secs(3600),
        ..order(2, &cpus, &interrupt)
    };
    assert_eq!(run_of(&long, "mcs"), Err(Stopped::Interrupted));
    let processes = Order {
        processes: true,
        ..long
    };
    assert_eq!(run_of(&processes, "ticket"), Err(Stopped::Interrupted));
}

/// Admits everybody.
#[derive(Default)]
struct Open;

// SAFETY: it is not what it says; that is the point. What it fails to
// protect are atomics and bytes that nobody reads.
unsafe impl RawLock<NativePlatform> for Open {
    type Ctx = ();
    const INFO: locklab_locks::Info = <crate::native::peers::Std as RawLock<_>>::INFO;
    unsafe fn lock(&self, (): &()) {}
    unsafe fn unlock(&self, (): &()) {}
}

#[test]
fn a_lock_that_does_not_exclude_is_found_out() {
    let (cpus, interrupt) = (topology::allowed(), AtomicBool::new(false));
    if cpus.len() == 1 {
        return;
    }
    // No units: they would race.
    let order = Order {
        critical: 0,
        ..order(4, &cpus, &interrupt)
    };
    let found = (0..200).any(|_| {
        let run = (&order).visit::<Open>().unwrap();
        matches!(run.invalid, Some(Invalid::CheckFailed(_)))
    });
    assert!(found);
}

/// Kills the process that takes it for the hundredth time, and is never
/// released by it.
#[derive(Default)]
struct Deadly {
    held: std::sync::atomic::AtomicBool,
    turns: std::sync::atomic::AtomicU32,
}

// SAFETY: one holder at a time.
unsafe impl RawLock<NativePlatform> for Deadly {
    type Ctx = ();
    const INFO: locklab_locks::Info = <crate::native::peers::Std as RawLock<_>>::INFO;
    unsafe fn lock(&self, (): &()) {
        while self.held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        if self.turns.fetch_add(1, Ordering::Relaxed) == 99 {
            // SAFETY: ends this process, a child of the test.
            unsafe { libc::raise(libc::SIGKILL) };
        }
    }
    unsafe fn unlock(&self, (): &()) {
        self.held.store(false, Ordering::Release);
    }
}

#[test]
fn a_process_that_dies_with_the_lock_voids_the_run_and_hangs_nobody() {
    let (cpus, interrupt) = (topology::allowed(), AtomicBool::new(false));
    let order = Order {
        processes: true,
        ..order(3, &cpus, &interrupt)
    };
    let run = (&order).visit::<Deadly>().unwrap();
    let Some(Invalid::Failed(why)) = run.invalid else {
        panic!("it went well");
    };
    assert_eq!(why, "a process was killed by SIGKILL");
}

#[test]
fn fairness_figures_are_those_of_the_definition() {
    assert_eq!(jain(&[5, 5, 5, 5]), 1.0);
    assert_eq!(jain(&[7, 0, 0, 0]), 0.25);
    assert_eq!(jain(&[0, 0]), 1.0);
    assert_eq!(min_over_max(&[3, 6]), 0.5);
    assert_eq!(min_over_max(&[0, 0]), 1.0);
    // Windows: 10:10, then 20:0, then nothing, then 10:30.
    let (jain, ratio) = window_medians(&[&[10, 30, 30, 40], &[10, 10, 10, 40]]);
    assert_eq!(jain, Some(0.8));
    assert_eq!(ratio, Some(10.0 / 30.0));
    assert_eq!(window_medians(&[]), (None, None));
}
