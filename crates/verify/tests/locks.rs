//! Every lock of the catalogue keeps its promises, and asks for no ordering
//! in vain, as far as the limits of a test reach. `locklab verify` goes on
//! from there.

use locklab_locks::catalogue;
use locklab_verify::{LockResult, Options, UnknownLock, verify};
use std::time::Duration;

fn check(names: &[&str], mutants: bool, executions: u64) -> Vec<LockResult> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let options = Options {
        mutants,
        executions,
        duration: Duration::MAX,
        ..Options::default()
    };
    verify(&names, options, &|_| ()).expect("the names are the catalogue's")
}

#[test]
fn every_lock_keeps_its_promises() {
    let names: Vec<&str> = catalogue::ALL.iter().map(|entry| entry.info.name).collect();
    for lock in check(&names, false, 1_000) {
        assert!(lock.holds(), "{}", locklab_verify::table(&[lock]));
        assert!(lock.executions > 10, "{} is not explored", lock.name);
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

#[test]
fn a_name_that_is_no_lock_is_said_so() {
    let names = ["ticket".to_owned(), "tiket".to_owned()];
    let error = verify(&names, Options::default(), &|_| ()).expect_err("no such lock");
    assert_eq!(error, UnknownLock("tiket".into()));
    assert!(error.to_string().contains("'tiket'"));
}
