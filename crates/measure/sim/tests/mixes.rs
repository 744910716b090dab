//! Readers, several locks and lines, and times outside that vary. Everything is
//! seeded, so every figure repeats.

use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};
use locklab_sim::turns::{Choice, Distribution, Mix};
use locklab_sim::{
    Machine, Mixed, Outcome, Scenario, Sim, SimError, Stop, Workload, run, simulate_lock,
};

fn scenario(lock: &str, threads: usize, mixed: Mixed) -> Scenario {
    let machine = Machine::builtin("epyc-7763-2s").unwrap();
    Scenario::new(machine, lock, Workload::Mixed(mixed), threads)
}

fn of(lock: &str, threads: usize, change: impl FnOnce(&mut Mixed)) -> Outcome {
    let mut mixed = Mixed {
        critical: 9,
        non_critical: 5,
        locks: 1,
        hog: 0,
        mix: Mix::default(),
    };
    change(&mut mixed);
    run(&scenario(lock, threads, mixed)).unwrap()
}

#[test]
fn the_usual_mix_is_the_matrix() {
    let machine = Machine::builtin("epyc-7763-2s").unwrap();
    let matrix = Workload::Matrix {
        critical: 8,
        non_critical: 4,
    };
    let usual = run(&Scenario::new(machine, "mcs", matrix, 6)).unwrap();
    assert_eq!(usual, of("mcs", 6, |_| {}));
    assert_eq!(usual.most_readers, 0);
}

#[test]
fn readers_are_inside_together_where_the_lock_lets_them() {
    // Long enough that the lock's own line does not decide.
    let reading = |lock: &str, reads: u32| {
        of(lock, 8, |mixed| {
            mixed.critical = 200;
            mixed.mix.reads = reads;
        })
    };
    for lock in ["rw-queued", "phase-fair", "bravo"] {
        let all = reading(lock, 100);
        assert_eq!(all.most_readers, 8, "{lock}");
        let most = reading(lock, 90);
        assert!(most.most_readers > 1, "{lock}");
        // What readers gain is that they do not wait for one another.
        assert!(all.ops_per_s > 2.0 * reading(lock, 0).ops_per_s, "{lock}");
    }
    // A reader of this one writes no line that another CPU uses.
    let own = reading("bravo", 100);
    assert!(own.lines_moved < 1.0, "{}", own.lines_moved);
    let mutex = reading("ticket", 90);
    assert_eq!(mutex.most_readers, 0);
    assert!(mutex.handoffs.iter().sum::<u64>() < mutex.acquisitions / 5);
}

#[test]
fn turns_are_the_same_for_one_seed_and_others_for_another() {
    let mixed = |mixed: &mut Mixed| {
        mixed.locks = 4;
        mixed.mix = Mix {
            reads: 50,
            distribution: Distribution::Exponential,
            ..Mix::default()
        };
    };
    assert_eq!(of("bravo", 4, mixed), of("bravo", 4, mixed));
    let hash = |seed: u64| {
        let mut all = scenario(
            "bravo",
            4,
            Mixed {
                critical: 2,
                non_critical: 9,
                locks: 4,
                hog: 0,
                mix: Mix {
                    distribution: Distribution::Bursty,
                    ..Mix::default()
                },
            },
        );
        all.seed = seed;
        run(&all).unwrap().trace_hash
    };
    assert_ne!(hash(1), hash(2));
}

#[test]
fn more_locks_are_faster_and_a_hot_one_is_slower() {
    let uniform = |locks: u32| of("mcs", 16, |mixed| mixed.locks = locks).ops_per_s;
    assert!(uniform(16) > 2.0 * uniform(1));
    let zipf = of("mcs", 16, |mixed| {
        mixed.locks = 16;
        mixed.mix.choice = Choice::Zipf;
    });
    assert!(zipf.ops_per_s < uniform(16));
}

#[test]
fn a_pair_is_held_at_once_and_never_deadlocks() {
    for lock in ["ticket", "clh", "qspinlock", "anderson", "hemlock", "mcs"] {
        let nested = of(lock, 8, |mixed| {
            mixed.locks = 3;
            mixed.mix.nested = true;
        });
        let ops: u64 = nested.ops_by_thread.iter().sum();
        let two = nested.acquisitions as f64 / ops as f64;
        assert!((1.9..2.1).contains(&two), "{lock}: {two}");
    }
}

#[test]
fn more_lines_move_with_the_lock() {
    let lines = |lines: u32| {
        of("mcs", 8, |mixed| {
            mixed.non_critical = 1;
            mixed.mix.lines = lines;
        })
        .lines_moved
    };
    let (one, eight) = (lines(1), lines(8));
    assert!((6.0..8.0).contains(&(eight - one)), "{one} and {eight}");
}

/// Lets a writer in beside readers.
#[derive(Default)]
struct Careless(<Sim as Platform>::U32);
// SAFETY: it does not exclude, which is the point of the test.
unsafe impl RawLock<Sim> for Careless {
    type Ctx = ();
    const INFO: Info = Info {
        name: "careless",
        readers_share: true,
        ..Info::BASE
    };
    unsafe fn lock(&self, _: &()) {
        while self.0.swap(1, Ordering::Acquire) != 0 {
            self.0.spin_until(Ordering::Relaxed, |word| word == 0);
        }
    }
    unsafe fn unlock(&self, _: &()) {
        self.0.store(0, Ordering::Release);
    }
    unsafe fn read_lock(&self, _: &()) {
        self.0.load(Ordering::Acquire);
    }
    unsafe fn read_unlock(&self, _: &()) {}
}

#[test]
fn a_writer_beside_a_reader_is_two_holders() {
    let mixed = Mixed {
        critical: 3,
        non_critical: 3,
        locks: 1,
        hog: 0,
        mix: Mix {
            reads: 50,
            ..Mix::default()
        },
    };
    let error = simulate_lock::<Careless>(&scenario("careless", 4, mixed)).unwrap_err();
    assert!(matches!(error, SimError::TwoHolders { .. }), "{error}");
}

#[test]
fn too_many_locks_are_refused() {
    let mixed = Mixed {
        critical: 1,
        non_critical: 1,
        locks: 100_001,
        hog: 0,
        mix: Mix::default(),
    };
    let error = run(&scenario("mcs", 2, mixed)).unwrap_err().to_string();
    assert!(error.contains("--set locks=1 to 100000"), "{error}");
}

/// Turns of five threads, with what a test changes.
fn turns(lock: &str, change: impl FnOnce(&mut Mixed)) -> Outcome {
    let mut mixed = Mixed {
        critical: 5,
        non_critical: 20,
        locks: 1,
        hog: 0,
        mix: Mix::default(),
    };
    change(&mut mixed);
    let machine = Machine::builtin("flat-16").unwrap();
    let mut scenario = Scenario::new(machine, lock, Workload::Mixed(mixed), 5);
    scenario.stop = Stop::Acquisitions(3_000);
    run(&scenario).unwrap()
}

#[test]
fn a_holder_that_sleeps_holds_the_lock_for_so_long_and_burns_nothing() {
    let sleeping = |lock| turns(lock, |mixed| mixed.mix.hold_sleep_ns = 50_000);
    let parked = sleeping("pthread");
    let rate = parked.ops_per_s * 50e-6;
    assert!((0.8..=1.0).contains(&rate), "{rate} sections at a time");
    // Nobody computes while all wait; those who spin do.
    let spun = sleeping("ttas");
    assert!(parked.cpu_ns < 20_000.0, "{}", parked.cpu_ns);
    assert!(spun.cpu_ns > 150_000.0, "{}", spun.cpu_ns);
}

#[test]
fn a_hog_lets_the_others_wait_for_its_sections() {
    let alike = turns("mcs", |_| {}).latency.p99;
    let hogged = turns("mcs", |mixed| mixed.hog = 4_000).latency;
    assert!(hogged.p99 > 10.0 * alike, "{hogged:?} and {alike}");
}

#[test]
fn a_hundred_thousand_locks_are_hardly_ever_contended() {
    for lock in ["ttas", "clh", "std"] {
        let one = turns(lock, |_| {});
        let many = turns(lock, |mixed| mixed.locks = 100_000);
        let waits = |outcome: &Outcome| outcome.lock_wait_ns;
        assert!(waits(&many) < 0.2 * waits(&one), "{lock}: {many:?}");
    }
    let machine = Machine::builtin("flat-16").unwrap();
    let mixed = Mixed {
        critical: 5,
        non_critical: 20,
        locks: 100_000,
        hog: 0,
        mix: Mix {
            lines: 5,
            ..Mix::default()
        },
    };
    let scenario = Scenario::new(machine, "anderson", Workload::Mixed(mixed), 5);
    let error = run(&scenario).unwrap_err().to_string();
    assert!(error.contains("lines of memory"), "{error}");
}
