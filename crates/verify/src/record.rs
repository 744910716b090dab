//! What the last complete run found, kept with the source: one line a lock.
//!
//! `locklab locks` says from it how a lock is verified; a test compares it
//! with the orderings that the source has now. Written by `locklab verify
//! --mutants --record`, never by hand.

use crate::verify::{Checker, LockResult, Verdict};
use std::fmt::Write;

/// How a lock has been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The lock.
    pub name: String,
    /// Promises explored to the end, within a bound that is not below
    /// `preemptions`.
    pub promises: usize,
    /// The least bound on preemptions among them; `None`: none has one.
    pub preemptions: Option<usize>,
    /// Executions of all promises.
    pub executions: u64,
    /// Random schedules of eight threads.
    pub schedules: u64,
    /// One-step weakenings of its orderings.
    pub mutants: usize,
    /// How many of them break a promise.
    pub killed: usize,
}

const HEADER: &str = "lock\tpromises\tleast bound\texecutions\trandom schedules\tmutants\tkilled\n";

/// The lines for these results. A lock with a promise that is broken or was
/// cut, or whose mutants were not tried, has none.
pub fn lines(results: &[LockResult]) -> String {
    let mut text = HEADER.to_owned();
    for lock in results {
        let (Some(mutants), Some(killed)) = (lock.mutants, lock.killed) else {
            continue;
        };
        if !lock.holds() || !lock.is_complete() {
            continue;
        }
        let explored = || {
            lock.properties
                .iter()
                .filter(|p| p.checker == Checker::Loom)
        };
        let drawn = lock
            .properties
            .iter()
            .filter(|p| p.outcome == Verdict::Passes);
        let bound = explored().filter_map(|p| p.preemptions).min();
        writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{mutants}\t{killed}",
            lock.name,
            explored().count(),
            bound.map_or_else(|| "any".to_owned(), |bound| bound.to_string()),
            explored().map(|p| p.executions).sum::<u64>(),
            drawn.map(|p| p.executions).sum::<u64>(),
        )
        .expect("a String grows");
    }
    text
}

/// What the run found whose lines came with this source.
pub fn recorded() -> Vec<Record> {
    read(include_str!("../verified.tsv"))
}

fn read(text: &str) -> Vec<Record> {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next();
            Some(Record {
                name: next()?.to_owned(),
                promises: next()?.parse().ok()?,
                preemptions: next()?.parse().ok(),
                executions: next()?.parse().ok()?,
                schedules: next()?.parse().ok()?,
                mutants: next()?.parse().ok()?,
                killed: next()?.parse().ok()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::PropertyResult;

    fn lock(outcome: Verdict) -> LockResult {
        let explored = PropertyResult {
            name: "exclusion",
            checker: Checker::Loom,
            threads: 3,
            preemptions: Some(3),
            executions: 70,
            seconds: 0.5,
            outcome,
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
            executions: 79,
            properties: vec![explored, drawn],
            mutants: Some(5),
            killed: Some(5),
            survivors: Vec::new(),
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
        };
        assert_eq!(read(&lines(&[lock(Verdict::Holds)])), [record]);
    }

    #[test]
    fn what_was_cut_is_not_recorded() {
        for outcome in [Verdict::Cut, Verdict::Fails] {
            assert_eq!(lines(&[lock(outcome)]), HEADER);
        }
    }
}
