// SPDX-License-Identifier: GPL-2.0-or-later
//! The front-end model against this machine: code whose time is known without counters,
//! natively by the time-stamp counter and in QEMU by the model. A chain of complements, a
//! cycle each, says how many ticks a cycle has.
//!
//! `cargo bench -p locklab-qemu-plugin --bench validation [-- PROCESSOR]`; needs qemu-user and
//! gcc. Without a PROCESSOR the model of this machine's is taken.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use locklab_frontend::Processor;

/// A case, its size, and how often it runs in each part when it is timed.
const CASES: [(&str, u32, u32); 37] = [
    ("jumps", 64, 1000),
    ("jumps", 1024, 60),
    ("jumps", 8192, 8),
    ("jumps", 20_000, 4),
    ("jumps", 65_536, 1),
    ("straight", 4, 1000),
    ("straight", 24, 200),
    ("straight", 64, 60),
    ("straight", 512, 8),
    ("straight", 4096, 1),
    ("calls", 4, 2000),
    ("calls", 8, 1000),
    ("calls", 24, 400),
    ("calls", 64, 200),
    ("calls", 200, 100),
    ("padded", 8, 300),
    ("padded", 16, 300),
    ("padded", 32, 300),
    ("padded", 64, 300),
    ("bursts", 16, 300),
    ("bursts", 64, 300),
    ("bursts", 256, 300),
    ("split", 0, 1000),
    ("split", 32, 1000),
    ("split", 40, 1000),
    ("split", 56, 1000),
    ("scattered", 64, 1000),
    ("scattered", 2048, 30),
    ("scattered", 8192, 8),
    ("scattered", 32_768, 1),
    ("indirect", 1, 1),
    ("indirect", 2, 1),
    ("indirect", 4, 1),
    ("indirect", 16, 1),
    ("conditional", 0, 1),
    ("conditional", 5, 1),
    ("conditional", 50, 1),
];

/// Jumps between two reads of the time-stamp counter: what they cost beyond the reads.
const BETWEEN: [u32; 9] = [0, 16, 32, 48, 64, 80, 96, 112, 128];

/// Sets how often a case is timed; the fastest counts, for others were interrupted.
const TIMED: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("measures only under `cargo bench`");
        return;
    }
    let named = arguments[1..]
        .iter()
        .find(|argument| !argument.starts_with('-'));
    let Some((name, processor)) = processor(named.map(String::as_str)) else {
        println!(
            "the front end of this processor is not known: name one of {}",
            Processor::names().collect::<Vec<_>>().join(", ")
        );
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("validation");
    fs::create_dir_all(&folder).expect("a folder for the bench");
    let program = folder.join("validation");
    let built = Command::new("gcc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/validation.c"))
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: gcc is missing or fails (apt-get install gcc)");
        return;
    }
    let cycle = timed(&program, "clock", 4000, 10);
    println!(
        "{}: {cycle:.4} ticks of the time-stamp counter in a cycle",
        processor.name
    );
    println!("cycles for each unit of work, natively and modelled (band of the penalties)\n");
    println!("case            size   measured   modelled              band     off");
    let mut within = (0, 0);
    for (case, size, repeats) in CASES {
        let measured = timed(&program, case, size, repeats) / cycle;
        let Some([low, value, high]) = modelled(&folder, &program, name, case, size) else {
            println!("skipped: qemu-x86_64 is missing or fails (apt-get install qemu-user)");
            return;
        };
        let band = format!("{low:.2} to {high:.2}");
        let off = value / measured;
        println!("{case:<12}{size:>8}{measured:>11.2}{value:>11.2}{band:>18}{off:>8.2}");
        within.1 += 1;
        within.0 += u32::from((0.5..=2.0).contains(&off));
    }
    println!("\n{} of {} within a factor of two", within.0, within.1);
    println!("\ncycles from one read of the counter to the next, natively, by the jumps between");
    for jumps in BETWEEN {
        let measured = timed(&program, "reads", jumps, 2000) / cycle;
        println!("reads       {jumps:>8}{measured:>11.2}");
    }
}

/// Returns the processor of this name, or of this machine.
fn processor(name: Option<&str>) -> Option<(&'static str, Processor)> {
    let processor = match name {
        Some(name) => Processor::named(name).ok()?,
        None => {
            let text = fs::read_to_string("/proc/cpuinfo").ok()?;
            let field = |name: &str| {
                let line = text
                    .lines()
                    .find(|line| line.split('\t').next() == Some(name))?;
                Some(line.split(": ").nth(1)?.trim().to_owned())
            };
            let number = |name| field(name)?.parse().ok();
            Processor::identified(
                &field("vendor_id")?,
                number("cpu family")?,
                number("model")?,
            )?
        }
    };
    let name = Processor::names().find(|name| Processor::named(name).as_ref() == Ok(&processor))?;
    Some((name, processor))
}

/// Returns the ticks for each unit of work, natively.
fn timed(program: &PathBuf, case: &str, size: u32, repeats: u32) -> f64 {
    let run = || {
        let output = Command::new(program)
            .args([case, &size.to_string(), &repeats.to_string()])
            .output()
            .expect("it was built");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ticks = text
            .split_whitespace()
            .next()
            .and_then(|ticks| ticks.parse().ok());
        ticks.unwrap_or_else(|| panic!("{case} {size}: {output:?}"))
    };
    (0..TIMED).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Returns the cycles for each unit of work, by the model.
fn modelled(
    folder: &Path,
    program: &PathBuf,
    processor: &str,
    case: &str,
    size: u32,
) -> Option<[f64; 3]> {
    let plugin = std::env::current_exe()
        .ok()?
        .with_file_name("liblocklab_qemu_plugin.so");
    let report = folder.join("report.json");
    let arguments = format!(
        "{},out={},markers=on,processor={processor}",
        plugin.display(),
        report.display()
    );
    let output = Command::new("qemu-x86_64")
        .args(["-plugin", &arguments])
        .arg(program)
        .args([case, &size.to_string(), "1"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let units: f64 = text.split_whitespace().nth(1)?.parse().ok()?;
    let json = fs::read_to_string(report).ok()?;
    let json: serde_json::Value = serde_json::from_str(&json).ok()?;
    let cycles = json.pointer("/frontend/user/cycles")?;
    let end = |name: &str| Some(cycles[name].as_f64()? / units);
    Some([end("low")?, end("value")?, end("high")?])
}
