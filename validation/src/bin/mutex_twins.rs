//! Compares mutexes of libraries with those of the catalogue that are written from their
//! descriptions, side by side on this machine, and prints the table of results/mutexes.md:
//! `cargo build --release -p locklab`, then `cargo run --release -p locklab-validation --bin
//! mutex_twins -- [--locklab FILE] [--seconds N]`, on an idle machine.
//!
//! It ends with 1 where the two differ by more than 5 % with one thread or 10 % with 2 or 4.

use locklab_host::environment::Environment;
use serde_json::Value;
use std::process::{Command, ExitCode};

/// The library's mutex, and ours.
const TWINS: [[&str; 2]; 4] = [
    ["std", "std-mutex"],
    ["parking_lot", "parkinglot-mutex"],
    ["pthread", "futex"],
    ["pthread-adaptive", "glibc-adaptive"],
];
const LENGTHS: [&str; 4] = ["--critical", "1", "--non-critical", "32"];

/// Returns by how much the two may differ with so many threads.
fn allowed(threads: u64) -> f64 {
    if threads == 1 { 0.05 } else { 0.10 }
}

fn main() -> Result<ExitCode, String> {
    let mut locklab = "target/release/locklab".to_owned();
    let mut seconds = "20".to_owned();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--locklab" => locklab = value,
            "--seconds" => seconds = value,
            _ => return Err(format!("there is no option {word}")),
        }
    }
    println!("{}\n", Environment::read().name());
    println!("| library's | ours | threads | ours over the library's | within |");
    println!("| --- | --- | --- | --- | --- |");
    let mut all_agree = true;
    for [theirs, ours] in TWINS {
        let mut asked = vec!["matrix", theirs, ours, "--threads", "1,2,4"];
        asked.extend(LENGTHS);
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
                "| `{theirs}` | `{ours}` | {threads} | {ratio:.2}{interval} | {} |",
                if agrees { "yes" } else { "no" }
            );
        }
    }
    Ok(match all_agree {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
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
    fn one_thread_is_held_to_less_than_several() {
        assert_eq!([1, 2, 4].map(allowed), [0.05, 0.10, 0.10]);
        let cells = cells("/nowhere", &["matrix"]);
        assert!(cells.unwrap_err().starts_with("/nowhere cannot be run"));
    }
}
