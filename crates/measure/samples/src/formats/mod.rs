//! The files of samples, by the programs that write them: one reader each.
//!
//! A reader is found by what a file holds, never by its name.

mod criterion;
mod go;
mod google;
mod hyperfine;
mod jmh;
mod locklab;
mod perf_stat;
mod pytest;
mod table;

use crate::benchmark::{SampleFile, Unreadable};
use crate::salvage;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

/// A form of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// hyperfine --export-json
    Hyperfine,
    /// go test -bench . -count 20, as text or -json
    Go,
    /// Google Benchmark, --benchmark_out=FILE --benchmark_repetitions=20
    Google,
    /// criterion's sample.json, or cargo criterion --message-format=json
    Criterion,
    /// pytest --benchmark-json=FILE
    Pytest,
    /// JMH, -rf json
    Jmh,
    /// perf stat -x, --append, once for each run
    PerfStat,
    /// Columns of names and values
    Csv,
    /// The JSON of a comparison by Locklab
    Locklab,
}

impl Format {
    /// Returns the program that writes it.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Hyperfine => "hyperfine",
            Self::Go => "Go's benchmarks",
            Self::Google => "Google Benchmark",
            Self::Criterion => "criterion",
            Self::Pytest => "pytest-benchmark",
            Self::Jmh => "JMH",
            Self::PerfStat => "perf stat",
            Self::Csv => "a CSV",
            Self::Locklab => "Locklab",
        }
    }

    /// Returns every name of a form, for a message.
    pub(crate) fn names() -> String {
        let names = Self::value_variants().iter();
        let names = names.filter_map(|f| Some(f.to_possible_value()?.get_name().to_owned()));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Reads a file. `name` is what its only benchmark is called where the file
/// itself does not say it.
///
/// # Errors
/// [`Unreadable`] if nothing can be read of it. What can be read in part is
/// read, with a note.
pub fn read(text: &str, name: &str, format: Option<Format>) -> Result<SampleFile, Unreadable> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(Unreadable::Empty);
    }
    let lines_of_json = text.lines().filter(|line| line.starts_with('{')).count() > 1;
    if let Some(text) = go::of_json_lines(text) {
        return found(format, Format::Go, go::read(&text));
    }
    if lines_of_json && let Some(file) = criterion::read_messages(text) {
        return found(format, Format::Criterion, file);
    }
    if text.trim_start().starts_with(['{', '[']) {
        return read_json(text, name, format);
    }
    let recognised = match format {
        Some(format) => format,
        None if go::is(text) => Format::Go,
        None if perf_stat::is(text) => Format::PerfStat,
        None => Format::Csv,
    };
    let file = match recognised {
        Format::Go => go::read(text),
        Format::PerfStat => perf_stat::read(text),
        Format::Csv => match (table::read(text), format) {
            (Ok(file), _) => file,
            (Err(_), None) => return Err(Unreadable::Unknown),
            (Err(why), Some(format)) => return Err(Unreadable::NoBenchmark(format, why)),
        },
        other => return Err(Unreadable::NotThis(other)),
    };
    found(format, recognised, file)
}

fn read_json(text: &str, name: &str, format: Option<Format>) -> Result<SampleFile, Unreadable> {
    let Some((value, note)) = salvage::json(text) else {
        return Err(Unreadable::Unknown);
    };
    let recognised = recognised(&value).ok_or(match format {
        Some(format) => Unreadable::NotThis(format),
        None => Unreadable::Unknown,
    })?;
    let mut file = match recognised {
        Format::Hyperfine => hyperfine::read(&value),
        Format::Google => google::read(&value),
        Format::Criterion => criterion::read(&value, name),
        Format::Pytest => pytest::read(&value),
        Format::Jmh => jmh::read(&value),
        Format::Locklab => locklab::read(&value),
        Format::Go | Format::PerfStat | Format::Csv => return Err(Unreadable::Unknown),
    };
    file.notes.extend(note);
    found(format, recognised, file)
}

/// Returns the form of a JSON file, by the names of its fields.
fn recognised(value: &Value) -> Option<Format> {
    let has = |value: &Value, name: &str| value.get(name).is_some();
    if let Some(list) = value.as_array() {
        let of_jmh = |one: &Value| has(one, "primaryMetric") || has(one, "jmhVersion");
        return list.iter().any(of_jmh).then_some(Format::Jmh);
    }
    let of_hyperfine = |list: &Value| {
        let list = list.as_array()?;
        list.iter().all(|one| has(one, "command")).then_some(())
    };
    if value.get("results").and_then(of_hyperfine).is_some() {
        return Some(Format::Hyperfine);
    }
    if has(value, "iters") && has(value, "times") {
        return Some(Format::Criterion);
    }
    if has(value, "tool") && (has(value, "workloads") || has(value, "cells")) {
        return Some(Format::Locklab);
    }
    let benchmarks = value.get("benchmarks")?.as_array()?;
    let of_pytest = |one: &Value| has(one, "stats");
    match has(value, "machine_info") || benchmarks.iter().any(of_pytest) {
        true => Some(Format::Pytest),
        false => Some(Format::Google),
    }
}

/// Returns the file, if it is in the form that was asked for and has a benchmark.
fn found(
    asked: Option<Format>,
    recognised: Format,
    mut file: SampleFile,
) -> Result<SampleFile, Unreadable> {
    if let Some(asked) = asked
        && asked != recognised
    {
        return Err(Unreadable::NotThis(asked));
    }
    if file.benchmarks.is_empty() {
        let why = match file.notes.is_empty() {
            true => "it names no benchmark".into(),
            false => file.notes.swap_remove(0),
        };
        return Err(Unreadable::NoBenchmark(recognised, why));
    }
    Ok(file)
}

/// Returns a number of a JSON field; one that is missing, or no number, is not a number.
fn number(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// Returns the numbers of a JSON list.
fn numbers(value: Option<&Value>) -> Vec<f64> {
    let list = value.and_then(Value::as_array);
    let of = |list: &Vec<Value>| list.iter().map(|x| number(Some(x))).collect();
    list.map(of).unwrap_or_default()
}

/// Returns the text of a JSON field, or nothing.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the seconds since 1970 of a date such as `2026-11-26T14:00:00+01:00`.
fn moment(date: &str) -> Option<f64> {
    let (day, rest) = date.split_once(['T', ' '])?;
    let mut day = day.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (day.next()??, day.next()??, day.next()??);
    let zone_at = rest.find(['+', '-', 'Z']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    let mut clock = clock.split(':');
    let hour: f64 = clock.next()?.parse().ok()?;
    let minute: f64 = clock.next()?.parse().ok()?;
    let second: f64 = clock.next().map_or(Some(0.0), |s| s.trim().parse().ok())?;
    let offset = match zone.strip_prefix(['+', '-']) {
        None => 0.0,
        Some(ahead) => {
            let (hours, minutes) = ahead.split_once(':').unwrap_or((ahead, "0"));
            let ahead = 3600.0 * hours.parse::<f64>().ok()? + 60.0 * minutes.parse::<f64>().ok()?;
            if zone.starts_with('-') { -ahead } else { ahead }
        }
    };
    // Days from 1970 by the civil calendar, years beginning in March.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + (153 * m + 2) / 5 + day
            - 1
            - 719_468;
    Some(days as f64 * 86_400.0 + 3600.0 * hour + 60.0 * minute + second - offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_their_zone() {
        assert_eq!(moment("1970-01-01T00:00:00"), Some(0.0));
        assert_eq!(moment("2000-03-01T00:00:00Z"), Some(951_868_800.0));
        assert_eq!(
            moment("2026-11-26T14:00:00+01:00"),
            moment("2026-11-26 13:00:00")
        );
        assert_eq!(
            moment("2026-11-26T13:00:00.5"),
            moment("2026-11-26T13:00:00").map(|t| t + 0.5)
        );
        for wrong in ["", "yesterday", "2026-11", "2026-11-26Tx"] {
            assert_eq!(moment(wrong), None);
        }
    }
}
