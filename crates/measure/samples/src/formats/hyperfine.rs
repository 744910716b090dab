//! hyperfine, `--export-json`: a command in each result, a run in each time.

use super::fields::{numbers, text};
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use serde_json::Value;

pub(super) fn read(value: &Value) -> SampleFile {
    let mut file = SampleFile::new(Format::Hyperfine);
    let results = value.get("results").and_then(Value::as_array);
    for result in results.into_iter().flatten() {
        let name = text(result, "command");
        let times = numbers(result.get("times"));
        if times.is_empty() {
            file.notes.push(format!(
                "{name} has no times, only their mean; --export-json writes them unless \
                 hyperfine was interrupted."
            ));
            continue;
        }
        let exits = numbers(result.get("exit_codes"));
        let failed = exits.iter().filter(|code| **code != 0.0).count();
        if failed > 0 {
            file.notes.push(format!(
                "{failed} of {} runs of {name} failed; their times count like the others.",
                exits.len()
            ));
        }
        let runs = times.into_iter().map(|t| Run::new(t).lasting(t));
        file.add(Benchmark::time(name, "s", runs.collect()));
    }
    file
}
