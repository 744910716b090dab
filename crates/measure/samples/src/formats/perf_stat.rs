//! perf stat, `-x,`: an event in each line. Appended outputs of several runs are
//! samples; the mean of `-r` is one.

use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use crate::units;
use locklab_judge::Role;
use std::collections::BTreeSet;

/// Events that say how long it took, the best first.
const DECIDE: [&str; 6] = [
    "duration_time",
    "task-clock",
    "cpu-clock",
    "cycles",
    "cpu-cycles",
    "instructions",
];

/// A line of an event.
struct Line<'a> {
    /// The time of an interval (`-I`).
    at: Option<f64>,
    value: &'a str,
    unit: &'a str,
    event: &'a str,
    /// The spread of the runs of `-r`, such as `0.15%`.
    spread: Option<&'a str>,
    /// Says how much of the time it was counted, in percent.
    counted: Option<f64>,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let separator = [',', ';', '\t', '|']
            .into_iter()
            .find(|c| line.contains(*c))?;
        let mut fields: Vec<&str> = line.split(separator).map(str::trim).collect();
        let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_value = |text: &str| text.parse::<f64>().is_ok() || text.starts_with("<not ");
        let is_event = |f: &[&str]| {
            f.len() >= 5 && is_value(f[0]) && !is_value(f[1]) && is_name(f[2]) && {
                let after = f[3].trim_end_matches('%');
                after.parse::<f64>().is_ok()
            }
        };
        let mut at = None;
        if !is_event(&fields) && fields.len() > 5 && is_event(&fields[1..]) {
            at = fields[0].parse().ok();
            fields.remove(0);
        }
        if !is_event(&fields) {
            return None;
        }
        let spread = fields[3].ends_with('%').then_some(fields[3]);
        let counted = fields.get(if spread.is_some() { 5 } else { 4 });
        Some(Self {
            at,
            value: fields[0],
            unit: fields[1],
            event: fields[2],
            spread,
            counted: counted.and_then(|text| text.parse().ok()),
        })
    }
}

/// Returns whether a text has a line of an event.
pub(super) fn is(text: &str) -> bool {
    text.lines().take(50).any(|line| Line::of(line).is_some())
}

pub(super) fn read(text: &str) -> SampleFile {
    let mut file = SampleFile::new(Format::PerfStat);
    let mut not_counted = BTreeSet::new();
    let mut partly = BTreeSet::new();
    let mut means = false;
    let mut skipped = 0;
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(line) = Line::of(line) else {
            skipped += 1;
            continue;
        };
        let Ok(value) = line.value.parse::<f64>() else {
            not_counted.insert(line.event.to_owned());
            continue;
        };
        if line.counted.is_some_and(|percent| percent < 99.5) {
            partly.insert(line.event.to_owned());
            continue;
        }
        means |= line.spread.is_some();
        let run = Run {
            at: line.at,
            ..Run::new(value)
        };
        let time = units::seconds(line.unit).is_some();
        file.add(Benchmark {
            metric: line.event.to_owned(),
            role: Role::Screening,
            drifts: time || line.event.contains("cycles"),
            ..Benchmark::time("perf stat", line.unit, vec![run])
        });
    }
    let names = file.benchmarks.iter().map(|b| b.metric.clone());
    let names: Vec<String> = names.collect();
    let plain = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    let decides = DECIDE
        .iter()
        .find_map(|event| names.iter().position(|name| plain(name) == *event));
    if let Some(benchmark) = file.benchmarks.get_mut(decides.unwrap_or(0)) {
        benchmark.role = Role::Primary;
    }
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    if means {
        file.notes.push(
            "-r writes one mean of all runs, from which nothing can be judged; write each run: \
             for i in $(seq 20); do perf stat -x, --append -o FILE COMMAND; done."
                .into(),
        );
    }
    if !not_counted.is_empty() {
        file.notes
            .push(format!("Not counted: {}.", list(&not_counted)));
    }
    if !partly.is_empty() {
        file.notes.push(format!(
            "Counted for a part of the time only, so left out: {}; count fewer events at once.",
            list(&partly)
        ));
    }
    if skipped > 0 {
        file.notes
            .push(format!("{skipped} lines have no event and are not read."));
    }
    file
}
