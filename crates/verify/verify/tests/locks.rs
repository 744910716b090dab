//! Tests that every lock of the catalogue keeps its promises, and asks for no
//! ordering in vain, as far as the limits of a test reach. `locklab verify` goes on
//! from there.

use locklab_verify::{
    Explored, Hole, Limits, LockResult, Options, Outcome, UnknownLock, check, check_within, names,
    properties_of, random, verify,
};

locklab_verify::keep_stacks!();

fn verified(names: &[&str], mutants: bool, executions: u64) -> Vec<LockResult> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let options = Options {
        mutants,
        branches: true,
        executions,
        schedules: 20,
        ..Options::default()
    };
    verify(&names, options, &|_| ()).expect("the names are the catalogue's")
}

/// Executions of a promise: each lock with one preemption as far as ten times
/// as many go.
const FEW: u64 = 30;

/// Counts the executions for a lock of which so few do not reach all that its models do.
const MORE: u64 = 400;

/// Cut where this few executions do not reach the bound; the whole is
/// `locklab verify`.
#[test]
fn every_lock_keeps_its_promises() {
    let locks = verified(&names(), false, FEW);
    for lock in &locks {
        assert!(lock.holds(), "{lock:#?}");
        assert!(lock.executions > 10, "{} is not explored", lock.name);
    }
    every_hole_is_explained(&locks);
}

/// Asserts that what no model reaches has its reason in `coverage.tsv`, and that no reason is
/// there for what a model reaches.
fn every_hole_is_explained(locks: &[LockResult]) {
    let holes = |locks: &[LockResult]| -> Vec<(String, Hole)> {
        let of = |lock: &LockResult| -> Vec<_> {
            let name = |hole: &Hole| (lock.name.clone(), hole.clone());
            lock.covered.holes.iter().map(name).collect()
        };
        locks.iter().flat_map(of).collect()
    };
    let unexplained = |lock: &&LockResult| lock.covered.holes.iter().any(|h| h.because.is_none());
    let few: Vec<&str> = locks
        .iter()
        .filter(unexplained)
        .map(|lock| &*lock.name)
        .collect();
    let more = verified(&few, false, MORE);
    let holes_of = |lock: &LockResult| lock.covered.holes.clone();
    let left: Vec<_> = more.iter().filter(unexplained).map(holes_of).collect();
    assert!(left.is_empty(), "{left:#?}");
    // More executions are other ones: they may miss what few reach.
    let all = [holes(locks), holes(&more)].concat();
    let reasons = include_str!("../coverage.tsv").lines().skip(1);
    for reason in reasons {
        let fields: Vec<&str> = reason.split('\t').collect();
        let [of, _, _, _, why] = fields[..] else {
            panic!("coverage.tsv: five fields: {reason}");
        };
        for name in of.split(' ') {
            let explains =
                |(lock, hole): &(String, Hole)| lock == name && hole.because == Some(why);
            assert!(all.iter().any(explains), "coverage.tsv: {name}: {why}");
        }
    }
}

/// A sample: the mutants of all locks take minutes, and what they do is in
/// the record (`tests/record.rs`).
#[test]
fn no_mutant_survives() {
    for lock in verified(&["ticket", "mcs", "clh"], true, 1_000) {
        assert!(lock.mutants > Some(3), "{} has no mutants", lock.name);
        assert!(lock.survivors.is_empty(), "{lock:#?}");
        // What its source has beside that is in `locklab verify --coverage`.
        let covered = &lock.covered;
        assert_eq!(covered.calls.reached, covered.calls.of, "{covered:#?}");
        assert!(covered.operations.reached > 3, "{covered:#?}");
        assert!(covered.both_ways.reached > 0, "{covered:#?}");
    }
}

/// docs/verification.md says why pruning cuts nothing that matters; where the
/// unpruned run ends, it ends alike.
#[test]
fn pruned_and_unpruned_runs_agree() {
    // More preemptions than any of these executions has.
    const ENOUGH: usize = 20;
    for (lock, property) in [
        ("ticket", "exclusion"),
        ("ticket", "try_lock races"),
        ("ticket", "reuse"),
        ("mcs", "exclusion"),
        ("qspinlock", "exclusion"),
        ("qspinlock", "try_lock races"),
    ] {
        let properties = properties_of(lock).expect("a lock");
        let of_lock = properties.iter().find(|p| p.name == property);
        let runs = |prune_after| {
            let explored = check_within(of_lock.expect("a property"), ENOUGH, prune_after);
            assert_eq!(explored.outcome, Outcome::Holds, "{lock}, {property}");
            explored.executions
        };
        let (pruned, unpruned) = (runs(Some(1)), runs(None));
        assert!(
            pruned < unpruned,
            "{lock}, {property}: {pruned} of {unpruned}"
        );
    }
}

#[test]
fn a_name_that_is_no_lock_is_said_so() {
    let names = ["ticket".to_owned(), "tiket".to_owned()];
    let error = verify(&names, Options::default(), &|_| ()).expect_err("no such lock");
    assert_eq!(error, UnknownLock("tiket".into()));
    assert!(error.to_string().contains("'tiket'"));
}

#[test]
fn every_schedule_asked_for_is_run() {
    let drawn = random::draw("mcs", 7, 20).expect("a lock");
    assert_eq!(drawn.schedules, 20);
    assert!(drawn.failure.is_none());
    assert!(random::draw("no such lock", 7, 1).is_none());
}

/// Returns what comes of a promise of a lock, as far as a test reaches.
fn explored(lock: &str, promise: &str, executions: u64) -> Explored {
    let properties = properties_of(lock).expect("a lock");
    let property = properties.iter().find(|p| p.name == promise);
    let limits = Limits {
        executions,
        ..Limits::default()
    };
    check(property.expect("a promise"), limits, None)
}

/// The promises of three threads that begin from nothing hold in every execution.
#[test]
fn every_execution_of_three_threads_excludes() {
    for lock in [
        "ticket",
        "ttas",
        "mcs",
        "clh",
        "anderson",
        "twa",
        "qspinlock",
    ] {
        for promise in ["exclusion", "reuse", "exclusion of three"] {
            let explored = explored(lock, promise, 20_000);
            assert_eq!(explored.outcome, Outcome::Holds, "{lock}, {promise}");
            assert!(explored.every, "{lock}, {promise}");
        }
    }
}
