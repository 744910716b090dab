//! Measures how near a simulated program comes to itself, for programs that are drawn
//! from seeds: `cargo build --release -p locklab`, then `cargo run --release -p
//! locklab-validation --bin drawn_programs -- [--locklab FILE] [--from SEED] [--to
//! SEED]`, on an idle machine. It prints the table of results/programs.md.
//!
//! Each program really runs and is recorded; `advise` simulates it under its own lock. It ends
//! with 1 if a simulation failed, or fewer than nine of ten rates are within 15 %.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The part by which a simulated rate may be off.
const NEAR: f64 = 0.15;
/// The rounds of each thread. With these a program runs for a tenth of a second to one; of
/// shorter ones two runs differ by more than [`NEAR`].
const ROUNDS: u32 = 40_000;
/// The part of the programs that is asked for.
const ASKED: f64 = 0.9;

fn main() -> Result<ExitCode, String> {
    let (mut locklab, mut from, mut to) = ("target/release/locklab".to_owned(), 1_u32, 100_u32);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("'{value}' is no seed"));
        match word.as_str() {
            "--locklab" => locklab = value,
            "--from" => from = number()?,
            "--to" => to = number()?,
            _ => return Err(format!("there is no option {word}")),
        }
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let program = folder.path().join("drawn");
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/programs/advise/tests/c/drawn.c");
    let mut compile = Command::new("gcc");
    compile
        .args(["-O2", "-pthread", "-o"])
        .args([&program, &source]);
    run(&mut compile)?;
    let (mut near, mut all, mut failed) = (0, 0, 0);
    println!("seed\twaits\tsimulated / recorded");
    for seed in from..=to {
        let file = folder.path().join("trace");
        let mut record = Command::new(&locklab);
        record.args(["record", "-q", "-o"]).arg(&file).arg("--");
        run(record
            .arg(&program)
            .args([seed.to_string(), ROUNDS.to_string()]))?;
        let mut advise = Command::new(&locklab);
        advise.args(["advise", "-q", "--json", "--no-replay", "--draws", "2"]);
        advise.args(["--locks", "futex-adaptive"]).arg(&file);
        let answer: Value = match run(&mut advise).map(|text| serde_json::from_str(&text)) {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Err(format!("seed {seed}: {why}")),
            Err(why) => {
                println!("{seed}\t-\tfailed: {why}");
                failed += 1;
                continue;
            }
        };
        let waits = answer["recorded"]["waiting_share"].as_f64().unwrap_or(0.0);
        let waits = format!("{:.1} %", 100.0 * waits);
        match (&answer["gate"], answer["gate"]["ratio"].as_f64()) {
            (_, Some(ratio)) => {
                all += 1;
                near += u32::from((ratio - 1.0).abs() <= NEAR);
                println!("{seed}\t{waits}\t{ratio:.2}");
            }
            (Value::Null, _) => println!("{seed}\t{waits}\tnothing to gain"),
            (gate, None) => {
                println!("{seed}\t{waits}\tfailed: {}", gate["why"]);
                failed += 1;
            }
        }
    }
    println!("{near} of {all} within {NEAR}; {failed} failed");
    let good = failed == 0 && f64::from(near) >= ASKED * f64::from(all);
    Ok(ExitCode::from(u8::from(!good)))
}

/// Runs a command; returns what it printed.
fn run(command: &mut Command) -> Result<String, String> {
    let out = command
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| format!("{command:?}: {e}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
    }
}
