//! What is wrong with a test is found, and named by its place: one small test for each
//! kind of failure, and beside it one that is right.

use locklab_graph::cell::UnsafeCell;
use locklab_graph::model::{self, Location};
use locklab_graph::sync::Arc;
use locklab_graph::sync::atomic::{
    AtomicU32,
    Ordering::{self, Acquire, Relaxed, Release},
};
use locklab_graph::{Explorer, FailureKind, Limit, Options, Place, Report, thread};
use std::time::Duration;

fn check(test: impl Fn() + 'static) -> Report {
    Explorer::default().check(test)
}

fn fails(kind: FailureKind, test: impl Fn() + 'static) -> String {
    let error = check(test).error.expect("a failure");
    assert_eq!(error.kind, kind, "{error}");
    error.message
}

/// One thread writes a cell and says so; another reads it then.
fn publish(release: Ordering) {
    let shared = Arc::new((AtomicU32::new(0), UnsafeCell::new(0)));
    let other = shared.clone();
    let writer = thread::spawn(move || {
        // SAFETY: a race is reported.
        other.1.with_mut(|value| unsafe { *value = 7 });
        // Pairs with the load below.
        other.0.store(1, release);
    });
    // Pairs with the store above.
    if shared.0.load(Acquire) == 1 {
        // SAFETY: a race is reported.
        assert_eq!(shared.1.with(|value| unsafe { *value }), 7);
    }
    writer.join();
}

#[test]
fn a_race_is_found_and_its_repair_accepted() {
    let message = fails(FailureKind::DataRace, || publish(Relaxed));
    assert!(message.contains("failures.rs:"), "{message}");
    let right = check(|| publish(Release));
    assert!(right.holds());
    assert_eq!(right.executions, 2);
}

#[test]
fn an_assertion_is_named_by_its_line() {
    let message = fails(FailureKind::Assertion, || {
        let x = Arc::new(AtomicU32::new(0));
        let other = x.clone();
        let writer = thread::spawn(move || other.store(1, Relaxed));
        assert_eq!(x.load(Relaxed), 0, "it is early");
        writer.join();
    });
    assert!(message.contains("it is early"), "{message}");
    assert!(message.contains("failures.rs:"), "{message}");
}

#[test]
fn a_wait_that_nobody_ends_is_a_deadlock() {
    let waits = |value: u32| {
        move || {
            let x = Arc::new(AtomicU32::new(0));
            let other = x.clone();
            let writer = thread::spawn(move || {
                other.store(1, Relaxed);
                other.store(2, Relaxed);
            });
            x.wait_until(Relaxed, |now| now == value);
            writer.join();
        }
    };
    // The one in between may be missed.
    let message = fails(FailureKind::Deadlock, waits(1));
    assert!(message.contains("thread 0"), "{message}");
    assert_eq!(check(waits(2)).executions, 1);
    fails(FailureKind::Deadlock, waits(3));
}

#[test]
fn a_loop_is_a_wait() {
    let report = check(|| {
        let x = Arc::new(AtomicU32::new(0));
        let other = x.clone();
        let writer = thread::spawn(move || other.store(1, Relaxed));
        while x.load(Relaxed) == 0 {}
        writer.join();
    });
    assert!(report.holds());
    assert_eq!((report.executions, report.waits.len()), (1, 1));
    fails(FailureKind::Deadlock, || {
        let x = AtomicU32::new(0);
        while x.load(Relaxed) == 0 {}
    });
}

/// Who tries so often and then gives up, or tries twice in two ways, does not wait.
#[test]
fn a_loop_that_counts_is_no_wait() {
    let report = check(|| {
        let x = Arc::new(AtomicU32::new(0));
        let other = x.clone();
        let writer = thread::spawn(move || other.store(1, Relaxed));
        let tries = (0..3).take_while(|_| x.load(Relaxed) == 0).count();
        assert!(tries <= 3);
        writer.join();
    });
    assert!(report.holds(), "{}", report.error.unwrap());
    assert_eq!((report.executions, report.waits.len()), (4, 0));
}

#[test]
fn a_thread_without_an_end_is_named() {
    let message = fails(FailureKind::TooLong, || {
        let x = AtomicU32::new(0);
        while x.fetch_add(1, Relaxed) != u32::MAX {}
    });
    assert!(message.contains("does not end"), "{message}");
}

#[test]
fn limits_are_kept_and_said() {
    let many = || {
        let x = Arc::new(AtomicU32::new(0));
        let thread = |_| {
            let x = x.clone();
            thread::spawn(move || x.fetch_add(1, Relaxed))
        };
        let all: Vec<_> = (0..8).map(thread).collect();
        all.into_iter().for_each(|thread| {
            thread.join();
        });
    };
    let with = |options| Explorer::new(options).check(many);
    let few = with(Options {
        executions: 10,
        ..Options::default()
    });
    assert_eq!((few.executions, few.limit), (10, Some(Limit::Executions)));
    let brief = with(Options {
        duration: Some(Duration::ZERO),
        ..Options::default()
    });
    assert_eq!(brief.limit, Some(Limit::Duration));
    let small = with(Options {
        memory: 0,
        ..Options::default()
    });
    assert_eq!(small.limit, Some(Limit::Memory));
    assert!(!few.holds() && !brief.holds() && !small.holds());
}

#[test]
fn memory_has_a_life() {
    // Returns a location in new memory.
    fn allocate() -> (usize, Location) {
        let address = model::allocate(4, 4, Place::here());
        // SAFETY: the memory lives as long as the exploration.
        (address, unsafe { Location::memory(address, 4) })
    }
    fails(FailureKind::UseAfterFree, || {
        let (address, word) = allocate();
        model::store(word, 1, Relaxed, Place::here());
        model::free(address, Place::here());
        model::load(word, Relaxed, Place::here());
    });
    fails(FailureKind::BadFree, || {
        let (address, _) = allocate();
        model::free(address, Place::here());
        model::free(address, Place::here());
    });
    fails(FailureKind::Leak, || {
        allocate();
    });
    // Another thread may still read.
    fails(FailureKind::UseAfterFree, || {
        let (address, word) = allocate();
        model::store(word, 1, Relaxed, Place::here());
        let reads = move || {
            model::load(word, Relaxed, Place::here());
        };
        let reader = model::spawn(reads, Place::here());
        model::free(address, Place::here());
        model::join(reader, Place::here());
    });
    let right = check(|| {
        let (address, word) = allocate();
        model::store(word, 1, Relaxed, Place::here());
        model::free(address, Place::here());
    });
    assert!(right.holds());
}

/// Plain accesses are made by the test itself, and atomic ones by the engine: each sees
/// what the other wrote.
#[test]
fn plain_and_atomic_accesses_share_memory() {
    let report = check(|| {
        let address = model::allocate(8, 8, Place::here());
        // SAFETY: the memory lives as long as the exploration.
        let word = unsafe { Location::memory(address, 8) };
        let plain = std::ptr::with_exposed_provenance_mut::<u64>(address);
        model::write(word, Place::here());
        // SAFETY: as above; the threads of a test are one.
        unsafe { plain.write(5) };
        let add = move || {
            model::rmw(word, Relaxed, Place::here(), |old| Some(old + 1));
        };
        let adds = [(); 2].map(|()| model::spawn(add, Place::here()));
        for id in adds {
            model::join(id, Place::here());
        }
        model::read(word, Place::here());
        // SAFETY: as above.
        assert_eq!(unsafe { plain.read() }, 7);
        model::free(address, Place::here());
    });
    assert!(report.holds(), "{}", report.error.unwrap());
    assert_eq!(report.executions, 2);
}

#[test]
fn sizes_are_not_mixed() {
    fails(FailureKind::MixedSize, || {
        let address = model::allocate(8, 8, Place::here());
        // SAFETY: the memory lives as long as the exploration.
        let (whole, half) = unsafe { (Location::memory(address, 8), Location::memory(address, 4)) };
        model::store(whole, 1, Relaxed, Place::here());
        model::load(half, Relaxed, Place::here());
    });
}

#[test]
fn choices_are_all_made() {
    let report = check(|| {
        let one = model::choose(3, Place::here());
        let other = model::choose(2, Place::here());
        model::assume((one, other) != (2, 1));
    });
    assert_eq!((report.executions, report.blocked), (5, 1));
}

#[test]
fn a_weak_exchange_fails_once_without_a_reason() {
    let report = check(|| {
        let x = AtomicU32::new(0);
        while x.compare_exchange_weak(0, 1, Relaxed, Relaxed).is_err() {}
    });
    assert!(report.holds(), "{}", report.error.unwrap());
    assert_eq!(report.executions, 2);
}

#[test]
fn a_failure_is_run_again() {
    fn test() {
        let all = Arc::new([(); 3].map(|()| AtomicU32::new(0)));
        let thread = |own: usize| {
            let all = all.clone();
            thread::spawn(move || {
                all[own].store(1, Relaxed);
                all[2].fetch_add(all[1 - own].load(Relaxed), Relaxed);
                model::choose(3, Place::here())
            })
        };
        let threads = [0, 1].map(thread);
        let chosen = threads.map(thread::JoinHandle::join);
        let both = all[2].load(Relaxed) == 0;
        assert!(!both || chosen != [1, 2], "neither has seen the other");
    }
    let error = check(test).error.expect("a failure");
    let steps = |error: &locklab_graph::Failure| {
        let values = error
            .steps
            .iter()
            .map(|step| (step.id, step.value, step.place));
        values.collect::<Vec<_>>()
    };
    let again = Explorer::default().replay(&error.replay, test);
    let again = again.expect("a string of this test");
    let again = again.error.expect("the same failure");
    assert_eq!(error.message, again.message);
    assert_eq!(steps(&error), steps(&again));
    assert_eq!(error.replay, again.replay);

    for wrong in ["x", "a", "z1", "a1.", ".1", "a9999999", "A1"] {
        let error = Explorer::default().replay(wrong, test).expect_err(wrong);
        assert!(error.contains("replay string"), "{error}");
    }
}

/// Threads that wait by a swap while a test is set up go on from there, and in each execution
/// again.
#[test]
fn who_swaps_and_waits_in_a_set_up_goes_on() {
    let report = Explorer::default().check(|| {
        let held = Arc::new(AtomicU32::new(0));
        let mut others = Vec::new();
        model::set_up(|| {
            held.swap(1, Acquire);
            for _ in 0..2 {
                let held = held.clone();
                others.push(thread::spawn(move || {
                    // Pairs with the stores of 0.
                    while held.swap(1, Acquire) != 0 {}
                    held.store(0, Release);
                }));
                model::let_others_run();
            }
        });
        held.store(0, Release);
        for other in others {
            other.join();
        }
        assert_eq!(held.load(Relaxed), 0);
    });
    assert!(report.holds() && report.executions > 1, "{report:?}");
}
