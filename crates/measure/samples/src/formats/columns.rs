//! Columns of names and values: CSV, or the same with tabs or semicolons.
//!
//! With a row of titles, columns are found by them; without, the first column is the name
//! and all others are values. A column of another title beside the value is a parameter, a
//! part of the name. A text in which any row is something else is no table, unless its
//! titles say that it is one; statistics of samples are never read as samples.

use super::bencher::direction;
use super::input::Input;
use crate::benchmark::{Benchmark, Run, SampleFile};
use crate::units;
use csv::StringRecord;
use locklab_judge::Direction;
use std::collections::HashMap;

#[rustfmt::skip]
const NAME: &[&str] = &["name", "benchmark", "test", "workload", "case", "command", "label"];
#[rustfmt::skip]
const VALUE: &[&str] = &[
    "value", "time", "seconds", "elapsed", "duration", "score", "result", "ns", "us", "ms", "s",
];
const METRIC: &[&str] = &["metric", "event"];
const UNIT: &[&str] = &["unit", "units"];
const AT: &[&str] = &["at", "timestamp", "started", "order", "run_at"];
const BETTER: &[&str] = &["better", "direction"];

/// Titles of what is known of each run and is no part of its name.
#[rustfmt::skip]
const ASIDE: &[&str] = &[
    "run", "iteration", "rep", "repetition", "round", "sample", "index", "id", "#", "date",
    "comment", "note", "commit", "sha", "revision", "branch", "build", "pid", "seed",
];

/// Titles of statistics, which are no samples.
#[rustfmt::skip]
const STATISTICS: &[&str] = &[
    "mean", "avg", "average", "median", "min", "max", "stddev", "stdev", "std", "sd", "error",
    "var", "variance", "cv", "p50", "p90", "p95", "p99", "q1", "q3", "iqr", "n", "count",
    "samples", "iterations", "rounds", "outliers", "rank", "user", "system",
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
    /// Columns of which each cell is a part of the name, with their titles.
    parameters: Vec<(usize, String)>,
    /// The unit that the title of the value names.
    own_unit: String,
    /// The names of columns that are a benchmark each.
    benchmarks: Vec<String>,
}

impl Columns {
    fn of_titles(row: &StringRecord, rest: &[StringRecord]) -> Result<Self, &'static str> {
        let titles: Vec<String> = row.iter().map(str::to_lowercase).collect();
        let find = |names: &[&str]| {
            let mut places = names.iter();
            places.find_map(|name| titles.iter().position(|title| title == name))
        };
        // These are the titles of what hyperfine writes with `--export-csv`.
        let is_hyperfine = titles.starts_with(&["command", "mean", "stddev"].map(String::from));
        // "time [ms]" and "time (ms)" are the time, and name its unit.
        let bracketed = |title: &String| {
            let (name, unit) = title.split_once(['[', '('])?;
            let unit = unit.trim_end_matches([']', ')']).to_owned();
            VALUE.contains(&name.trim()).then_some(unit)
        };
        let with_unit = titles.iter().position(|t| bracketed(t).is_some());
        let Some(value) = (is_hyperfine.then_some(1)).or(find(VALUE)).or(with_unit) else {
            return Self::of_benchmarks(row, rest, find(NAME));
        };
        let own_unit = match titles[value].as_str() {
            "seconds" => "s".into(),
            "mean" => "s".into(),
            unit @ ("ns" | "us" | "ms" | "s") => unit.into(),
            title => bracketed(&title.to_owned()).unwrap_or_default(),
        };
        let known = |title: &str| {
            let of = [NAME, METRIC, UNIT, AT, BETTER, ASIDE, STATISTICS];
            of.iter().any(|titles| titles.contains(&title))
        };
        let is_number = |at: usize| {
            let mut cells = rest.iter().filter_map(|row| row.get(at));
            cells.all(|cell| number(cell).is_some())
        };
        let may_be_value =
            |(at, title): &(usize, &String)| VALUE.contains(&title.as_str()) && is_number(*at);
        let others = titles.iter().enumerate().filter(|(at, _)| *at != value);
        let (values, others): (Vec<_>, Vec<_>) = others.partition(may_be_value);
        if titles[value] != "value" && !values.is_empty() {
            return Err("several of its columns may be the value; call one of them value");
        }
        let others = others.into_iter().filter(|(_, title)| !known(title));
        let parameter =
            |(at, title): (usize, &String)| (at, title.trim_start_matches("parameter_").to_owned());
        Ok(Self {
            name: find(NAME),
            values: vec![value],
            metric: find(METRIC),
            unit: find(UNIT),
            at: find(AT),
            better: find(BETTER),
            parameters: others.map(parameter).collect(),
            own_unit,
            benchmarks: Vec::new(),
        })
    }

    /// Returns the columns of a table whose titles are names of benchmarks, or that has a
    /// name and then numbered values.
    fn of_benchmarks(
        titles: &StringRecord,
        rest: &[StringRecord],
        name: Option<usize>,
    ) -> Result<Self, &'static str> {
        let first = usize::from(name.is_some());
        let whole = |row: &StringRecord| {
            row.len() == titles.len() && row.iter().skip(first).all(|cell| number(cell).is_some())
        };
        let fits = name.is_none_or(|at| at == 0)
            && titles.len() >= 2
            && !rest.is_empty()
            && titles.iter().all(|title| !title.is_empty())
            && rest.iter().all(whole);
        if !fits {
            return Err("no column is called value; give the titles name,value");
        }
        let is_statistic = |title: &str| {
            let lower = title.to_lowercase();
            let mut words = lower.split(|c: char| !c.is_alphanumeric());
            words.any(|word| STATISTICS.contains(&word) || ASIDE.contains(&word))
        };
        // 1, 2, 4 beside each other are a parameter, or count rows.
        let grows = |column: usize| {
            let cells: Vec<f64> = rest.iter().filter_map(|row| number(&row[column])).collect();
            cells.len() > 2
                && cells.windows(2).all(|two| two[0] < two[1])
                && cells.iter().all(|cell| cell.fract() == 0.0)
        };
        let numbered = |title: &str| title.ends_with(|c: char| c.is_ascii_digit());
        let odd = match name {
            Some(_) => !titles.iter().skip(1).all(numbered),
            None => titles.iter().any(is_statistic) || (0..titles.len()).any(grows),
        };
        if odd {
            return Err(
                "its columns are statistics, parameters or two sides, and not samples; give a \
                 row for each run with the titles name,value",
            );
        }
        Ok(Self {
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
        let first = usize::from(rows[0].len() > 1);
        let whole = |row: &StringRecord| {
            let is_value = |cell: &str| number(cell).is_some() || first == 1 && cell.is_empty();
            row.len() > first
                && (first == 1 || row.len() == 1)
                && row.iter().take(first).all(|name| number(name).is_none())
                && row.iter().skip(first).all(is_value)
        };
        rows.iter().all(whole).then(|| Self {
            name: (first == 1).then_some(0),
            values: (first..rows.iter().map(StringRecord::len).max().unwrap_or(0)).collect(),
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

/// Returns whether a comma may be within thousands in these numbers: 999 and 1,001.
fn are_thousands<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> bool {
    let numbers = || cells.clone().filter(|cell| number(cell).is_some());
    let three = |(whole, fraction): (&str, &str)| {
        let whole = whole.trim_start_matches('-');
        fraction.len() == 3 && whole.len() < 4 && !whole.starts_with('0')
    };
    cells.clone().any(|cell| cell.contains(','))
        && numbers().any(|cell| cell.contains(','))
        && (numbers().any(|cell| cell.contains('.'))
            || numbers().any(|cell| !cell.contains(','))
                && numbers().filter_map(|cell| cell.split_once(',')).all(three))
}

pub(super) fn read(input: &Input) -> Option<SampleFile> {
    // This is how perf's files begin.
    let text = input
        .plain()
        .filter(|text| !text.starts_with("# started on"))?;
    let refused = |why: &str| {
        Some(SampleFile {
            notes: vec![why.into()],
            ..SampleFile::default()
        })
    };
    let is_row = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let first = text.lines().find(is_row).unwrap_or_default();
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
        true => match Columns::of_titles(&rows[0], &rows[1..]) {
            Ok(columns) => columns,
            Err(why) => return refused(why).filter(|_| input.asked),
        },
        false => Columns::without_titles(&rows)?,
    };
    let rows = || (1..).zip(&rows).skip(usize::from(has_titles));
    let cells = rows().flat_map(|(_, row)| columns.values.iter().filter_map(|c| row.get(*c)));
    if are_thousands(cells) {
        return refused(
            "a comma of its numbers may be a decimal point or part of thousands; write them \
             without thousands",
        );
    }
    let mut file = SampleFile::default();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    let mut skipped = Vec::new();
    for (line, row) in rows() {
        let at = |column: Option<usize>| column.and_then(|c| row.get(c)).unwrap_or_default();
        let mut any = false;
        for column in &columns.values {
            let Some(value) = number(at(Some(*column))) else {
                continue;
            };
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
            let mut name = match columns.benchmarks.get(*column) {
                Some(name) => name,
                None => at(columns.name),
            }
            .to_owned();
            for (column, title) in &columns.parameters {
                name.push_str(&format!(" {title}={}", at(Some(*column))));
            }
            let name = match name.trim() {
                "" => "all",
                name => name,
            };
            let metric = at(columns.metric);
            let key = (name.to_owned(), metric.to_owned());
            let place = known.entry(key).or_insert_with(|| {
                let direction = match at(columns.better).to_lowercase().as_str() {
                    "higher" | "more" | "up" | "larger" => Direction::HigherIsBetter,
                    "lower" | "less" | "down" | "smaller" => Direction::LowerIsBetter,
                    _ => match columns.benchmarks.get(*column) {
                        Some(title) => units::direction(title),
                        None => direction(&mut file, unit),
                    },
                };
                file.benchmarks.push(Benchmark {
                    metric: if metric.is_empty() { "value" } else { metric }.to_owned(),
                    direction,
                    drifts: units::drifts(unit),
                    ..Benchmark::time(name, unit, Vec::new())
                });
                file.benchmarks.len() - 1
            });
            let benchmark = &mut file.benchmarks[*place];
            let Some(factor) = units::factor(unit, &benchmark.unit) else {
                any = false;
                break;
            };
            any = true;
            benchmark.runs.push(Run {
                value: run.value * factor,
                ..run
            });
        }
        if !any {
            skipped.push(line.to_string());
        }
    }
    if let Some(first) = skipped.first() {
        file.notes.push(match skipped.len() {
            1 => format!("Row {first} has no value in the unit of its benchmark, and is not read."),
            n => format!(
                "{n} rows, the first of which is row {first}, have no value in the unit of their \
                 benchmark, and are not read."
            ),
        });
    }
    if file.benchmarks.is_empty() {
        return refused("no row has a name and a value").filter(|_| input.asked);
    }
    // What a table does not say is taken for what people write: a row a process.
    Some(file.of_processes())
}
