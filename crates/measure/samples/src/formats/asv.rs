//! asv: a file of `results/MACHINE`, with the samples of each benchmark if it was run with
//! `--record-samples`, else its one result.

use super::fields::{at, numbers, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let columns = input.list("result_columns")?;
    let results = input.field("results")?.as_object()?;
    let place = |name: &str| columns.iter().position(|column| column == name);
    let params = input.field("params").unwrap_or(&Value::Null);
    let of = |name: &str| Some(text(params, name)).filter(|text| !text.is_empty());
    let setting = [
        ("machine", of("machine")),
        ("OS", of("os")),
        ("architecture", of("arch")),
        ("CPU", of("cpu")),
        ("Python", of("python")),
    ];
    let date = input.field("date").and_then(Value::as_f64);
    let mut file = SampleFile {
        // asv writes the date of the commit in milliseconds, which is not when it ran.
        measured: at(input.json.as_ref()?, &["started_at"]).and(date),
        ..SampleFile::default()
    };
    for (name, result) in results {
        let result = match result {
            Value::Array(row) => row.clone(),
            // Old versions have a number.
            other => vec![Value::Array(vec![other.clone()])],
        };
        let column = |name: &str| result.get(place(name)?);
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        let values = list(column("result").or(result.first())).unwrap_or_default();
        let samples = list(column("samples")).unwrap_or_default();
        let combinations = combinations(column("params"));
        let what = name.rsplit('.').next().unwrap_or(name);
        let unit = match what.split('_').next().unwrap_or_default() {
            "time" | "timeraw" => "s",
            "mem" | "peakmem" => "bytes",
            _ => "",
        };
        for (i, value) in values.iter().enumerate() {
            let of_this = samples.get(i).map(|s| numbers(Some(s))).unwrap_or_default();
            let runs: Vec<Run> = match of_this.is_empty() {
                false => of_this.into_iter().map(Run::new).collect(),
                true => value.as_f64().map(Run::new).into_iter().collect(),
            };
            if runs.is_empty() {
                file.notes
                    .push(format!("{name} has no result; it failed or was skipped."));
                continue;
            }
            let parameters = combinations.get(i).cloned().unwrap_or_default();
            let benchmark = Benchmark::figure(format!("{name}{parameters}"), "time", unit, runs);
            file.add_once(benchmark.in_setting(&setting));
        }
    }
    Some(file)
}

/// Returns the values of the parameters in the order of the results: the last varies first.
fn combinations(params: Option<&Value>) -> Vec<String> {
    let mut all = vec![String::new()];
    for axis in params.and_then(Value::as_array).into_iter().flatten() {
        let values: Vec<&str> = axis
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        all = all
            .iter()
            .flat_map(|before| values.iter().map(move |value| format!("{before} {value}")))
            .collect();
    }
    all
}
