//! gungraun (formerly iai-callgrind), `--output-format=json`: counts of a simulated
//! machine, one object for each benchmark. A count is the same in every run.

use super::fields::{at, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let one = input.json.iter().filter(|_| input.lines.is_empty());
    // `jq -s` makes a list of the objects.
    let one = one.flat_map(|value| match value {
        Value::Array(list) => list.iter().collect(),
        object => vec![object],
    });
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
        let (path, function) = (
            text(benchmark, "module_path"),
            text(benchmark, "function_name"),
        );
        let function = if path.ends_with(function) {
            ""
        } else {
            function
        };
        let name = [path, function, text(benchmark, "id")]
            .map(str::trim)
            .join(" ");
        let name: Vec<&str> = name.split_whitespace().collect();
        let name = name.join(" ");
        let counts = counts(benchmark);
        if counts.is_empty() {
            file.notes
                .push(format!("{name} has no counts of Callgrind."));
        }
        let decides = counts.iter().position(|(event, _)| *event == "Ir");
        for (i, (event, count)) in counts.into_iter().enumerate() {
            let count = Benchmark::figure(&*name, event, "", vec![Run::new(count)]);
            file.add_once(Benchmark {
                drifts: false,
                ..count.deciding(i == decides.unwrap_or(0))
            });
        }
    }
    Some(file)
}

/// Returns the new total of each event: of the profile of Callgrind (versions from 0.15), of
/// the one that there is (from 0.11), or of the sum of the first (before).
fn counts(benchmark: &Value) -> Vec<(&str, f64)> {
    let profiles = benchmark.get("profiles").and_then(Value::as_array);
    let events = profiles
        .into_iter()
        .flatten()
        .find_map(|p| at(p, &["summaries", "total", "summary", "Callgrind"]))
        .or_else(|| {
            at(
                benchmark,
                &["callgrind_summary", "callgrind_run", "total", "summary"],
            )
        })
        .or_else(|| {
            at(benchmark, &["callgrind_summary", "summaries"])?
                .get(0)?
                .get("events")
        });
    let count = |summary: &Value| -> Option<f64> {
        let metrics = summary.get("metrics").unwrap_or(summary);
        let both = metrics.get("Both").and_then(|both| both.get(0));
        let count = metrics.get("Left").or(both).or(metrics.get("new"))?;
        // A number may be named by its kind: {"Int": 5}.
        let own = count.as_object().and_then(|o| o.values().next());
        own.unwrap_or(count).as_f64()
    };
    let events = events.and_then(Value::as_object).into_iter().flatten();
    events
        .filter_map(|(event, summary)| Some((event.as_str(), count(summary)?)))
        .collect()
}
