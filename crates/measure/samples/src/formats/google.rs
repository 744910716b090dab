//! Google Benchmark, `--benchmark_out=FILE --benchmark_out_format=json`: an entry
//! for each repetition, and aggregates, which are no samples.

use super::fields::{moment, number, text};
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use crate::units;
use locklab_judge::{Direction, Role};
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields of an entry that are no counters of the user's.
const FIELDS: [&str; 9] = [
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "complexity_n",
];

pub(super) fn read(value: &Value) -> SampleFile {
    let mut file = SampleFile::new(Format::Google);
    file.one_process = true;
    let date = value.get("context").map(|context| text(context, "date"));
    file.measured = date.and_then(moment);
    let entries = value.get("benchmarks").and_then(Value::as_array);
    let mut only_means = BTreeSet::new();
    for entry in entries.into_iter().flatten() {
        let name = match text(entry, "run_name") {
            "" => text(entry, "name"),
            name => name,
        };
        if text(entry, "run_type") == "aggregate" {
            only_means.insert(name);
            continue;
        }
        if entry.get("error_occurred").and_then(Value::as_bool) == Some(true) {
            let why = text(entry, "error_message");
            file.notes
                .push(format!("A repetition of {name} failed: {why}."));
            continue;
        }
        add(&mut file, name, entry);
    }
    let known = |name: &&&str| file.benchmarks.iter().any(|b| b.name == **name);
    let missing: Vec<&str> = only_means.iter().filter(|n| !known(n)).copied().collect();
    if !missing.is_empty() {
        file.notes.push(format!(
            "{} has only means; leave out --benchmark_report_aggregates_only.",
            missing.join(", ")
        ));
    }
    file
}

fn add(file: &mut SampleFile, name: &str, entry: &Value) {
    let unit = match text(entry, "time_unit") {
        "" => "ns",
        unit => unit,
    };
    let iterations = number(entry.get("iterations"));
    let real = number(entry.get("real_time"));
    let size = units::seconds(unit).unwrap_or(f64::NAN);
    let run = Run::new(real).lasting(real * iterations * size);
    file.add(Benchmark {
        metric: "real_time".into(),
        ..Benchmark::time(name, unit, vec![run])
    });
    let mut explains = |metric: &str, unit: &str, value: f64, direction| {
        file.add(Benchmark {
            metric: metric.into(),
            direction,
            role: Role::Screening,
            ..Benchmark::time(name, unit, vec![Run::new(value)])
        });
    };
    if let Some(cpu) = entry.get("cpu_time") {
        explains(
            "cpu_time",
            unit,
            number(Some(cpu)),
            Direction::LowerIsBetter,
        );
    }
    for (counter, value) in entry.as_object().into_iter().flatten() {
        if FIELDS.contains(&counter.as_str()) || !value.is_number() {
            continue;
        }
        let direction = match counter.ends_with("per_second") {
            true => Direction::HigherIsBetter,
            false => Direction::LowerIsBetter,
        };
        explains(counter, "", number(Some(value)), direction);
    }
}
