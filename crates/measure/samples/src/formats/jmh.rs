//! JMH, `-rf json`: forks, each a process, with iterations. Iterations of one process
//! share its compiled code (Kalibera and Jones 2013).

use super::fields::{number, numbers, parameters, text};
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use serde_json::Value;

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    let entries = input.json.as_ref()?.as_array()?;
    let is_of_jmh = |entry: &Value| entry.get("primaryMetric").is_some();
    let whole = entries.len() - usize::from(input.note.is_some() && entries.len() > 1);
    if entries.is_empty() || !entries[..whole].iter().all(is_of_jmh) {
        return None;
    }
    let mut file = SampleFile::default();
    for entry in entries.iter().filter(|entry| is_of_jmh(entry)) {
        let mut name = text(entry, "benchmark").to_owned() + &parameters(entry, "params");
        match entry.get("threads").and_then(Value::as_u64) {
            None | Some(1) => {}
            Some(threads) => name.push_str(&format!(" threads={threads}")),
        }
        // The path of the virtual machine is all that says the system.
        let system = match text(entry, "jvm") {
            "" => None,
            jvm if jvm.starts_with("/Library/") || jvm.starts_with("/Applications/") => {
                Some("macOS")
            }
            jvm if jvm.contains(":\\") => Some("Windows"),
            _ => Some("Linux or another Unix"),
        };
        let of = |name: &str| Some(text(entry, name)).filter(|text| !text.is_empty());
        let setting = [
            ("JDK", of("jdkVersion")),
            ("JVM", of("vmName")),
            ("OS", system),
        ];
        let primary = entry.get("primaryMetric").unwrap_or(&Value::Null);
        let mut metrics = vec![(text(entry, "mode"), primary, true)];
        let secondary = entry.get("secondaryMetrics").and_then(Value::as_object);
        for (metric, of) in secondary.into_iter().flatten() {
            metrics.push((metric, of, false));
        }
        for (metric, of, decides) in metrics {
            let unit = text(of, "scoreUnit");
            let forks = of.get("rawData").and_then(Value::as_array);
            let mut runs = Vec::new();
            for (process, fork) in forks.into_iter().flatten().enumerate() {
                let of_fork = numbers(Some(fork)).into_iter();
                runs.extend(of_fork.map(|value| Run::of_process(value, process)));
            }
            // Of single calls there is a histogram of each iteration.
            let forks = of.get("rawDataHistogram").and_then(Value::as_array);
            for (process, fork) in forks.into_iter().flatten().enumerate() {
                let of_fork = fork.as_array().into_iter().flatten().map(mean);
                runs.extend(of_fork.map(|value| Run::of_process(value, process)));
            }
            if runs.is_empty() {
                file.notes.push(format!(
                    "{name} has no iterations of {metric}, only its score."
                ));
                continue;
            }
            let benchmark = Benchmark::figure(name.clone(), metric, unit, runs);
            file.add_once(benchmark.deciding(decides).in_setting(&setting));
        }
    }
    Some(file)
}

/// Returns the mean of a histogram, which has values with their counts.
fn mean(histogram: &Value) -> f64 {
    let pairs = histogram.as_array().into_iter().flatten();
    let pairs = pairs.map(|pair| (number(pair.get(0)), number(pair.get(1))));
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, all), (value, n)| {
        (sum + value * n, all + n)
    });
    sum / count
}
