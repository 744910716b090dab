//! criterion: `sample.json` of one benchmark, or the messages of `cargo
//! criterion`. A sample is the time of some iterations.

use super::fields::{numbers, text};
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use crate::units;
use serde_json::Value;

pub(super) fn read(value: &Value, name: &str) -> SampleFile {
    let mut file = SampleFile::new(Format::Criterion);
    file.one_process = true;
    let runs = runs(
        &numbers(value.get("iters")),
        &numbers(value.get("times")),
        "ns",
    );
    if !runs.is_empty() {
        file.add(Benchmark::time(name, "ns", runs));
    }
    file
}

/// Returns the messages of `cargo criterion --message-format=json`; `None` if these lines
/// are something else.
pub(super) fn read_messages(text_of_lines: &str) -> Option<SampleFile> {
    let mut file = SampleFile::new(Format::Criterion);
    file.one_process = true;
    let mut any = false;
    for line in text_of_lines.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        any |= message.get("reason").is_some();
        if text(&message, "reason") == "benchmark-complete" {
            let unit = text(&message, "unit");
            let runs = runs(
                &numbers(message.get("iteration_count")),
                &numbers(message.get("measured_values")),
                unit,
            );
            file.add(Benchmark::time(text(&message, "id"), unit, runs));
        }
    }
    any.then_some(file)
}

fn runs(iterations: &[f64], times: &[f64], unit: &str) -> Vec<Run> {
    let size = units::seconds(unit).unwrap_or(f64::NAN);
    let both = iterations.iter().zip(times);
    both.map(|(n, time)| Run::new(time / n).lasting(time * size))
        .collect()
}
