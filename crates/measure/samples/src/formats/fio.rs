//! fio, `--output-format=json`: one figure of each job and direction.

use super::fields::{at, number, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

/// The figures of a direction: the path, the name and the unit.
const FIGURES: [(&[&str], &str, &str); 4] = [
    (&["iops"], "iops", "ops/s"),
    (&["bw_bytes"], "bandwidth", "B/s"),
    (&["lat_ns", "mean"], "latency", "ns"),
    (&["clat_ns", "percentile", "99.000000"], "p99 latency", "ns"),
];

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    input.field("fio version")?;
    let mut file = SampleFile {
        measured: input.field("timestamp").and_then(Value::as_f64),
        ..SampleFile::default()
    };
    for job in input.list("jobs")? {
        if number(job.get("error")) > 0.0 {
            let name = text(job, "jobname");
            file.notes
                .push(format!("The job {name} failed, and is left out."));
            continue;
        }
        for direction in ["read", "write", "trim"] {
            let Some(of) = job.get(direction).filter(|of| number(of.get("iops")) > 0.0) else {
                continue;
            };
            for (i, (path, metric, unit)) in FIGURES.iter().enumerate() {
                let Some(value) = at(of, path).and_then(Value::as_f64) else {
                    continue;
                };
                let seconds = 1e-3 * number(of.get("runtime"));
                let name = format!("{} {direction}", text(job, "jobname"));
                let runs = vec![Run::new(value).lasting(seconds)];
                file.add_once(Benchmark::figure(name, metric, unit, runs).deciding(i == 0));
            }
        }
    }
    Some(file)
}
