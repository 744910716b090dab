//! The table of what was kept, and how well it was predicted.

use serde_json::Value;
use std::fmt::Write as _;

/// What differs less from 1 than this has no direction.
const FLAT: f64 = 0.05;

/// What was predicted and measured of a lock under a program: ratios to glibc's.
struct Pair {
    predicted: f64,
    measured: f64,
}

/// The table of the rows that are kept, and its scores.
pub(crate) fn table(kept: &Value) -> String {
    let mut text = "| program | gate | lock | simulated | replayed | measured |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let (mut simulated, mut replayed) = (Vec::new(), Vec::new());
    let mut advised = Vec::new();
    for (program, row) in kept.as_object().into_iter().flatten() {
        if let Some(why) = row["why"].as_str() {
            let _ = writeln!(text, "| {program} | {why} | | | | |");
            continue;
        }
        let gates = [&row["simulated_gate"], &row["replayed_gate"]];
        for (number, lock) in row["locks"].as_array().into_iter().flatten().enumerate() {
            let name = match number {
                0 => format!("{program}: {}", row["about"].as_str().unwrap_or_default()),
                _ => String::new(),
            };
            let gate = match number {
                0 => format!("simulated {}, replayed {}", gate(gates[0]), gate(gates[1])),
                _ => String::new(),
            };
            let measured = &lock["measured"];
            let _ = writeln!(
                text,
                "| {name} | {gate} | {} | {} | {} | {} |",
                lock["lock"].as_str().unwrap_or_default(),
                ratio(&lock["simulated"]),
                ratio(&lock["replayed"]),
                ratio(measured)
            );
            let Some(measured_ratio) = measured["ratio"].as_f64() else {
                continue;
            };
            for (which, gate, pairs) in [
                ("simulated", gates[0], &mut simulated),
                ("replayed", gates[1], &mut replayed),
            ] {
                let predicted = lock[which]["ratio"].as_f64();
                if let Some(predicted) = predicted.filter(|_| gate["passes"] == true) {
                    pairs.push(Pair {
                        predicted,
                        measured: measured_ratio,
                    });
                }
            }
            if lock["simulated"]["class"] == "helps" && gates[0]["passes"] == true {
                advised.push((
                    lock["simulated"]["low"].as_f64().unwrap_or(1.0),
                    measured_ratio,
                ));
            }
        }
    }
    text.push('\n');
    for (which, pairs) in [("Simulated", simulated), ("Replayed", replayed)] {
        let right = pairs.iter().filter(|pair| pair.right()).count();
        let _ = writeln!(
            text,
            "{which}: of {} that pass their gate the direction is right in {right}, rank \
             correlation {:.2}.",
            pairs.len(),
            correlation(&pairs)
        );
    }
    let worse = |&&(_, measured): &&(f64, f64)| measured < 1.0 - FLAT;
    let below = |&&(low, measured): &&(f64, f64)| measured < low;
    let _ = writeln!(
        text,
        "Called better by advise: {}, of which {} measured below the band, and {} worse than glibc's.",
        advised.len(),
        advised.iter().filter(below).count(),
        advised.iter().filter(worse).count()
    );
    text
}

fn gate(gate: &Value) -> String {
    match gate["ratio"].as_f64() {
        Some(ratio) if gate["passes"] == true => format!("{ratio:.2}"),
        Some(ratio) => format!("{ratio:.2} (shut)"),
        None => gate["why"]
            .as_str()
            .unwrap_or("-")
            .replace("locklab rank: ", ""),
    }
}

/// A ratio with its interval, if it has one.
fn ratio(of: &Value) -> String {
    match (
        of["ratio"].as_f64(),
        of["low"].as_f64(),
        of["high"].as_f64(),
    ) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
        (Some(ratio), ..) => format!("{ratio:.2}"),
        _ => "-".into(),
    }
}

impl Pair {
    fn right(&self) -> bool {
        direction(self.predicted) == direction(self.measured)
    }
}

/// Better, worse, or neither.
fn direction(ratio: f64) -> i8 {
    match ratio {
        ratio if ratio > 1.0 + FLAT => 1,
        ratio if ratio < 1.0 - FLAT => -1,
        _ => 0,
    }
}

/// Spearman's rank correlation.
fn correlation(pairs: &[Pair]) -> f64 {
    let predicted = ranks(pairs.iter().map(|pair| pair.predicted).collect());
    let measured = ranks(pairs.iter().map(|pair| pair.measured).collect());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = sum(&predicted, &predicted) * sum(&measured, &measured);
    sum(&predicted, &measured) / spread.sqrt()
}

fn ranks(values: Vec<f64>) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|&&other| other < value).count() as f64;
    let same = |value: f64| values.iter().filter(|&&other| other == value).count() as f64;
    values
        .iter()
        .map(|&value| below(value) + (same(value) - 1.0) / 2.0)
        .collect()
}
