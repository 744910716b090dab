//! Compares locks of libraries with those of the catalogue that are written from their
//! descriptions, side by side on this machine, and prints the table of results/mutexes.md:
//! `cargo build --release -p locklab`, then `cargo run --release -p locklab-validation --bin
//! mutex_twins -- [--locklab FILE] [--seconds N] [--only LOCK,...]`, on an idle machine.
//!
//! It ends with 1 where the two differ by more than 5 % with one thread or 10 % with 2 or 4.

use locklab_host::environment::Environment;
use serde_json::Value;
use std::process::{Command, ExitCode};

/// The library's lock, ours, and the percentages of acquisitions that read.
const TWINS: [(&str, &str, &[&str]); 8] = [
    ("std", "std-mutex", &["0"]),
    ("parking_lot", "parkinglot-mutex", &["0"]),
    ("pthread", "futex", &["0"]),
    ("pthread-adaptive", "glibc-adaptive", &["0"]),
    ("std-rwlock", "std-rw", READS),
    ("parking_lot-rwlock", "parkinglot-rw", READS),
    ("pthread-rwlock", "glibc-rw", READS),
    ("pthread-rwlock-w", "glibc-rw-w", READS),
];
/// Half of them, and almost all.
const READS: &[&str] = &["50", "95"];
const LENGTHS: [&str; 4] = ["--critical", "1", "--non-critical", "32"];

/// Returns by how much the two may differ with so many threads.
fn allowed(threads: u64) -> f64 {
    if threads == 1 { 0.05 } else { 0.10 }
}

fn main() -> Result<ExitCode, String> {
    let mut locklab = "target/release/locklab".to_owned();
    let mut seconds = "20".to_owned();
    let mut only: Option<String> = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--locklab" => locklab = value,
            "--seconds" => seconds = value,
            "--only" => only = Some(value),
            _ => return Err(format!("there is no option {word}")),
        }
    }
    println!("{}\n", Environment::read().name());
    println!("| library's | ours | reads | threads | ours over the library's | within |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut all_agree = true;
    for (theirs, ours, reads) in asked_for(only.as_deref())? {
        let mut asked = vec!["matrix", theirs, ours, "--threads", "1,2,4"];
        asked.extend(LENGTHS);
        asked.extend(["--reads", reads]);
        asked.extend([
            "--time", &seconds, "--json", "--quiet", "--store", ":memory:",
        ]);
        for cell in cells(&locklab, &asked)? {
            let number = |key: &str| cell[key].as_f64();
            let threads = cell["threads"].as_u64().ok_or("a cell without threads")?;
            let ratio = number("ratio").ok_or("a cell without a ratio")?;
            let agrees = (ratio - 1.0).abs() <= allowed(threads);
            all_agree &= agrees;
            let interval = match (number("ratio_low"), number("ratio_high")) {
                (Some(low), Some(high)) => format!(" [{low:.2}, {high:.2}]"),
                _ => String::new(),
            };
            println!(
                "| `{theirs}` | `{ours}` | {reads} % | {threads} | {ratio:.2}{interval} | {} |",
                if agrees { "yes" } else { "no" }
            );
        }
    }
    Ok(match all_agree {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns the pairs, once for each percentage of reads: all, or those of the libraries' locks
/// that are named.
fn asked_for(
    only: Option<&str>,
) -> Result<Vec<(&'static str, &'static str, &'static str)>, String> {
    let named: Option<Vec<&str>> = only.map(|names| names.split(',').collect());
    let is_unknown = |name: &&&str| !TWINS.iter().any(|(theirs, ..)| *theirs == **name);
    if let Some(name) = named.iter().flatten().find(is_unknown) {
        return Err(format!(
            "--only {name}: no library's lock here is called so"
        ));
    }
    let is_asked = |theirs: &str| named.as_ref().is_none_or(|names| names.contains(&theirs));
    let pairs = TWINS.iter().filter(|(theirs, ..)| is_asked(theirs));
    Ok(pairs
        .flat_map(|(theirs, ours, reads)| reads.iter().map(|reads| (*theirs, *ours, *reads)))
        .collect())
}

fn cells(locklab: &str, asked: &[&str]) -> Result<Vec<Value>, String> {
    let output = Command::new(locklab)
        .args(asked)
        .output()
        .map_err(|e| format!("{locklab} cannot be run: {e}; build it, or give --locklab FILE"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("locklab {}: {said}", asked.join(" ")));
    }
    let json: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let cells = json["cells"].as_array().ok_or("a matrix without cells")?;
    Ok(cells.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_that_readers_share_are_asked_twice() {
        assert_eq!(asked_for(None).unwrap().len(), 12);
        let one = asked_for(Some("std-rwlock,std")).unwrap();
        let reads: Vec<&str> = one.iter().map(|(.., reads)| *reads).collect();
        assert_eq!(reads, ["0", "50", "95"]);
        assert!(asked_for(Some("std,sdt")).unwrap_err().contains("sdt"));
    }

    #[test]
    fn one_thread_is_held_to_less_than_several() {
        assert_eq!([1, 2, 4].map(allowed), [0.05, 0.10, 0.10]);
        let cells = cells("/nowhere", &["matrix"]);
        assert!(cells.unwrap_err().starts_with("/nowhere cannot be run"));
    }
}
