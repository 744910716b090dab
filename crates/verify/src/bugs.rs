//! The bugs that have a name, and the mutants that break no promise, as
//! Markdown: two tables of docs/verification.md.

use crate::planted;
use crate::result::LockResult;
use std::fmt::Write;

/// One line a bug: the lock, the bug, the promise that it breaks; then one
/// line a mutant that breaks none, and why. Of locks whose mutants were
/// tried.
pub fn markdown(locks: &[LockResult]) -> String {
    let mut text =
        String::from("| lock | bug | broken promise | how |\n| --- | --- | --- | --- |\n");
    let mut line = |part: std::fmt::Arguments<'_>| {
        text.write_fmt(part).expect("a String grows");
        text.push('\n');
    };
    for lock in locks {
        for name in planted::names(&lock.name) {
            let dead = lock
                .dead
                .iter()
                .find(|dead| dead.bug.as_deref() == Some(name));
            let (by, how) = match dead {
                Some(dead) => (dead.by.as_str(), short(&dead.how)),
                None if lock.mutants.is_none() => ("not tried", String::new()),
                None => ("**none**", why(lock, name)),
            };
            line(format_args!("| {} | {name} | {by} | {how} |", lock.name));
        }
    }
    line(format_args!(
        "\n| lock | line | mutant | why no promise breaks |\n| --- | --- | --- | --- |"
    ));
    for lock in locks {
        for survivor in lock.argued.iter().chain(&lock.survivors) {
            line(format_args!(
                "| {} | {} | {} | {} |",
                lock.name,
                survivor.line,
                survivor.weakened,
                survivor.because.as_deref().unwrap_or("**not known**")
            ));
        }
    }
    text
}

/// Without what differs from run to run or from machine to machine.
fn short(how: &str) -> String {
    let end = how.find(" at crates/").or_else(|| how.find(" (address"));
    how[..end.unwrap_or(how.len())].replace('|', "/")
}

fn why(lock: &LockResult, bug: &str) -> String {
    lock.argued
        .iter()
        .find(|survivor| survivor.bug.as_deref() == Some(bug))
        .and_then(|survivor| survivor.because.clone())
        .unwrap_or_else(|| "not known".into())
}
