//! Google Benchmark, `--benchmark_out=FILE --benchmark_out_format=json`: an entry
//! for each repetition, and aggregates, which are no samples.

use super::fields::{at, moment, number, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields of an entry that are no counters of the user's.
const FIELDS: [&str; 9] = [
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "complexity_n",
];

/// What the names of aggregates end with.
const AGGREGATES: [&str; 6] = ["mean", "median", "stddev", "cv", "BigO", "RMS"];

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let entries = input.list("benchmarks")?;
    let context = input.field("context").unwrap_or(&Value::Null);
    if context.is_null() && entries.is_empty() {
        return None;
    }
    let mut file = SampleFile {
        measured: moment(text(context, "date")),
        ..SampleFile::default()
    };
    let number_of = |name: &str| context.get(name).map(Value::to_string);
    let of = |name: &str| context.get(name).and_then(Value::as_str);
    let cpus = number_of("num_cpus");
    // The clock of one processor differs from run to run; another processor's by more.
    let speed = at(context, &["mhz_per_cpu"]).and_then(Value::as_f64);
    let speed = speed.map(|mhz| format!("about {:.1} GHz", mhz / 1000.0));
    file.said("host", of("host_name"));
    file.said("clock", speed.as_deref());
    let setting = [
        ("number of CPUs", cpus.as_deref()),
        ("build of the library", of("library_build_type")),
    ];
    let mut only_means = BTreeSet::new();
    for entry in entries {
        let name = match text(entry, "run_name") {
            "" => text(entry, "name"),
            name => name,
        };
        // Versions before 1.5 tell an aggregate by its name alone.
        let (base, last) = name.rsplit_once('_').unwrap_or((name, ""));
        let is_old = entry.get("run_type").is_none() && AGGREGATES.contains(&last);
        if text(entry, "run_type") == "aggregate" || is_old {
            // Some are of a family of benchmarks, and none has such a name.
            let of = if is_old {
                last
            } else {
                text(entry, "aggregate_name")
            };
            if !matches!(of, "BigO" | "RMS") {
                only_means.insert(if is_old { base } else { name });
            }
            continue;
        }
        let is = |what: &str| entry.get(what).and_then(Value::as_bool) == Some(true);
        if is("error_occurred") || is("skipped") {
            let why = [text(entry, "error_message"), text(entry, "skip_message")].concat();
            file.notes.push(format!(
                "A repetition of {name} failed or was skipped: {why}."
            ));
            continue;
        }
        // The last entry of a file that was cut off may have no time.
        if entry.get("real_time").is_none() {
            input.note.as_ref()?;
            continue;
        }
        add(&mut file, name, entry, &setting);
    }
    let known = |name: &&&str| file.benchmarks.iter().any(|b| b.name == **name);
    let missing: Vec<&str> = only_means.iter().filter(|n| !known(n)).copied().collect();
    if !missing.is_empty() {
        file.notes.push(format!(
            "{} has only means; leave out --benchmark_report_aggregates_only.",
            missing.join(", ")
        ));
    }
    Some(file)
}

fn add(file: &mut SampleFile, name: &str, entry: &Value, setting: &[(&'static str, Option<&str>)]) {
    let unit = match text(entry, "time_unit") {
        "" => "ns",
        unit => unit,
    };
    let iterations = number(entry.get("iterations"));
    let real = number(entry.get("real_time"));
    let size = units::seconds(unit).unwrap_or(f64::NAN);
    let run = Run::new(real).lasting(real * iterations * size);
    let time = Benchmark {
        metric: "real_time".into(),
        ..Benchmark::time(name, unit, vec![run])
    };
    file.add(time.in_setting(setting));
    let mut explains = |metric: &str, unit: &str, value: &Value| {
        let metric = Benchmark {
            direction: units::direction(metric),
            ..Benchmark::figure(name, metric, unit, vec![Run::new(number(Some(value)))])
        };
        file.add(metric.deciding(false).in_setting(setting));
    };
    if let Some(cpu) = entry.get("cpu_time") {
        explains("cpu_time", unit, cpu);
    }
    for (counter, value) in entry.as_object().into_iter().flatten() {
        if FIELDS.contains(&counter.as_str()) || !value.is_number() {
            continue;
        }
        explains(counter, "", value);
    }
}
