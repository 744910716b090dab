//! Forms that services of continuous benchmarking take: github-action-benchmark's list, and
//! Bencher's object. Both have one figure of a benchmark.

use super::fields::{number, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use locklab_judge::Direction;
use serde_json::Value;

/// Reads `[{name, unit, value}]`.
pub(super) fn github(input: &Input) -> Option<SampleFile> {
    let entries = input.json.as_ref()?.as_array()?;
    let is = |entry: &Value| {
        !text(entry, "name").is_empty()
            && entry.get("unit").is_some()
            && entry.get("value").is_some()
    };
    if entries.is_empty() || !entries.iter().all(is) {
        return None;
    }
    let mut file = SampleFile::default();
    for entry in entries {
        let unit = text(entry, "unit");
        let value = &entry["value"];
        let value = value
            .as_str()
            .map_or(number(Some(value)), |text| text.parse().unwrap_or(f64::NAN));
        of(&mut file, text(entry, "name"), "value", unit, value);
    }
    Some(file.of_processes())
}

/// Reads `{benchmark: {measure: {value}}}`.
pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let benchmarks = input.json.as_ref()?.as_object()?;
    let mut file = SampleFile::default();
    for (name, measures) in benchmarks {
        let measures = measures
            .as_object()
            .filter(|measures| !measures.is_empty())?;
        for (measure, metric) in measures {
            let value = metric.get("value")?.as_f64()?;
            // Bencher's own measures have these units.
            let unit = match measure.as_str() {
                "latency" => "ns",
                "throughput" => "ops/s",
                "file-size" | "memory" => "bytes",
                _ => measure,
            };
            of(&mut file, name, measure, unit, value);
        }
    }
    (!file.benchmarks.is_empty()).then_some(file)
}

fn of(file: &mut SampleFile, name: &str, metric: &str, unit: &str, value: f64) {
    direction(file, unit);
    file.add(Benchmark::figure(name, metric, unit, vec![Run::new(value)]));
}

/// Returns the way in which a figure of this unit improves. Of a unit that is not known it is
/// assumed, which the reader of a report must know.
pub(super) fn direction(file: &mut SampleFile, unit: &str) -> Direction {
    units::known_direction(unit).unwrap_or_else(|| {
        let note = format!(
            "The unit {unit} is not known, so less of it is taken for better; --better higher \
             says otherwise."
        );
        if !file.notes.contains(&note) {
            file.notes.push(note);
        }
        Direction::LowerIsBetter
    })
}
