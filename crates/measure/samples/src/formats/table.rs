//! Columns of names and values: CSV, or the same with tabs or semicolons.
//!
//! With a row of titles, columns are found by them; without, the first column is
//! the name and all others are values.

use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::formats::format::Format;
use crate::units;
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
}

impl Columns {
    fn of_titles(titles: &csv::StringRecord) -> Option<Self> {
        let titles: Vec<String> = titles.iter().map(|t| t.trim().to_lowercase()).collect();
        let find = |what: &str| {
            let (_, names) = TITLES.iter().find(|(name, _)| *name == what)?;
            let places = names
                .iter()
                .filter_map(|n| titles.iter().position(|t| t == n));
            places.into_iter().next()
        };
        // "time [ms]" and "time (ms)" are the time, and name its unit.
        let bracketed = |title: &String| {
            let (name, unit) = title.split_once(['[', '('])?;
            let known = TITLES[1].1.contains(&name.trim());
            known.then(|| unit.trim_end_matches([']', ')']).to_owned())
        };
        let with_unit = titles.iter().position(|t| bracketed(t).is_some());
        let value = find("value").or(with_unit)?;
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
        })
    }
}

pub(super) fn read(text: &str) -> Result<SampleFile, String> {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or_default();
    let separator = [b',', b'\t', b';']
        .into_iter()
        .max_by_key(|c| first.bytes().filter(|b| b == c).count());
    let mut rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(separator.unwrap_or(b','))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut file = SampleFile::new(Format::Csv);
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    let mut columns: Option<Columns> = None;
    let mut skipped = Skipped::default();
    for (line, row) in (1..).zip(rows.records()) {
        let Ok(row) = row else {
            skipped.add(line);
            continue;
        };
        if columns.is_none() {
            let is_number = |text: &str| text.parse::<f64>().is_ok();
            if !row.iter().skip(1).any(is_number) && !row.iter().all(is_number) {
                let Some(found) = Columns::of_titles(&row) else {
                    return Err("no column is called value; give the titles name,value".into());
                };
                columns = Some(found);
                continue;
            }
            let alone = row.len() == 1;
            columns = Some(Columns {
                name: (!alone).then_some(0),
                values: (usize::from(!alone)..row.len()).collect(),
                ..Columns::default()
            });
        }
        let Some(columns) = &columns else { continue };
        let at = |column: Option<usize>| column.and_then(|c| row.get(c)).unwrap_or_default();
        let mut any = false;
        let values = match columns.values.as_slice() {
            // Without titles, a row may be longer than the first.
            [first, ..]
                if columns.unit.is_none()
                    && columns.name == Some(0)
                    && columns.values.len() > 1 =>
            {
                (*first..row.len()).collect()
            }
            columns => columns.to_vec(),
        };
        for column in values {
            let Ok(value) = row.get(column).unwrap_or_default().parse::<f64>() else {
                continue;
            };
            any = true;
            let unit = match at(columns.unit) {
                "" => columns.own_unit.as_str(),
                unit => unit,
            };
            let run = Run {
                at: at(columns.at).parse().ok(),
                ..Run::new(value)
            };
            let run = match units::seconds(unit) {
                Some(size) if !units::is_rate(unit) => run.lasting(value * size),
                _ => run,
            };
            let (name, metric) = (at(columns.name), at(columns.metric));
            let name = if name.is_empty() { "all" } else { name };
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
        return Err("no row has a name and a value".into());
    }
    Ok(file)
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
