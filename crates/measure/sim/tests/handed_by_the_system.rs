//! Tests words that the simulated system hands over from owner to owner, as Linux's
//! `FUTEX_LOCK_PI` does.

use locklab_locks::platform::{Atomic, Ordering, PI_WAITERS, Platform};
use locklab_locks::{Info, RawLock};
use locklab_sim::{
    FigureKey, Loop, Machine, Scenario, Sim, Stop, Word, Workload, run, simulate_lock,
};
use std::cell::Cell;

thread_local! {
    /// Calls that acquire, and that release.
    static CALLS: Cell<[u32; 2]> = const { Cell::new([0; 2]) };
}

fn count(call: usize) {
    let mut calls = CALLS.get();
    calls[call] += 1;
    CALLS.set(calls);
}

/// A lock of which a waiter asks the system at once.
#[derive(Default)]
struct Handed {
    word: Word<u32>,
}

// SAFETY: the system makes the word its waiter's when the owner has released it.
unsafe impl RawLock<Sim> for Handed {
    type Ctx = ();
    const INFO: Info = Info {
        name: "handed",
        try_lock: false,
        parks: true,
        ..Info::BASE
    };

    unsafe fn lock(&self, _: &()) {
        let (own, relaxed) = (Sim::thread_id(), Ordering::Relaxed);
        let taken = self
            .word
            .compare_exchange(0, own, Ordering::Acquire, relaxed);
        if taken.is_err() {
            count(0);
            Sim::lock_pi(&self.word);
        }
        let owner = self.word.load(Ordering::Relaxed);
        assert_eq!(owner & !PI_WAITERS, own, "another's word");
    }

    unsafe fn unlock(&self, _: &()) {
        let own = Sim::thread_id();
        let released = self
            .word
            .compare_exchange(own, 0, Ordering::Release, Ordering::Relaxed);
        if released.is_err() {
            count(1);
            Sim::unlock_pi(&self.word);
        }
    }
}

fn sections_of(inside_ns: f64) -> Workload {
    Workload::Loop(Loop {
        inside_ns,
        outside_ns: 100.0,
        write_percent: 100,
        ..Loop::default()
    })
}

/// Simulates threads on as many CPUs, or on two.
fn scenario(lock: &str, threads: usize, on_two: bool) -> Scenario {
    let machine = Machine::builtin("flat-16").unwrap();
    let workload = sections_of(50.0);
    let mut scenario = Scenario::new(machine, lock, workload, threads);
    scenario.hardware_threads = on_two.then_some(2);
    scenario.stop = Stop::Acquisitions(5_000);
    scenario
}

#[test]
fn who_has_waited_the_longest_is_next() {
    CALLS.set([0; 2]);
    let outcome = simulate_lock::<Handed>(&scenario("handed", 8, false))
        .unwrap()
        .outcome;
    assert!(outcome.jain > 0.999, "{:?}", outcome.ops_by_thread);
    let [locks, unlocks] = CALLS.get();
    assert!(locks > 4_900 && unlocks > 4_900, "{locks} and {unlocks}");
}

/// A word that was handed over keeps its mark, so its release is a call even if nobody waits.
#[test]
fn the_last_of_those_who_waited_asks_the_system_too() {
    CALLS.set([0; 2]);
    let mut scenario = scenario("handed", 2, false);
    // Longer than the call of who waits.
    scenario.workload = sections_of(50_000.0);
    scenario.stop = Stop::Each(1);
    simulate_lock::<Handed>(&scenario).unwrap();
    assert_eq!(CALLS.get(), [1, 2], "one waits; it and the first release");
}

#[test]
fn the_same_threads_share_two_cpus() {
    let handed = simulate_lock::<Handed>(&scenario("handed", 8, true))
        .unwrap()
        .outcome;
    assert!(handed.jain > 0.98, "{:?}", handed.ops_by_thread);
    let [first, now] = ["swift-mutex-pi", "swift-mutex"].map(|lock| {
        let mut scenario = scenario(lock, 8, true);
        scenario.stop = Stop::Milliseconds(30.0);
        run(&scenario).unwrap().ops_per_s
    });
    assert!(
        first < 0.5 * now,
        "each handover waits for a wake-up: {first} and {now}"
    );
}

/// Where a hypervisor runs the CPUs, they halt, and it does not know for which word.
#[test]
fn virtual_cpus_hand_over_too() {
    let (name, _) = locklab_sim::BUILTIN
        .iter()
        .find(|(name, _)| {
            let machine = Machine::builtin(name).unwrap();
            machine.get(FigureKey::VmVcpus) > 0.0
        })
        .unwrap();
    let mut scenario = scenario("handed", 4, false);
    scenario.machine = Machine::builtin(name).unwrap();
    let outcome = simulate_lock::<Handed>(&scenario).unwrap().outcome;
    assert!(outcome.jain > 0.98, "{:?}", outcome.ops_by_thread);
}
