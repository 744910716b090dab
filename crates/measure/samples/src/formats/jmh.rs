//! JMH, `-rf json`: forks, each a process, with iterations. Where there are forks
//! enough, a sample is a fork, since iterations of one process share its compiled
//! code (Kalibera and Jones 2013).

use super::fields::{number, numbers, text};
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use crate::units;
use locklab_judge::{MIN_SAMPLES, Role};
use serde_json::Value;

pub(super) fn read(value: &Value) -> SampleFile {
    let mut file = SampleFile::new(Format::Jmh);
    for entry in value.as_array().into_iter().flatten() {
        let mut name = text(entry, "benchmark").to_owned();
        let parameters = entry.get("params").and_then(Value::as_object);
        for (parameter, value) in parameters.into_iter().flatten() {
            let value = value.as_str().map_or(value.to_string(), str::to_owned);
            name.push_str(&format!(" {parameter}={value}"));
        }
        let mode = text(entry, "mode");
        let primary = entry.get("primaryMetric").unwrap_or(&Value::Null);
        let mut metrics = vec![(mode, primary, Role::Primary)];
        let secondary = entry.get("secondaryMetrics").and_then(Value::as_object);
        for (metric, of) in secondary.into_iter().flatten() {
            metrics.push((metric, of, Role::Screening));
        }
        for (metric, of, role) in metrics {
            let forks: Vec<Vec<f64>> = of
                .get("rawData")
                .and_then(Value::as_array)
                .map(|forks| forks.iter().map(|fork| numbers(Some(fork))).collect())
                .unwrap_or_default();
            let unit = text(of, "scoreUnit");
            let runs = samples(&forks, number(of.get("score")));
            file.one_process |= role == Role::Primary && forks.len() < MIN_SAMPLES;
            file.add(Benchmark {
                metric: metric.to_owned(),
                direction: units::direction(unit),
                role,
                drifts: units::drifts(unit),
                ..Benchmark::time(name.clone(), unit, runs)
            });
        }
    }
    file
}

fn samples(forks: &[Vec<f64>], score: f64) -> Vec<Run> {
    let values: Vec<f64> = if forks.len() >= MIN_SAMPLES {
        let mean = |fork: &Vec<f64>| fork.iter().sum::<f64>() / fork.len() as f64;
        forks.iter().map(mean).collect()
    } else {
        forks.concat()
    };
    match values.is_empty() {
        // A histogram of single calls has one score.
        true => vec![Run::new(score)],
        false => values.into_iter().map(Run::new).collect(),
    }
}
