//! Every lock of the catalogue keeps its promises, and asks for no ordering
//! in vain, as far as the limits of a test reach. `locklab verify` goes on
//! from there.

use locklab_verify::record::recorded;
use locklab_verify::{
    Limits, LockResult, Options, Outcome, UnknownLock, check_and_record, check_within, names,
    properties_of, verify,
};
use std::collections::BTreeSet;

fn check(names: &[&str], mutants: bool, executions: u64) -> Vec<LockResult> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let options = Options {
        mutants,
        executions,
        schedules: 100,
        ..Options::default()
    };
    verify(&names, options, &|_| ()).expect("the names are the catalogue's")
}

/// Cut where this few executions do not reach the bound; the whole is
/// `locklab verify`.
#[test]
fn every_lock_keeps_its_promises() {
    for lock in check(&names(), false, 250) {
        assert!(lock.holds(), "{}", locklab_verify::table(&[lock]));
        assert!(lock.executions > 10, "{} is not explored", lock.name);
    }
}

/// What `locklab locks` says was found is of the orderings that are there
/// now: whoever adds one, or takes one away, runs `locklab verify --mutants
/// --record crates/verify/verified.tsv`.
#[test]
fn the_record_is_of_this_source() {
    for record in recorded() {
        let name = record.name;
        let properties = properties_of(&name).expect("a lock");
        assert_eq!(record.promises, properties.len(), "promises of {name}");
        let mut mutants = BTreeSet::new();
        // Few executions pass all orderings of most locks.
        for executions in [250, 2_500] {
            for property in &properties {
                let limits = Limits {
                    executions,
                    ..Limits::default()
                };
                mutants.extend(check_and_record(property, limits).1);
            }
            if mutants.len() >= record.mutants {
                break;
            }
        }
        assert_eq!(record.mutants, mutants.len(), "mutants of {name}");
    }
}

/// A sample: the mutants of all locks take minutes.
#[test]
fn no_mutant_survives() {
    for lock in check(&["ticket", "mcs", "clh", "qspinlock"], true, 3_000) {
        assert!(lock.mutants > Some(3), "{} has no mutants", lock.name);
        assert!(
            lock.survivors.is_empty(),
            "{}",
            locklab_verify::table(&[lock])
        );
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
