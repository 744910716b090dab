//! BenchmarkDotNet, `--exporters fulljson`: every measurement; a launch is a process.

use super::fields::{number, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let host = input.field("HostEnvironmentInfo")?;
    let of = |name: &str| Some(text(host, name)).filter(|text| !text.is_empty());
    let setting = [
        ("OS", of("OsVersion")),
        ("CPU", of("ProcessorName")),
        ("architecture", of("Architecture")),
        (".NET", of("RuntimeVersion")),
        ("build", of("Configuration")),
    ];
    let mut file = SampleFile::default();
    for benchmark in input.list("Benchmarks")? {
        let name = match text(benchmark, "FullName") {
            "" => text(benchmark, "DisplayInfo"),
            name => name,
        };
        let all = benchmark.get("Measurements").and_then(Value::as_array);
        // Versions before 0.11 have the stage as a mode.
        let is = |one: &&Value| match text(one, "IterationMode") {
            "Workload" => text(one, "IterationStage") == "Result",
            mode => mode == "Result",
        };
        let run = |one: &Value| {
            let nanoseconds = number(one.get("Nanoseconds"));
            let run = Run::new(nanoseconds / number(one.get("Operations")));
            Run {
                process: number(one.get("LaunchIndex")).max(0.0) as usize,
                ..run.lasting(1e-9 * nanoseconds)
            }
        };
        let runs: Vec<Run> = all.into_iter().flatten().filter(is).map(run).collect();
        if runs.is_empty() {
            let note = format!("{name} has no measurements; use --exporters fulljson.");
            file.notes.push(note);
            continue;
        }
        file.add_once(Benchmark::time(name, "ns", runs).in_setting(&setting));
    }
    Some(file)
}
