//! Prints what the models of each lock reach, and what they do not, as plain text of
//! 72 columns.

use locklab_document::page::wrapped;
use locklab_document::{Column, Table, render};
use locklab_verify::{LockResult, Share};
use std::fmt::Write;

/// Returns one line a lock, then what is not reached, then the values of its words.
pub(super) fn coverage(locks: &[LockResult]) -> String {
    let of = |share: Share| format!("{}/{}", share.reached, share.of);
    // Of a lock of the user's own they are not noted.
    let branches = |share: Share| match share.of {
        0 => "-".to_owned(),
        _ => of(share),
    };
    let rows = locks.iter().map(|lock| {
        let covered = &lock.covered;
        let unexplained = covered.holes.iter().filter(|hole| hole.because.is_none());
        vec![
            lock.name.clone(),
            of(covered.calls),
            of(covered.operations),
            of(covered.both_ways),
            branches(covered.branches),
            unexplained.count().to_string(),
        ]
    });
    let columns = vec![
        Column::words("coverage of", 20),
        Column::new("calls", 6),
        Column::new("operations", 10),
        Column::new("both ways", 9),
        Column::new("branches", 8),
        Column::new("unexplained", 11),
    ];
    let table = Table::new(columns, rows.collect());
    let mut text = format!("\n{}", render::table(&table));
    let mut line = |part: std::fmt::Arguments<'_>| {
        text.write_fmt(part).expect("a String grows");
        text.push('\n');
    };
    line(format_args!(
        "calls: with each answer. operations: of the lock's source. both ways:\n\
         compare-and-swaps that succeed and fail, waits that wait and do not.\n\
         branches: of the source; conditions that are true and false."
    ));
    for lock in locks {
        for hole in &lock.covered.holes {
            let because = hole.because.unwrap_or("not known");
            let reason = format!("never {}: {because}", hole.what);
            line(format_args!(
                "\n{}, {}: {}",
                lock.name, hole.line, hole.source
            ));
            line(format_args!("{}", wrapped("    ", &reason)));
        }
    }
    for lock in locks {
        if lock.covered.values.is_empty() {
            continue;
        }
        line(format_args!("\nvalues of {}", lock.name));
        for (name, values) in &lock.covered.values {
            line(format_args!(
                "{}",
                wrapped("    ", &format!("{name}: {values}"))
            ));
        }
    }
    text
}
