//! Real threads on every lock of the catalogue: whatever the model checker
//! proved, the machine code must hold.

mod common;

use common::{stress, yielding::Yielding};
use locklab_locks::catalogue::{self, Visitor};
use locklab_locks::{Fairness, Info, NativePlatform, Platform, RawLock, Tas, Threads};

/// The shipped code. With more threads than CPUs a handoff of a fair lock
/// waits until the next in line is scheduled, milliseconds each, so there
/// the turns are few.
struct Native {
    threads: usize,
}

impl Visitor<NativePlatform> for Native {
    type Output = ();

    fn visit<L: RawLock<NativePlatform>>(self) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let acquisitions = match L::INFO.fairness {
            _ if self.threads <= cpus => 200_000,
            Fairness::Fifo => 80,
            _ => 20_000,
        };
        stress::<NativePlatform, L>(self.threads, acquisitions / self.threads as u64);
    }
}

/// The same algorithms with waits that yield, so that queues form.
struct Oversubscribed {
    threads: usize,
}

impl Visitor<Yielding> for Oversubscribed {
    type Output = ();

    fn visit<L: RawLock<Yielding>>(self) {
        stress::<Yielding, L>(self.threads, 4_000 / self.threads as u64);
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
    for threads in [2, 3, 4, 8] {
        all_locks(|name| catalogue::visit(name, Native { threads }));
    }
}

#[test]
fn every_lock_excludes_when_queues_form() {
    for threads in [2, 3, 5, 8] {
        all_locks(|name| catalogue::visit(name, Oversubscribed { threads }));
    }
}

#[test]
fn a_virtual_machine_may_be_noticed_at_any_time() {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            catalogue::visit("qspinlock-virt", Oversubscribed { threads: 6 }).unwrap();
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
#[should_panic(expected = "a scoped thread panicked")]
fn a_lock_that_admits_two_is_caught() {
    stress::<Yielding, Broken>(4, 5_000);
}
