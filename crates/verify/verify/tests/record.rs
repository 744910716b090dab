//! Tests what a run writes for the next: the record of each lock, and the tables of
//! results/verification.md.

use locklab_verify::record::{HEADER, Record, lines, read, recorded};
use locklab_verify::{
    Change, Checker, Count, Covered, LockResult, MutantKind, Mutation, Part, Place, PropertyResult,
    Reads, Survivor, Verdict, markdown, names, properties_of,
};

fn lock(outcome: Verdict) -> LockResult {
    let explored = PropertyResult {
        name: "exclusion",
        checker: Checker::Loom,
        threads: 3,
        preemptions: Some(3),
        executions: 70,
        seconds: 0.5,
        outcome,
        left_out: Vec::new(),
        schedules: 0,
        reads: Reads::One,
        failure: None,
        trace: Vec::new(),
    };
    let drawn = PropertyResult {
        checker: Checker::Shuttle,
        outcome: Verdict::Passes,
        executions: 9,
        preemptions: None,
        ..explored.clone()
    };
    LockResult {
        name: "mcs".into(),
        sources: vec![("mcs.rs".into(), 0xbeef)],
        covered: Covered::default(),
        executions: 79,
        seconds: 1.0,
        properties: vec![explored, drawn],
        mutants: Some(5),
        killed: Some(5),
        orderings: Count::default(),
        structure: Count::default(),
        planted: Count::default(),
        survivors: Vec::new(),
        argued: Vec::new(),
        dead: Vec::new(),
    }
}

#[test]
fn what_is_written_is_read() {
    let record = Record {
        name: "mcs".into(),
        promises: 1,
        preemptions: Some(3),
        executions: 70,
        schedules: 9,
        mutants: 5,
        killed: 5,
        argued: 0,
        sources: vec![("mcs.rs".into(), 0xbeef)],
    };
    assert_eq!(record.stale(), Some("mcs.rs"));
    assert_eq!(read(&lines("", &[lock(Verdict::Holds)])), [record]);
}

#[test]
fn lines_of_other_locks_stay() {
    let ticket = LockResult {
        name: "ticket".into(),
        ..lock(Verdict::Holds)
    };
    let before = lines("", &[lock(Verdict::Holds), ticket]);
    let names =
        |text: &str| -> Vec<String> { read(text).into_iter().map(|record| record.name).collect() };
    assert_eq!(names(&before), ["ticket", "mcs"]);
    assert_eq!(names(&lines(&before, &[lock(Verdict::Cut)])), ["ticket"]);
    assert_eq!(lines(&before, &[lock(Verdict::Holds)]), before);
}

/// Whoever changes the code of a lock runs `locklab verify --mutants LOCK
/// --record crates/verify/verify/verified.tsv`.
#[test]
fn the_record_is_of_this_source() {
    let text = include_str!("../verified.tsv");
    assert!(text.starts_with(HEADER), "verified.tsv has other columns");
    let recorded = recorded();
    assert_eq!(
        recorded.len() + 1,
        text.lines().count(),
        "a line is unreadable"
    );
    let of: Vec<&str> = recorded.iter().map(|record| &*record.name).collect();
    assert_eq!(of, names(), "every lock has its line");
    for record in &recorded {
        let name = &record.name;
        let properties = properties_of(name).expect("a lock");
        assert_eq!(record.killed + record.argued, record.mutants, "{name}");
        assert!(!record.sources.is_empty(), "{name}");
        assert_eq!(record.promises, properties.len(), "promises of {name}");
        assert_eq!(record.stale(), None, "{name} has changed since");
    }
}

#[test]
fn what_was_cut_is_not_recorded() {
    for outcome in [Verdict::Cut, Verdict::Fails] {
        assert_eq!(lines("", &[lock(outcome)]), HEADER);
    }
}

fn lock_with_reason(name: &str, because: &str) -> LockResult {
    LockResult {
        name: name.into(),
        argued: vec![Survivor {
            bug: None,
            line: "a.rs:1:1".into(),
            source: "a(|b| c)".into(),
            weakened: "write left out".into(),
            kind: MutantKind::Structure,
            seconds: 0.0,
            decided: true,
            because: Some(because.into()),
        }],
        ..lock(Verdict::Holds)
    }
}

#[test]
fn a_run_replaces_its_own_rows() {
    let text = markdown(
        "# Title\n",
        &[
            lock_with_reason("mcs", "one"),
            lock_with_reason("tas", "two"),
        ],
    );
    assert!(text.starts_with("# Title\n\n| lock | bug |"), "{text}");
    assert!(text.contains("`a(\\|b\\| c)`"), "{text}");
    let tas = text.find("| two |").expect("a row");
    assert!(tas < text.find("| one |").expect("a row"), "{text}");
    let again = markdown(
        &(text.clone() + "After.\n"),
        &[lock_with_reason("mcs", "three")],
    );
    assert_eq!(again, text.replace("| one |", "| three |") + "After.\n");
}

#[test]
fn a_mutant_crosses_a_process_boundary() {
    let mutation = Mutation {
        place: Place {
            file: "src/a.rs",
            line: 3,
            column: 7,
        },
        change: Change::Weaken {
            part: Part::Store,
            from: 2,
            to: 0,
        },
    };
    let text = serde_json::to_string(&mutation).unwrap();
    assert_eq!(serde_json::from_str::<Mutation>(&text).unwrap(), mutation);
    assert_eq!(mutation.to_string(), "a.rs:3:7 (store): Release -> Relaxed");
}

/// Each says of which locks and of which line of the source it is.
#[test]
fn every_reason_has_its_five_fields_and_its_line() {
    for reason in include_str!("../argued.tsv").lines().skip(1) {
        let fields: Vec<&str> = reason.split('\t').collect();
        let &[locks, file, part, _, _] = &fields[..] else {
            panic!("not five fields: {reason}");
        };
        for lock in locks.split(' ') {
            assert!(names().contains(&lock), "no lock is called {lock}");
        }
        let text = ["locks", "library-models", "platform", "pthread-protocols"]
            .iter()
            .find_map(|folder| std::fs::read_to_string(format!("{folder}/{file}")).ok())
            .unwrap_or_else(|| panic!("no source file is called {file}"));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let mut pairs = lines.windows(2).map(|pair| pair.join(" "));
        assert!(
            pairs.any(|pair| pair.contains(part)),
            "{file} has no line with {part}"
        );
    }
}
