//! fio, `--output-format=json`: one figure of each job and direction.

use super::fields::{at, number, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use locklab_judge::{Direction, Role};
use serde_json::Value;

/// The figures of a direction: the path, the name, the unit, and whether more is better.
const FIGURES: [(&[&str], &str, &str, bool); 4] = [
    (&["iops"], "iops", "ops/s", true),
    (&["bw_bytes"], "bandwidth", "B/s", true),
    (&["lat_ns", "mean"], "latency", "ns", false),
    (
        &["clat_ns", "percentile", "99.000000"],
        "p99 latency",
        "ns",
        false,
    ),
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
            for (i, (path, metric, unit, more)) in FIGURES.iter().enumerate() {
                let Some(value) = at(of, path).and_then(Value::as_f64) else {
                    continue;
                };
                let seconds = 1e-3 * number(of.get("runtime"));
                file.add_once(Benchmark {
                    metric: (*metric).into(),
                    direction: if *more {
                        Direction::HigherIsBetter
                    } else {
                        Direction::LowerIsBetter
                    },
                    role: if i == 0 {
                        Role::Primary
                    } else {
                        Role::Screening
                    },
                    ..Benchmark::time(
                        format!("{} {direction}", text(job, "jobname")),
                        *unit,
                        vec![Run::new(value).lasting(seconds)],
                    )
                });
            }
        }
    }
    Some(file)
}
