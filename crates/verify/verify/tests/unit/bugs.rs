//! Tests of src/bugs.rs, with access to what is private there.

use super::*;
use crate::record::recorded;

#[test]
fn how_a_promise_breaks_is_said_without_what_moves() {
    for (how, said) in [
        (
            "assertion `left == right` failed: not first come, first served",
            "not first come, first served",
        ),
        ("an attempt waits at planted.rs:1897", "an attempt waits"),
        (
            "index out of bounds: the len is 12 but the index is 140318587142080",
            "an index is beyond its array",
        ),
        (
            "deadlock: every thread waits",
            "deadlock: every thread waits",
        ),
    ] {
        assert_eq!(short(how), said);
    }
}

/// Whoever changes a lock or its bugs runs `locklab verify --mutants LOCK
/// --record crates/verify/verify/verified.tsv --bugs results/verification.md`.
#[test]
fn the_tables_are_those_of_the_recorded_runs() {
    let text = include_str!("../../../../../results/verification.md");
    let rows = |head| rows(text, head).expect("the table").2;
    let (bugs, argued) = (rows(BUGS), rows(ARGUED));
    // What has changed since is on the list of the record's own test.
    for record in recorded().iter().filter(|record| record.is_current()) {
        let name = record.name.as_str();
        let of = |rows: &[&str]| rows.iter().filter(|row| lock_of(row) == name).count();
        assert_eq!(of(&argued), record.argued, "mutants of {name} that survive");
        assert_eq!(of(&bugs), planted::names(name).count(), "bugs of {name}");
        for bug in planted::names(name) {
            let begin = row([name, bug, "", ""]);
            let begin = begin.trim_end_matches("|  |\n").trim_end();
            let is_row = |row: &&str| row.starts_with(begin);
            assert!(bugs.iter().any(is_row), "no row of {name}: {bug}");
        }
    }
    let unknown = bugs
        .iter()
        .chain(&argued)
        .find(|row| row.contains(NOT_KNOWN));
    assert_eq!(unknown, None);
}
