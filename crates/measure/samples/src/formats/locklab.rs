//! Locklab's own results, `--json` of `compare`, `kernel` and `matrix`: a sample is
//! the ratio of a pair. So two results can be compared whatever the machine did
//! between them, as long as both have the same baseline.

use super::fields::{numbers, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use locklab_judge::Direction;
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    if !(input.has("tool") && (input.has("workloads") || input.has("cells"))) {
        return None;
    }
    let mut file = SampleFile::default();
    let list = |name: &str| input.list(name).into_iter().flatten();
    for workload in list("workloads") {
        let name = format!("{} {}", text(workload, "name"), text(workload, "variant"));
        add(&mut file, name.trim(), workload);
    }
    for cell in list("cells") {
        let axes = ["threads", "critical", "non_critical", "locks"];
        let axes = axes.iter().filter_map(|axis| cell.get(axis)?.as_u64());
        let axes: Vec<String> = axes.map(|n| n.to_string()).collect();
        let place = cell.get("placement").and_then(Value::as_str);
        let name = axes.join(" x ") + &place.map_or(String::new(), |p| format!(" ({p})"));
        add(&mut file, &name, cell);
    }
    if file.benchmarks.is_empty() {
        file.notes.push(
            "its pairs are not in it; versions before 0.3 did not write them, so make it again: \
             'locklab results show ID --json'"
                .into(),
        );
    }
    Some(file.of_processes())
}

fn add(file: &mut SampleFile, name: &str, of: &Value) {
    let Some(pairs) = of.get("pair_ratios") else {
        return;
    };
    let ratios = numbers(pairs.get("ratios"));
    if ratios.is_empty() {
        return;
    }
    file.add(Benchmark {
        metric: format!("{}, experiment / baseline", text(pairs, "metric")),
        direction: match text(pairs, "direction") {
            "lower_is_better" => Direction::LowerIsBetter,
            _ => Direction::HigherIsBetter,
        },
        drifts: false,
        ..Benchmark::time(name, "", ratios.into_iter().map(Run::new).collect())
    });
}
