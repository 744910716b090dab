//! pytest-benchmark, `--benchmark-json=FILE`: a round of one process in each datum.

use super::fields::{at, moment, number, numbers, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let machine = input.field("machine_info").unwrap_or(&Value::Null);
    let entries = input.list("benchmarks")?;
    if machine.is_null() && entries.is_empty() {
        return None;
    }
    let mut file = SampleFile {
        measured: input.field("datetime").and_then(|d| moment(d.as_str()?)),
        ..SampleFile::default()
    };
    let of = |path: &[&str]| at(machine, path).and_then(|value| value.as_str());
    let python = [of(&["python_implementation"]), of(&["python_version"])];
    file.said("host", of(&["node"]));
    file.said("kernel", of(&["release"]));
    let python = python.map(Option::unwrap_or_default).join(" ");
    let setting = [
        ("OS", of(&["system"])),
        ("architecture", of(&["machine"])),
        ("CPU", of(&["cpu", "brand_raw"]).or(of(&["cpu", "brand"]))),
        ("Python", Some(python.trim())),
    ];
    for entry in entries {
        let name = match text(entry, "fullname") {
            "" => text(entry, "name"),
            name => name,
        };
        let Some(stats) = entry.get("stats") else {
            // The last entry of a file that was cut off.
            input.note.as_ref()?;
            continue;
        };
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
        file.add_once(Benchmark::time(name, "s", runs.collect()).in_setting(&setting));
    }
    Some(file)
}
