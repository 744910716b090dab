//! The files of samples, by the programs that write them: one reader each.
//!
//! A reader is found by what a file holds, never by its name.

mod criterion;
mod fields;
pub(crate) mod format;
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
use serde_json::Value;

pub use format::Format;

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
