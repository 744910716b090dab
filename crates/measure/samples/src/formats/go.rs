//! Go's benchmarks: the text of `go test -bench`, in the form that its proposal
//! 14313 describes, or the events of `go test -json`.

use super::fields::text;
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use locklab_judge::Direction;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of a configuration that say where the figures were taken.
const SETTING: [(&str, &str); 3] = [("goos", "OS"), ("goarch", "architecture"), ("cpu", "CPU")];

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    if let Some(text) = of_events(input) {
        return Some(of_text(&text));
    }
    let text = input.plain()?;
    text.lines()
        .any(|line| result(line).is_some())
        .then(|| of_text(text))
}

/// Returns the text behind the events of `go test -json`, whose lines may be in several
/// events.
fn of_events(input: &Input) -> Option<String> {
    if input.lines.is_empty() || input.lines.iter().any(|e| e.get("Action").is_none()) {
        return None;
    }
    // Packages are tested at the same time, so each has its own text.
    let mut packages: BTreeMap<&str, String> = BTreeMap::new();
    for event in &input.lines {
        let output = packages.entry(text(event, "Package")).or_default();
        output.push_str(text(event, "Output"));
    }
    Some(packages.into_values().map(|text| text + "\n").collect())
}

/// A figure with its unit, such as 12.5 and "ns/op".
type Figure<'a> = (f64, &'a str);

/// Returns the name of a result, its iterations, and its figures.
fn result(line: &str) -> Option<(&str, f64, Vec<Figure<'_>>)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.strip_prefix("Benchmark")?;
    let iterations: u64 = words.next()?.parse().ok()?;
    let rest: Vec<&str> = words.collect();
    let pair = |two: &[&'_ str]| Some((two.first()?.parse().ok()?, two.len()));
    let figures = rest.chunks(2).map_while(|two| match pair(two)? {
        (figure, 2) => Some((figure, two[1])),
        _ => None,
    });
    let figures: Vec<Figure> = figures.collect();
    (!figures.is_empty()).then_some((name, iterations as f64, figures))
}

fn of_text(text: &str) -> SampleFile {
    let mut file = SampleFile::default();
    let mut better: BTreeMap<&str, Direction> = BTreeMap::new();
    let mut setting = SETTING.map(|(_, name)| (name, None));
    let (mut package, mut process, mut has_results) = ("", 0, false);
    let mut failed = BTreeSet::new();
    for line in text.lines() {
        let configuration = line.split_once(": ").filter(|(key, _)| !key.contains(' '));
        if let Some((key, value)) = configuration {
            // A process begins with these lines; files may be appended. Other programs print
            // such lines too.
            if matches!(key, "goos" | "pkg") {
                process += usize::from(std::mem::take(&mut has_results));
            }
            if key == "pkg" {
                package = value.trim();
            } else if let Some(at) = SETTING.iter().position(|(of, _)| *of == key) {
                setting[at].1 = Some(value.trim());
            }
        } else if let Some(unit) = line.strip_prefix("Unit ") {
            unit_line(unit, &mut better);
        } else if let Some(name) = line.trim().strip_prefix("--- FAIL: ") {
            failed.insert(name.split_whitespace().next().unwrap_or(name));
        } else if let Some((name, iterations, figures)) = result(line) {
            has_results = true;
            let decides = figures.iter().position(|(_, unit)| *unit == "ns/op");
            for (at, (figure, unit)) in figures.iter().enumerate() {
                let decides = at == decides.unwrap_or(0);
                let run = Run::of_process(*figure, process);
                let run = match units::seconds(unit) {
                    Some(size) if decides => run.lasting(iterations * figure * size),
                    _ => run,
                };
                let benchmark = Benchmark {
                    package: package.to_owned(),
                    direction: *better.get(unit).unwrap_or(&units::direction(unit)),
                    ..Benchmark::figure(name, unit, unit, vec![run])
                };
                file.add(benchmark.deciding(decides).in_setting(&setting));
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
