//! Go's benchmarks: the text of `go test -bench`, in the form that its proposal
//! 14313 describes, or the events of `go test -json`.

use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use crate::units;
use locklab_judge::{Direction, Role};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether a text has a line of a result.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| result(line).is_some())
}

/// Returns the text behind the events of `go test -json`, whose lines may be in several
/// events.
pub(super) fn of_json_lines(text: &str) -> Option<String> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let is_event = |line: &str| {
        let event: Option<Value> = serde_json::from_str(line).ok();
        event.filter(|e| e.get("Action").is_some())
    };
    is_event(first)?;
    // Packages are tested at the same time, so each has its own text.
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    for event in text.lines().filter_map(is_event) {
        let package = super::fields::text(&event, "Package").to_owned();
        let output = packages.entry(package).or_default();
        output.push_str(super::fields::text(&event, "Output"));
    }
    Some(packages.into_values().map(|text| text + "\n").collect())
}

/// A figure with its unit, such as 12.5 and "ns/op".
type Figure<'a> = (f64, &'a str);

/// Returns the name of a result, its iterations, and its figures.
fn result(line: &str) -> Option<(&str, f64, Vec<Figure<'_>>)> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|name| name.starts_with("Benchmark"))?;
    let iterations: u64 = words.next()?.parse().ok()?;
    let rest: Vec<&str> = words.collect();
    let pair = |pair: &[&'_ str]| Some((pair.first()?.parse().ok()?, pair.len()));
    let figures = rest.chunks(2).map_while(|two| match pair(two)? {
        (figure, 2) => Some((figure, two[1])),
        _ => None,
    });
    let figures: Vec<Figure> = figures.collect();
    (!figures.is_empty()).then_some((name, iterations as f64, figures))
}

pub(super) fn read(text: &str) -> SampleFile {
    let mut file = SampleFile::new(Format::Go);
    file.one_process = true;
    let mut better: BTreeMap<&str, Direction> = BTreeMap::new();
    let mut packages = BTreeSet::new();
    let mut package = "";
    let mut failed = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("pkg:") {
            package = name.trim();
            packages.insert(package);
        } else if let Some(unit) = line.strip_prefix("Unit ") {
            unit_line(unit, &mut better);
        } else if let Some(name) = line.trim().strip_prefix("--- FAIL: ") {
            failed.insert(name.split_whitespace().next().unwrap_or(name));
        } else if let Some((name, iterations, figures)) = result(line) {
            let name = name.strip_prefix("Benchmark").unwrap_or(name);
            let name = format!("{package} {name}").trim().to_owned();
            let decides = figures.iter().position(|(_, unit)| *unit == "ns/op");
            for (at, (figure, unit)) in figures.iter().enumerate() {
                let run = Run::new(*figure);
                let decides = at == decides.unwrap_or(0);
                file.add(Benchmark {
                    metric: (*unit).to_owned(),
                    direction: *better.get(unit).unwrap_or(&units::direction(unit)),
                    role: if decides {
                        Role::Primary
                    } else {
                        Role::Screening
                    },
                    drifts: units::drifts(unit),
                    ..Benchmark::time(
                        name.clone(),
                        *unit,
                        vec![match units::seconds(unit) {
                            Some(size) if decides => run.lasting(iterations * figure * size),
                            _ => run,
                        }],
                    )
                });
            }
        }
    }
    if packages.len() <= 1 {
        let prefix = format!("{package} ");
        for benchmark in &mut file.benchmarks {
            if let Some(name) = benchmark.name.strip_prefix(&prefix) {
                benchmark.name = name.to_owned();
            }
        }
    }
    let failed = failed.iter().map(|name| format!("{name} failed."));
    file.notes.extend(failed);
    file
}

/// Reads `Unit ns/op better=lower`.
fn unit_line<'a>(line: &'a str, better: &mut BTreeMap<&'a str, Direction>) {
    let mut words = line.split_whitespace();
    let Some(unit) = words.next() else {
        return;
    };
    for word in words {
        match word {
            "better=higher" => better.insert(unit, Direction::HigherIsBetter),
            "better=lower" => better.insert(unit, Direction::LowerIsBetter),
            _ => None,
        };
    }
}
