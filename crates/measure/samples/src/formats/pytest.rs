//! pytest-benchmark, `--benchmark-json=FILE`: a round in each datum.

use super::fields::{moment, number, numbers, text};
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use serde_json::Value;

pub(super) fn read(value: &Value) -> SampleFile {
    let mut file = SampleFile::new(Format::Pytest);
    file.one_process = true;
    file.measured = moment(text(value, "datetime"));
    let entries = value.get("benchmarks").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let name = match text(entry, "fullname") {
            "" => text(entry, "name"),
            name => name,
        };
        let stats = entry.get("stats").unwrap_or(&Value::Null);
        let data = numbers(stats.get("data"));
        if data.is_empty() {
            file.notes.push(format!(
                "{name} has no data, only its statistics; add --benchmark-save-data."
            ));
            continue;
        }
        let iterations = number(stats.get("iterations")).max(1.0);
        let runs = data
            .into_iter()
            .map(|t| Run::new(t).lasting(t * iterations));
        file.add(Benchmark::time(name, "s", runs.collect()));
    }
    file
}
