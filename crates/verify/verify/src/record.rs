//! Keeps what the last complete run found with the source: one line a lock.
//!
//! `locklab locks` says from it how a lock is verified; a test compares it
//! with the promises and the code that the source has now. Written by
//! `locklab verify --mutants --record`, never by hand.

use crate::result::{Checker, LockResult, Verdict};
use crate::{candidate, run, source};
use std::fmt::Write;

/// Tells how a lock has been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Name of the lock.
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
    /// Mutants: weakened orderings, changed operations, planted bugs.
    pub mutants: usize,
    /// Counts those of them that break a promise.
    pub killed: usize,
    /// Counts those that break none, for a reason that is known.
    pub argued: usize,
    /// The source files, each with a hash of its code.
    pub sources: Vec<(String, u64)>,
}

impl Record {
    /// Returns a source file whose code is not what it was when the lock was
    /// verified.
    pub fn stale(&self) -> Option<&str> {
        let stale = self
            .sources
            .iter()
            .find(|(name, hash)| source::fingerprint_of(name) != Some(*hash))?;
        Some(&stale.0)
    }

    /// Returns whether it is of the code and of the promises that the lock has now.
    pub fn is_current(&self) -> bool {
        let promises = run::properties_of(&self.name).map(|properties| properties.len());
        self.stale().is_none() && promises == Some(self.promises)
    }
}

/// The first line of a record: what its columns are.
pub const HEADER: &str =
    "lock\tpromises\tleast bound\texecutions\trandom schedules\tmutants\tkilled\targued\tsources\n";

/// Returns the record `before` with the lines for these results in the place of
/// theirs. A lock with a promise that is broken or was cut, or whose mutants
/// were not tried, has none.
pub fn lines(before: &str, results: &[LockResult]) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    if let Some(kept) = before.strip_prefix(HEADER) {
        let named = |line: &str| {
            (
                line.split('\t').next().unwrap_or("").to_owned(),
                format!("{line}\n"),
            )
        };
        lines.extend(kept.lines().map(named));
    }
    for lock in results {
        lines.retain(|(name, _)| *name != lock.name);
        lines.extend(line(lock).map(|line| (lock.name.clone(), line)));
    }
    let names = candidate::names();
    lines.sort_by_key(|(name, _)| names.iter().position(|known| known == name));
    let lines: String = lines.into_iter().map(|(_, line)| line).collect();
    format!("{HEADER}{lines}")
}

fn line(lock: &LockResult) -> Option<String> {
    let (mutants, killed) = (lock.mutants?, lock.killed?);
    // A lock of the user's own is in no record.
    let ours = candidate::names().contains(&&*lock.name);
    if !ours || !lock.holds() || !lock.is_complete() {
        return None;
    }
    let mut text = String::new();
    {
        let explored = || {
            lock.properties
                .iter()
                .filter(|p| p.checker != Checker::Shuttle)
        };
        let drawn = lock
            .properties
            .iter()
            .filter(|p| p.checker == Checker::Shuttle && p.outcome == Verdict::Passes);
        let sources: Vec<String> = lock
            .sources
            .iter()
            .map(|(name, hash)| format!("{name}:{hash:016x}"))
            .collect();
        let bound = explored().filter_map(|p| p.preemptions).min();
        writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{mutants}\t{killed}\t{}\t{}",
            lock.name,
            explored().count(),
            bound.map_or_else(|| "any".to_owned(), |bound| bound.to_string()),
            explored().map(|p| p.executions).sum::<u64>(),
            drawn.map(|p| p.executions).sum::<u64>(),
            lock.argued.len(),
            sources.join(" "),
        )
        .expect("a String grows");
    }
    Some(text)
}

/// Returns what the run found whose lines came with this source.
pub fn recorded() -> Vec<Record> {
    read(include_str!("../verified.tsv"))
}

/// Returns the records that `text` has, which [`lines`] wrote.
pub fn read(text: &str) -> Vec<Record> {
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
                argued: next()?.parse().ok()?,
                sources: next()?
                    .split(' ')
                    .filter_map(|source| {
                        let (name, hash) = source.split_once(':')?;
                        Some((name.to_owned(), u64::from_str_radix(hash, 16).ok()?))
                    })
                    .collect(),
            })
        })
        .collect()
}
