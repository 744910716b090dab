//! Texts that programs print for people: one figure a run. Several runs in one file, one
//! after the other, are several processes. Also texts that have no figure to judge.

use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use locklab_judge::Role;

/// Returns a figure with its unit, of which the figure may have commas.
pub(super) fn figure_and_unit<'a>(figure: &str, unit: &'a str) -> Option<(f64, &'a str)> {
    let value = figure.replace(',', "").parse().ok()?;
    units::seconds(unit).map(|_| (value, unit))
}

/// Returns the file with these benchmarks, if there are any.
fn of(benchmarks: impl IntoIterator<Item = Benchmark>) -> Option<SampleFile> {
    let mut file = SampleFile::default();
    for benchmark in benchmarks {
        file.add(benchmark);
    }
    (!file.benchmarks.is_empty()).then(|| file.of_processes())
}

/// Reads `test NAME ... bench:  1,234.56 ns/iter (+/- 56) = 12 MB/s`.
pub(super) fn libtest(input: &Input) -> Option<SampleFile> {
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench:")?;
        let mut words = rest.split_whitespace();
        let (value, unit) = (words.next()?, words.next()?.strip_suffix("/iter")?);
        let (value, unit) = figure_and_unit(value, unit)?;
        Some(Benchmark::time(name.trim(), unit, vec![Run::new(value)]))
    };
    of(input.plain()?.lines().filter_map(one))
}

/// Reads `NAME  time:   [1.1 ns 1.2 ns 1.3 ns]`, whose name may be in the line before.
pub(super) fn criterion(input: &Input) -> Option<SampleFile> {
    let text = input.plain()?;
    let mut before = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if line.contains("time:   [") {
            found.push((before, line));
        } else if !line.starts_with(' ') {
            before = line.trim();
        }
    }
    of(found.into_iter().filter_map(|(before, line)| {
        let (name, rest) = line.split_once("time:   [")?;
        let words: Vec<&str> = rest.split_once(']')?.0.split_whitespace().collect();
        let [_, _, value, unit, ..] = words[..] else {
            return None;
        };
        let name = if name.trim().is_empty() {
            before
        } else {
            name.trim()
        };
        let (value, unit) = figure_and_unit(value, unit)?;
        Some(Benchmark::time(name, unit, vec![Run::new(value)]))
    }))
}

/// A figure of a text: the words that stand before it, its metric and its unit.
type Figure = (&'static str, &'static str, &'static str);

/// Reads the figures of a text in which each stands behind its own words. The first decides.
fn figures(text: &str, name: &str, figures: &[Figure]) -> Option<SampleFile> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        for (at, (words, metric, unit)) in figures.iter().enumerate() {
            let Some(rest) = line.strip_prefix(words) else {
                continue;
            };
            // sysbench has the figure per second in parentheses.
            let rest = rest
                .split_once('(')
                .filter(|(_, r)| r.contains("per sec"))
                .map_or(rest, |(_, r)| r);
            let figure = rest.split_whitespace().next().unwrap_or_default();
            let digits = figure
                .trim_end_matches(char::is_alphabetic)
                .trim_end_matches('µ');
            let own = &figure[digits.len()..];
            let Ok(value) = digits.parse::<f64>() else {
                continue;
            };
            let unit = if own.is_empty() { unit } else { own };
            let runs = vec![Run::new(value)];
            found.push(Benchmark::figure(name, metric, unit, runs).deciding(at == 0));
        }
    }
    let decides = found.iter().any(|b| b.role == Role::Primary);
    of(found.into_iter().filter(|_| decides))
}

/// What the tests of sysbench print, of which the first that is not zero decides.
const SYSBENCH: [Figure; 6] = [
    ("transactions:", "transactions", "ops/s"),
    ("Total operations:", "operations", "ops/s"),
    ("events per second:", "events", "ops/s"),
    ("events/s (eps):", "events", "ops/s"),
    ("reads/s:", "reads", "ops/s"),
    ("writes/s:", "writes", "ops/s"),
];

pub(super) fn sysbench(input: &Input) -> Option<SampleFile> {
    let text = input.plain().filter(|text| text.contains("sysbench "))?;
    let is = |(words, ..): &Figure| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|line| line.starts_with(words) && !line.ends_with(" 0.00"))
    };
    let all = [
        SYSBENCH.into_iter().find(is)?,
        ("avg:", "mean latency", "ms"),
        ("95th percentile:", "p95 latency", "ms"),
    ];
    figures(text, "sysbench", &all)
}

pub(super) fn wrk(input: &Input) -> Option<SampleFile> {
    let text = input
        .plain()
        .filter(|text| text.contains("Requests/sec:"))?;
    let of = |line| Some(str::split_once(line, "test @ ")?.1.trim());
    let mut file = figures(
        text,
        text.lines().find_map(of).unwrap_or("wrk"),
        &[
            ("Requests/sec:", "requests", "ops/s"),
            ("Latency", "mean latency", "ms"),
            ("99%", "p99 latency", "ms"),
            ("99.000%", "p99 latency", "ms"),
        ],
    )?;
    let failed = text.lines().map(str::trim).filter(|line| {
        line.starts_with("Non-2xx or 3xx responses:") || line.starts_with("Socket errors:")
    });
    file.notes
        .extend(failed.map(|line| format!("{line}; the rate counts them.")));
    Some(file)
}

/// `NAME x 1,212,759 ops/sec ±0.74% (93 runs sampled)`.
pub(super) fn is_benchmark_js(input: &Input) -> bool {
    let is = |line: &str| line.contains(" ops/sec ±") && line.contains("runs sampled");
    input.text.lines().any(is)
}

/// `3;fio-3.28;job;0;0;...`, of which version 2 to 5 are known.
pub(super) fn is_fio_terse(input: &Input) -> bool {
    let mut fields = input.text.split(';');
    let version = fields.next().unwrap_or_default().trim();
    version.len() == 1 && fields.next().is_some_and(|name| name.starts_with("fio-"))
}

/// Returns whether the first line has one of these starts, quoted or not.
pub(super) fn begins(input: &Input, starts: &[&str]) -> bool {
    let first = input.text.lines().next().unwrap_or_default();
    let first = first.replace('"', "").replace(';', ",");
    starts.iter().any(|start| first.starts_with(start))
}
