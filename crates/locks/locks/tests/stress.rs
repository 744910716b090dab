//! Runs real threads on every lock of the catalogue: whatever the model checker
//! proved, the machine code must hold.

use crate::common::stress;
use crate::common::yielding::{FENCES, Yielding, YieldingPortable};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{
    Fairness, Host, Info, NativePlatform, Platform, QSpinlock, QueueNodes, RawLock, RqSpinlock,
    RwQueued, Tas, Threads, kernel::QSpinlockCna, kernel::QSpinlockPv, rw::BravoPhaseFair,
    rw::RwPerCpu,
};
use std::sync::atomic::Ordering;

/// The shipped code. Not for more threads than CPUs where the lock is fair:
/// a handoff there waits until the next in line is scheduled, and that takes
/// milliseconds.
struct Native {
    threads: usize,
}

impl Visitor<NativePlatform> for Native {
    type Output = ();

    fn visit<L: RawLock<NativePlatform>>(self) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if self.threads > cpus && L::INFO.fairness == Fairness::Fifo {
            return;
        }
        stress::<NativePlatform, L>(self.threads, 20_000);
    }
}

/// Says how many threads form a queue: with eight, Miri takes hours.
const QUEUES: &[usize] = if cfg!(miri) { &[3] } else { &[3, 8] };

/// Tests the same algorithms with waits that let others run, so that queues form.
struct Queueing {
    threads: usize,
}

impl<P: Platform> Visitor<P> for Queueing {
    type Output = ();

    fn visit<L: RawLock<P>>(self) {
        stress::<P, L>(self.threads, 1_600 / self.threads as u64);
    }
}

fn all_locks(mut run: impl FnMut(&str) -> Option<()>) {
    for entry in catalogue::ALL {
        let name = entry.info.name;
        assert!(run(name).is_some(), "{name} is listed but not visited");
    }
}

#[test]
fn every_lock_excludes() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        println!("skipped: the fair locks, which take a second CPU");
    }
    for threads in [2, 3, 4, 8] {
        all_locks(|name| catalogue::visit(name, Native { threads }));
    }
}

#[test]
fn every_lock_excludes_when_queues_form() {
    for &threads in QUEUES {
        all_locks(|name| catalogue::visit::<Yielding, _>(name, Queueing { threads }));
    }
}

#[test]
fn every_lock_excludes_with_portable_words() {
    for &threads in QUEUES {
        all_locks(|name| catalogue::visit::<YieldingPortable, _>(name, Queueing { threads }));
    }
}

/// An interrupt that takes a queue node finds the levels as they are: each
/// queueing fences when it has taken its level and before it gives it back.
#[test]
fn queueing_fences_against_interrupts() {
    for name in ["qspinlock", "qspinlock-pv", "qspinlock-cna", "rqspinlock"] {
        let before = FENCES.load(Ordering::Relaxed);
        catalogue::visit::<Yielding, _>(name, Queueing { threads: 8 }).unwrap();
        assert!(FENCES.load(Ordering::Relaxed) > before + 1, "{name}");
    }
}

/// A host whose threads have no numbers, as the threads of a program beyond
/// the most that are counted.
struct Numberless;

// SAFETY: nobody has a number, so nobody has a node.
unsafe impl Host for Numberless {
    fn cpu() -> usize {
        unreachable!("asked for a number that no thread has")
    }
    fn try_cpu() -> Option<usize> {
        None
    }
    fn queue_nodes(_: usize) -> &'static QueueNodes<locklab_locks::Native<Self>> {
        unreachable!("no number, no node")
    }
}

#[test]
fn queued_spinlocks_do_without_numbers() {
    type P = locklab_locks::Native<Numberless>;
    stress::<P, QSpinlock<P>>(3, 2_000);
    stress::<P, QSpinlockPv<P>>(3, 2_000);
    stress::<P, QSpinlockCna<P>>(3, 2_000);
    stress::<P, RqSpinlock<P>>(3, 2_000);
    stress::<P, RwQueued<P>>(3, 2_000);
    stress::<P, BravoPhaseFair<P>>(3, 2_000);
    stress::<P, RwPerCpu<P, 2>>(3, 2_000);
}

#[test]
fn a_virtual_machine_may_be_noticed_at_any_time() {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let queueing = Queueing { threads: 6 };
            catalogue::visit::<Yielding, _>("qspinlock-virt", queueing).unwrap();
        });
        let mut virtualized = false;
        while !running.is_finished() {
            virtualized = !virtualized;
            Threads::set_virtualized(virtualized);
            std::thread::yield_now();
        }
        Threads::set_virtualized(false);
        assert!(!NativePlatform::virtualized());
    });
}

/// Admits everybody.
#[derive(Default)]
struct Broken;

// SAFETY: none; it is there to be caught.
unsafe impl RawLock<Yielding> for Broken {
    type Ctx = ();
    const INFO: Info = <Tas<Yielding> as RawLock<Yielding>>::INFO;
    unsafe fn lock(&self, _: &()) {}
    unsafe fn unlock(&self, _: &()) {}
}

#[test]
#[should_panic(expected = "a lock that excludes")]
#[cfg_attr(miri, ignore = "Miri ends at the data race itself")]
fn a_lock_that_admits_two_is_caught() {
    stress::<Yielding, Broken>(4, 2_000);
}
