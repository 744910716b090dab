//! Columns of names and values: CSV, or the same with tabs or semicolons.
//!
//! With a row of titles, columns are found by them; without, the first column is the name
//! and all others are values. A text in which any row is something else is no table, unless
//! its titles say that it is one.

use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use csv::StringRecord;
use locklab_judge::Direction;
use std::collections::HashMap;

/// Holds what the titles of columns mean.
const TITLES: [(&str, &[&str]); 6] = [
    (
        "name",
        &["name", "benchmark", "test", "workload", "case", "command"],
    ),
    (
        "value",
        &[
            "value", "time", "seconds", "elapsed", "duration", "score", "result", "ns", "us", "ms",
            "s",
        ],
    ),
    ("metric", &["metric", "event"]),
    ("unit", &["unit", "units"]),
    ("at", &["at", "timestamp", "started", "order", "run_at"]),
    ("better", &["better", "direction"]),
];

/// The titles of what hyperfine writes with `--export-csv`.
const HYPERFINE: [&str; 3] = ["command", "mean", "stddev"];

/// The columns of a table.
#[derive(Default)]
struct Columns {
    name: Option<usize>,
    values: Vec<usize>,
    metric: Option<usize>,
    unit: Option<usize>,
    at: Option<usize>,
    better: Option<usize>,
    /// The unit that the title of the value names.
    own_unit: String,
    /// The names of columns that are a benchmark each.
    benchmarks: Vec<String>,
}

impl Columns {
    fn of_titles(row: &StringRecord, rest: &[StringRecord]) -> Option<Self> {
        let titles: Vec<String> = row.iter().map(str::to_lowercase).collect();
        let find = |what: &str| {
            let (_, names) = TITLES.iter().find(|(name, _)| *name == what)?;
            let places = names
                .iter()
                .filter_map(|n| titles.iter().position(|t| t == n));
            places.into_iter().next()
        };
        if titles.iter().zip(HYPERFINE).all(|(title, of)| title == of) {
            return Some(Self {
                name: Some(0),
                values: vec![1],
                own_unit: "s".into(),
                ..Self::default()
            });
        }
        // "time [ms]" and "time (ms)" are the time, and name its unit.
        let bracketed = |title: &String| {
            let (name, unit) = title.split_once(['[', '('])?;
            let known = TITLES[1].1.contains(&name.trim());
            known.then(|| unit.trim_end_matches([']', ')']).to_owned())
        };
        let with_unit = titles.iter().position(|t| bracketed(t).is_some());
        let Some(value) = find("value").or(with_unit) else {
            return Self::of_benchmarks(row, rest, find("name"));
        };
        let own_unit = match titles[value].as_str() {
            "seconds" => "s".into(),
            unit @ ("ns" | "us" | "ms" | "s") => unit.into(),
            _ => bracketed(&titles[value]).unwrap_or_default(),
        };
        Some(Self {
            name: find("name"),
            values: vec![value],
            metric: find("metric"),
            unit: find("unit"),
            at: find("at"),
            better: find("better"),
            own_unit,
            benchmarks: Vec::new(),
        })
    }

    /// Returns the columns of a table whose titles are names of benchmarks, or that has a
    /// name and then only values; `None` if any row has anything else.
    fn of_benchmarks(
        titles: &StringRecord,
        rest: &[StringRecord],
        name: Option<usize>,
    ) -> Option<Self> {
        let first = usize::from(name.is_some());
        let whole = |row: &StringRecord| {
            row.len() == titles.len() && row.iter().skip(first).all(|cell| number(cell).is_some())
        };
        let fits = name.is_none_or(|at| at == 0)
            && titles.len() >= 2
            && !rest.is_empty()
            && titles.iter().all(|title| !title.is_empty())
            && rest.iter().all(whole);
        fits.then(|| Self {
            name,
            values: (first..titles.len()).collect(),
            benchmarks: match name {
                Some(_) => Vec::new(),
                None => titles.iter().map(str::to_owned).collect(),
            },
            ..Self::default()
        })
    }

    /// Returns the columns of a table without titles; `None` if any row is something else.
    fn without_titles(rows: &[StringRecord]) -> Option<Self> {
        let alone = rows[0].len() == 1;
        let whole = |row: &StringRecord| match alone {
            true => row.len() == 1 && number(&row[0]).is_some(),
            false => {
                row.len() >= 2
                    && number(&row[0]).is_none()
                    && row
                        .iter()
                        .skip(1)
                        .all(|cell| cell.is_empty() || number(cell).is_some())
            }
        };
        rows.iter().all(whole).then(|| Self {
            name: (!alone).then_some(0),
            values: (usize::from(!alone)..rows.iter().map(StringRecord::len).max().unwrap_or(0))
                .collect(),
            ..Self::default()
        })
    }
}

/// Returns a number. Its decimal point may be a comma, which no separator of columns is then.
fn number(text: &str) -> Option<f64> {
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => {
            let (whole, fraction) = text.split_once(',')?;
            let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
            let plain = digits(whole.trim_start_matches('-')) && !fraction.is_empty();
            (plain && digits(fraction)).then(|| format!("{whole}.{fraction}").parse().ok())?
        }
    }
}

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    // This is how perf's files begin.
    let text = input
        .plain()
        .filter(|text| !text.starts_with("# started on"))?;
    // Of a table that the caller named, the reason is of use.
    let refused = |why: &str| {
        input.asked.then(|| SampleFile {
            notes: vec![why.into()],
            ..SampleFile::default()
        })
    };
    let lines = || {
        text.lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
    };
    let first = lines().next().unwrap_or_default();
    let separator = [b';', b'\t', b',']
        .into_iter()
        .find(|c| first.as_bytes().contains(c) && (*c != b',' || number(first).is_none()));
    let rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(separator.unwrap_or(b';'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes())
        .into_records()
        .map(Result::unwrap_or_default);
    let rows: Vec<StringRecord> = rows.collect();
    let has_titles = rows.first()?.iter().all(|cell| number(cell).is_none());
    let columns = match has_titles {
        true => Columns::of_titles(&rows[0], &rows[1..]),
        false => Columns::without_titles(&rows),
    };
    let Some(columns) = columns else {
        return refused("no column is called value; give the titles name,value");
    };
    let mut file = SampleFile::default();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    let mut skipped = Skipped::default();
    for (line, row) in (1..).zip(&rows).skip(usize::from(has_titles)) {
        let at = |column: Option<usize>| column.and_then(|c| row.get(c)).unwrap_or_default();
        let mut any = false;
        for column in &columns.values {
            let Some(value) = number(at(Some(*column))) else {
                continue;
            };
            any = true;
            let unit = match at(columns.unit) {
                "" => columns.own_unit.as_str(),
                unit => unit,
            };
            let run = Run {
                at: number(at(columns.at)),
                ..Run::new(value)
            };
            let run = match units::seconds(unit) {
                Some(size) if !units::is_rate(unit) => run.lasting(value * size),
                _ => run,
            };
            let (name, metric) = (at(columns.name), at(columns.metric));
            let name = match columns.benchmarks.get(*column) {
                Some(name) => name,
                None if name.is_empty() => "all",
                None => name,
            };
            let key = (name.to_owned(), metric.to_owned());
            let place = known.entry(key).or_insert_with(|| {
                file.benchmarks.push(Benchmark {
                    metric: if metric.is_empty() { "value" } else { metric }.to_owned(),
                    direction: match at(columns.better).to_lowercase().as_str() {
                        "higher" | "more" | "up" | "larger" => Direction::HigherIsBetter,
                        "lower" | "less" | "down" | "smaller" => Direction::LowerIsBetter,
                        _ => units::direction(unit),
                    },
                    drifts: units::drifts(unit),
                    ..Benchmark::time(name, unit, Vec::new())
                });
                file.benchmarks.len() - 1
            });
            let benchmark = &mut file.benchmarks[*place];
            match units::factor(unit, &benchmark.unit) {
                Some(factor) => benchmark.runs.push(Run {
                    value: run.value * factor,
                    ..run
                }),
                None => {
                    any = false;
                    break;
                }
            }
        }
        if !any {
            skipped.add(line);
        }
    }
    file.notes.extend(skipped.note());
    if file.benchmarks.is_empty() {
        return refused("no row has a name and a value");
    }
    // What a table does not say is taken for what people write: a row a process.
    Some(file.of_processes())
}

/// Rows that could not be read.
#[derive(Default)]
struct Skipped {
    count: usize,
    first: usize,
}

impl Skipped {
    fn add(&mut self, line: usize) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    fn note(&self) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(format!(
                "Row {} has no value in the unit of its benchmark, and is not read.",
                self.first
            )),
            n => Some(format!(
                "{n} rows, the first of which is row {}, have no value in the unit of their benchmark, and are not read.",
                self.first
            )),
        }
    }
}
