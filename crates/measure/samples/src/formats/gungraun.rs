//! gungraun (formerly iai-callgrind), `--output-format=json`: counts of a simulated
//! machine, one object for each benchmark. A count is the same in every run.

use super::fields::{at, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use locklab_judge::Role;
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let one = input.json.iter().filter(|_| input.lines.is_empty());
    let all: Vec<&Value> = one.chain(&input.lines).collect();
    let is = |v: &&Value| {
        v.get("module_path").is_some()
            && (v.get("profiles").is_some() || v.get("callgrind_summary").is_some())
    };
    if all.is_empty() || input.note.is_some() || !all.iter().all(is) {
        return None;
    }
    let mut file = SampleFile::default();
    for benchmark in all {
        let name = [text(benchmark, "module_path"), text(benchmark, "id")].join(" ");
        let mut counts = Vec::new();
        find(benchmark, &mut counts);
        let decides = counts
            .iter()
            .position(|(event, _)| event == "Ir")
            .unwrap_or(0);
        for (i, (event, count)) in counts.into_iter().enumerate() {
            file.add_once(Benchmark {
                metric: event,
                role: if i == decides {
                    Role::Primary
                } else {
                    Role::Screening
                },
                drifts: false,
                ..Benchmark::time(name.trim(), "", vec![Run::new(count)])
            });
        }
    }
    Some(file)
}

/// Finds the total of each event, below the first summary of Callgrind.
fn find(value: &Value, counts: &mut Vec<(String, f64)>) {
    if let Some(events) = value.get("Callgrind").and_then(Value::as_object) {
        for (event, summary) in events {
            let metrics = summary.get("metrics").unwrap_or(summary);
            let count = [&["Left"][..], &["Both", "0"]]
                .iter()
                .find_map(|path| match path {
                    [side] => metrics.get(*side),
                    _ => at(metrics, &["Both"])?.get(0),
                });
            let count = count.and_then(|v| {
                v.as_f64()
                    .or_else(|| v.as_object()?.values().next()?.as_f64())
            });
            counts.extend(count.map(|count| (event.clone(), count)));
        }
        return;
    }
    let inner: Vec<&Value> = match value {
        Value::Object(fields) => match fields.get("total") {
            Some(total) => vec![total],
            None => fields.values().collect(),
        },
        Value::Array(list) => list.iter().collect(),
        _ => Vec::new(),
    };
    for value in inner {
        if counts.is_empty() {
            find(value, counts);
        }
    }
}
