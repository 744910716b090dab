//! The bugs that have a name, and the mutants that break no promise, as the
//! two Markdown tables of results/verification.md.
//!
//! A run replaces the rows of its own locks and leaves the others: the tables
//! are a record, written by `locklab verify --mutants --bugs`, never by hand.

use crate::candidate;
use crate::planted;
use crate::result::LockResult;
use std::collections::BTreeSet;

/// The head of the table of bugs.
pub const BUGS: &str = "| lock | bug | broken promise | how |\n| --- | --- | --- | --- |\n";
const ARGUED: &str =
    "| lock | source | mutant | why no promise breaks |\n| --- | --- | --- | --- |\n";

/// Is printed where nobody knows why a mutant breaks no promise.
const NOT_KNOWN: &str = "**not known**";

/// Returns `before` with these locks' rows in the place of their old ones, in a table
/// of the bugs and one of the mutants that break no promise. Locks whose
/// mutants were not tried keep what they have.
pub fn markdown(before: &str, locks: &[LockResult]) -> String {
    let tried: Vec<&LockResult> = locks.iter().filter(|lock| lock.mutants.is_some()).collect();
    let bugs = tried.iter().flat_map(|lock| rows_of_bugs(lock)).collect();
    let argued = tried
        .iter()
        .flat_map(|lock| rows_of_survivors(lock))
        .collect();
    let text = with_rows(before, BUGS, &tried, bugs);
    with_rows(&text, ARGUED, &tried, argued)
}

fn row(cells: [&str; 4]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

fn rows_of_bugs(lock: &LockResult) -> Vec<String> {
    planted::names(&lock.name)
        .map(|bug| {
            let dead = lock
                .dead
                .iter()
                .find(|dead| dead.bug.as_deref() == Some(bug));
            match dead {
                Some(dead) => row([&lock.name, bug, &dead.by, &short(&dead.how)]),
                None => row([&lock.name, bug, "none", &why(lock, bug)]),
            }
        })
        .collect()
}

fn rows_of_survivors(lock: &LockResult) -> Vec<String> {
    let survivors = lock.argued.iter().chain(&lock.survivors);
    survivors
        .map(|survivor| {
            let source = format!("`{}`", survivor.source);
            let why = survivor.because.as_deref().unwrap_or(NOT_KNOWN);
            row([&lock.name, &source, &survivor.weakened, why])
        })
        .collect()
}

/// Returns the lock of a row.
fn lock_of(row: &str) -> &str {
    row.trim_start_matches("| ")
        .split(" |")
        .next()
        .unwrap_or("")
}

/// Returns the rows below `head` in `text`, and where they are.
fn rows<'a>(text: &'a str, head: &str) -> Option<(usize, usize, Vec<&'a str>)> {
    let begin = text.find(head)? + head.len();
    let rows: Vec<&str> = text[begin..]
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('|'))
        .collect();
    let end = begin + rows.iter().map(|row| row.len()).sum::<usize>();
    Some((begin, end, rows))
}

fn with_rows(text: &str, head: &str, locks: &[&LockResult], new: Vec<String>) -> String {
    let (before, old, after) = match rows(text, head) {
        Some((begin, end, old)) => (text[..begin].to_owned(), old, &text[end..]),
        None if text.is_empty() => (head.to_owned(), Vec::new(), ""),
        None => (format!("{text}\n{head}"), Vec::new(), ""),
    };
    let replaced: BTreeSet<&str> = locks.iter().map(|lock| lock.name.as_str()).collect();
    let old = old
        .into_iter()
        .filter(|row| !replaced.contains(lock_of(row)));
    let mut all: Vec<String> = old.map(str::to_owned).chain(new).collect();
    let names = candidate::names();
    all.sort_by_key(|row| names.iter().position(|name| *name == lock_of(row)));
    format!("{before}{}{after}", all.concat())
}

/// Returns it without what differs from run to run or from machine to machine, without
/// places, which move, and without the words of Rust's assertions.
fn short(how: &str) -> String {
    let ends = [
        " at crates/",
        " at planted.rs:",
        " (address",
        " (thread caused",
        ", the last at ",
        ", after ",
    ];
    let end = ends.iter().filter_map(|end| how.find(end)).min();
    let how = &how[..end.unwrap_or(how.len())];
    match how.split_once("` failed: ") {
        _ if how.starts_with("index out of bounds") => "an index is beyond its array".into(),
        _ if how.starts_with("attempt to subtract") => "a count goes below zero".into(),
        Some((compared, why)) if compared.starts_with("assertion ") => why.to_owned(),
        _ => how.to_owned(),
    }
}

fn why(lock: &LockResult, bug: &str) -> String {
    lock.argued
        .iter()
        .find(|survivor| survivor.bug.as_deref() == Some(bug))
        .and_then(|survivor| survivor.because.clone())
        .unwrap_or_else(|| NOT_KNOWN.into())
}

#[cfg(test)]
#[path = "../tests/unit/bugs.rs"]
mod tests;
