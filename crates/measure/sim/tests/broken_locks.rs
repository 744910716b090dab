//! Locks that do not work are reported, not run for ever.

use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};
use locklab_sim::{Machine, Scenario, Sim, SimError, Workload, simulate_lock};

type Word = <Sim as Platform>::U32;

const INFO: Info = Info {
    name: "broken",
    try_lock: false,
    max_cpus: 64,
    ..Info::BASE
};

fn scenario(machine: &str, threads: usize) -> Scenario {
    let machine = Machine::builtin(machine).unwrap();
    let workload = Workload::Matrix {
        critical: 1,
        non_critical: 1,
    };
    Scenario::new(machine, "broken", workload, threads)
}

/// Never released.
#[derive(Default)]
struct Forgets(Word);
// SAFETY: excludes for ever.
unsafe impl RawLock<Sim> for Forgets {
    type Ctx = ();
    const INFO: Info = INFO;
    unsafe fn lock(&self, _: &()) {
        while self.0.swap(1, Ordering::Acquire) != 0 {
            self.0.spin_until(Ordering::Relaxed, |word| word == 0);
        }
    }
    unsafe fn unlock(&self, _: &()) {}
}

/// Released never, and waited for by writing.
#[derive(Default)]
struct Hammers(Word);
// SAFETY: excludes for ever.
unsafe impl RawLock<Sim> for Hammers {
    type Ctx = ();
    const INFO: Info = INFO;
    unsafe fn lock(&self, _: &()) {
        while self.0.swap(1, Ordering::Acquire) != 0 {
            Sim::relax();
        }
    }
    unsafe fn unlock(&self, _: &()) {}
}

/// Reads, then writes: two can come in.
#[derive(Default)]
struct Leaks(Word);
// SAFETY: it does not exclude, which is the point of the test.
unsafe impl RawLock<Sim> for Leaks {
    type Ctx = ();
    const INFO: Info = INFO;
    unsafe fn lock(&self, _: &()) {
        self.0.spin_until(Ordering::Acquire, |word| word == 0);
        self.0.store(1, Ordering::Relaxed);
    }
    unsafe fn unlock(&self, _: &()) {
        self.0.store(0, Ordering::Release);
    }
}

/// Halts without anybody to wake it.
#[derive(Default)]
struct Sleeps(Word);
// SAFETY: admits nobody twice.
unsafe impl RawLock<Sim> for Sleeps {
    type Ctx = ();
    const INFO: Info = INFO;
    unsafe fn lock(&self, _: &()) {
        while self.0.swap(1, Ordering::Acquire) != 0 {
            Sim::wait(&self.0, 1);
        }
    }
    unsafe fn unlock(&self, _: &()) {}
}

/// Uses a word of the host.
#[derive(Default)]
struct Elsewhere;
// SAFETY: admits nobody.
unsafe impl RawLock<Sim> for Elsewhere {
    type Ctx = ();
    const INFO: Info = INFO;
    unsafe fn lock(&self, _: &()) {
        static ELSEWHERE: Word = Word::ZERO;
        ELSEWHERE.load(Ordering::Relaxed);
    }
    unsafe fn unlock(&self, _: &()) {}
}

#[test]
fn a_deadlock_names_every_cpu_and_its_word() {
    for machine in ["flat-16", "xeon-8380-vm"] {
        let error = simulate_lock::<Forgets>(&scenario(machine, 3)).unwrap_err();
        let SimError::Deadlock(report) = &error else {
            panic!("{error}")
        };
        assert_eq!(report.cpus.len(), 3);
        assert_eq!(report.acquisitions, 1);
        for cpu in &report.cpus {
            assert_eq!(cpu.doing, "spins on");
            assert_eq!(cpu.word.as_deref(), Some("lock"));
            assert_eq!(cpu.value, Some(1));
            assert!(cpu.place.as_ref().unwrap().contains("broken_locks.rs:"));
        }
    }
}

#[test]
fn a_deadlock_with_more_virtual_cpus_than_physical_ones() {
    let mut scenario = scenario("xeon-8380-vm", 5);
    scenario.hardware_threads = Some(2);
    let error = simulate_lock::<Forgets>(&scenario).unwrap_err();
    assert!(matches!(error, SimError::Deadlock(_)), "{error}");
}

#[test]
fn a_halt_without_a_wake() {
    let error = simulate_lock::<Sleeps>(&scenario("flat-16", 2)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("deadlock in simulation: broken on flat-16, seed 1, after 1 acquisitions"),
        "{text}"
    );
    assert!(
        text.contains("CPU   1  halted on lock = 0x1 since"),
        "{text}"
    );
}

#[test]
fn a_livelock_is_limited() {
    let error = simulate_lock::<Hammers>(&scenario("flat-16", 2)).unwrap_err();
    assert!(matches!(error, SimError::Livelock(_)), "{error}");
    let error = simulate_lock::<Hammers>(&scenario("flat-16", 1)).unwrap_err();
    assert!(matches!(error, SimError::Livelock(_)), "{error}");
}

#[test]
fn a_second_holder_is_caught() {
    let error = simulate_lock::<Leaks>(&scenario("flat-16", 4)).unwrap_err();
    assert!(matches!(error, SimError::TwoHolders { .. }), "{error}");
}

#[test]
fn memory_of_the_host_is_refused() {
    let error = simulate_lock::<Elsewhere>(&scenario("flat-16", 2)).unwrap_err();
    assert!(matches!(error, SimError::Outside { .. }), "{error}");
}
