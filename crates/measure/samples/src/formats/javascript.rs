//! Benchmarks of JavaScript: vitest's report, and the tasks of tinybench. A sample is the
//! time of one call in milliseconds, and all are of one process.

use super::fields::{at, number, numbers, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

/// Where the samples of a task are, in versions of tinybench, and where its mean is.
const SAMPLES: [&[&str]; 4] = [
    &["samples"],
    &["latency", "samples"],
    &["result", "samples"],
    &["result", "latency", "samples"],
];
const MEANS: [&[&str]; 4] = [
    &["mean"],
    &["latency", "mean"],
    &["result", "mean"],
    &["result", "latency", "mean"],
];

/// Reads `vitest bench --outputJson`.
pub(super) fn vitest(input: &Input) -> Option<SampleFile> {
    let mut file = SampleFile::default();
    for of_file in input.list("files")? {
        for group in of_file.get("groups")?.as_array()? {
            for task in group.get("benchmarks")?.as_array()? {
                let name = format!("{} > {}", text(group, "fullName"), text(task, "name"));
                add(&mut file, name, task);
            }
        }
    }
    Some(file)
}

/// Reads the tasks of tinybench as JSON.
pub(super) fn tinybench(input: &Input) -> Option<SampleFile> {
    let tasks = input.json.as_ref()?.as_array()?;
    let is = |task: &Value| {
        let of = |path: &&[&str]| at(task, &path[..path.len() - 1]).unwrap_or(task);
        // What else has a name and a mean has neither rates nor samples of it.
        let own = |of: &Value| {
            ["samples", "hz", "rme", "p99"]
                .iter()
                .any(|f| of.get(f).is_some())
        };
        !text(task, "name").is_empty() && MEANS.iter().map(of).any(own)
    };
    if tasks.is_empty() || !tasks.iter().all(is) {
        return None;
    }
    let mut file = SampleFile::default();
    for task in tasks {
        add(&mut file, text(task, "name").to_owned(), task);
    }
    Some(file)
}

fn add(file: &mut SampleFile, name: String, task: &Value) {
    let samples = SAMPLES.iter().find_map(|path| {
        let samples = numbers(at(task, path));
        (!samples.is_empty()).then_some(samples)
    });
    let mean = MEANS.iter().find_map(|path| at(task, path));
    let values = samples.unwrap_or_else(|| vec![number(mean)]);
    let runs = values.into_iter().map(|ms| Run::new(ms).lasting(1e-3 * ms));
    file.add_once(Benchmark::time(name, "ms", runs.collect()));
}
