//! Tests of the section on locks.

use super::*;
use crate::golden::golden;
use crate::outcome::sample;
use crate::workload::{Workload, cell_key};
use locklab_document::Document;
use locklab_document::render::{self, Colour};
use locklab_harness::experiment::{Order, Pair};

fn run(waits: &[(&str, u64, u64)], translated: bool) -> Sample {
    let lock = |&(name, waits, nanoseconds): &(&str, u64, u64)| LockWaits {
        name: name.into(),
        kind: "SPIN".into(),
        locks: 1,
        waits,
        nanoseconds,
        longest: nanoseconds,
    };
    let measured = Measured {
        locks: Some(LockProfile {
            locks: waits.iter().map(lock).collect(),
            lost: 2,
            unmatched: 0,
        }),
        ..sample(1).unwrap()
    };
    let load = Load::new(Workload::Fstat);
    Sample {
        detail: json!({KEY: detail(&load, Ok(measured), translated)}),
        ..Sample::default()
    }
}

fn cell(translated: bool) -> Cell {
    let mut cell = Cell::new(cell_key(&Load::new(Workload::Fstat), ""), Vec::new());
    let both = [("files_lock", 10, 4_000_u64)];
    for index in 0..2 {
        let mut more = both.to_vec();
        if index == 1 {
            more.push(("in pipe_read", 1, 12_000));
        }
        cell.pairs.push(Pair {
            index,
            order: Order::Together,
            baseline: run(&both, translated),
            experiment: run(&more, translated),
        });
    }
    cell
}

fn text_of(section: Section) -> String {
    let mut document = Document::default();
    document.push(section);
    render::text(&document, Colour::Plain)
}

#[test]
fn a_lock_stands_in_the_pairs_in_which_it_was_waited_for() {
    let text = text_of(section(&cell(false)).unwrap());
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("10.0 100 % 400 ns all"), "{text}");
    assert!(text.contains("10.0 40 % 400 ns all"), "{text}");
    // It was waited for in the second pair of the experiment only.
    assert!(text.contains("0.50 60 % 12.0 µs #2"), "{text}");
    assert!(text.contains("8 events found no room"), "{text}");
}

#[test]
fn a_translator_has_counts_and_shares_and_no_times() {
    let text = text_of(section(&cell(true)).unwrap());
    assert!(
        text.contains("translator") && !text.contains(" ns"),
        "{text}"
    );
    assert!(text.contains("40 %"), "{text}");
    let side = document(&profiled(&run(&[("x", 1, 5)], true)).unwrap());
    assert_eq!(side["locks"][0]["waited_ns"], Value::Null);
    assert_eq!(side["locks"][0]["share"], 1.0);
}

#[test]
fn the_waits_of_a_boot_are_a_golden_file() {
    let lock = |name: &str, kind: &str, [locks, waits, nanoseconds, longest]: [u64; 4]| LockWaits {
        name: name.into(),
        kind: kind.into(),
        locks,
        waits,
        nanoseconds,
        longest,
    };
    let measured = Measured {
        locks: Some(LockProfile {
            locks: vec![
                lock("files_lock", "SPIN", [1, 1200, 4_800_000, 91_000]),
                lock("in pipe_read", "MUTEX", [16, 40, 1_200_000, 310_000]),
            ],
            lost: 2,
            unmatched: 3,
        }),
        ..sample(1).unwrap()
    };
    let load = Load::new(Workload::Fstat);
    let both = [false, true].map(|translated| text(&load, &measured, translated));
    assert!(
        both.iter()
            .flat_map(|text| text.lines())
            .all(|line| line.chars().count() <= 72)
    );
    golden("lock-waits.txt", &both.join("\n"));
    golden(
        "lock-waits-compared.txt",
        &text_of(section(&cell(false)).unwrap()),
    );
}

#[test]
fn what_was_not_profiled_has_no_section_and_what_failed_says_why() {
    let mut cell = cell(false);
    for pair in &mut cell.pairs {
        pair.baseline = Sample::default();
        pair.experiment = Sample {
            detail: json!({KEY: detail(
                &Load::new(Workload::Fstat),
                Err("it panicked".into()),
                false
            )}),
            ..Sample::default()
        };
    }
    let text = text_of(section(&cell).unwrap());
    assert!(text.contains("2 of the profiled runs failed; the first failed because it panicked"));
    cell.pairs.clear();
    assert!(section(&cell).is_none());
}
