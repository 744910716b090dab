//! criterion: `sample.json` of one benchmark, its `raw.csv`, or the messages of `cargo
//! criterion`. A sample is the time of some iterations, and all are of one process.

use super::fields::{numbers, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;

/// The columns of `raw.csv`, now and before version 0.3, whose unit is the nanosecond.
const RAW: [&str; 2] = [
    "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count",
    "group,function,value,sample_time_nanos,iteration_count",
];

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let mut file = SampleFile::default();
    if let (Some(iterations), Some(times)) = (input.list("iters"), input.list("times")) {
        let list = |values: &Vec<_>| numbers(Some(&values.clone().into()));
        let runs = runs(&list(iterations), &list(times), "ns");
        if !runs.is_empty() {
            file.add(Benchmark::time(input.name, "ns", runs));
        }
        return Some(file);
    }
    let titles = input.text.lines().next().unwrap_or_default().trim();
    if RAW.contains(&titles) {
        return raw(input.text);
    }
    // Every message of cargo criterion has a reason.
    if input.lines.is_empty() || input.lines.iter().any(|m| text(m, "reason").is_empty()) {
        return None;
    }
    for message in &input.lines {
        if text(message, "reason") == "benchmark-complete" {
            let unit = text(message, "unit");
            let runs = runs(
                &numbers(message.get("iteration_count")),
                &numbers(message.get("measured_values")),
                unit,
            );
            file.add(Benchmark::time(text(message, "id"), unit, runs));
        }
    }
    Some(file)
}

/// Reads `raw.csv`, whose last columns are the time, its unit, and the iterations.
fn raw(text: &str) -> Option<SampleFile> {
    let mut file = SampleFile::default();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    for row in rows.records() {
        let row = row.ok()?;
        let names = row.iter().take(3).filter(|part| !part.is_empty());
        let name = names.collect::<Vec<_>>().join("/");
        let (time, unit) = match row.len() {
            5 => (3, "ns"),
            _ => (5, row.get(6)?),
        };
        let figure = |at: usize| row.get(at).and_then(|x| x.parse::<f64>().ok());
        let (time, iterations) = (figure(time), figure(row.len() - 1));
        file.add(Benchmark::time(
            name,
            unit,
            runs(&[iterations?], &[time?], unit),
        ));
    }
    Some(file)
}

fn runs(iterations: &[f64], times: &[f64], unit: &str) -> Vec<Run> {
    let size = units::seconds(unit).unwrap_or(f64::NAN);
    let both = iterations.iter().zip(times);
    both.map(|(n, time)| Run::new(time / n).lasting(time * size))
        .collect()
}
