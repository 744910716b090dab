//! The section of a report on locks that were waited for: beside the figures, what
//! each side waited for, in how many pairs, and how long.
//!
//! Times of QEMU's translator are those of no machine and must never be printed:
//! of these there are counts and shares only.

use crate::lock_profile::{LockProfile, LockWaits};
use crate::outcome::Measured;
use crate::workload::Load;
use locklab_document::contention_profile::{BothSides, ContentionProfile, Counts, Used};
use locklab_document::number::{count, grouped, percent};
use locklab_document::page::wrapped;
use locklab_document::{Part, Section, render};
use locklab_harness::experiment::{Cell, Experiment, Sample};
use locklab_judge::Side;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Says where a sample keeps it.
pub const KEY: &str = "locks";

/// Locks that are shown.
const MOST: usize = 10;

/// Says what a profiled run gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Profiled {
    Run(Run),
    Failed(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    profile: LockProfile,
    cpus: u64,
    processes: u64,
    work: u64,
    /// Says whether it ran in the translator.
    translated: bool,
}

/// Returns what a sample keeps of a profiled run, or why there is nothing.
pub fn detail(load: &Load, outcome: Result<Measured, String>, translated: bool) -> Value {
    let profiled = match outcome {
        Ok(measured) => Profiled::Run(Run {
            profile: measured.locks.unwrap_or_default(),
            cpus: load.vcpus,
            processes: load.processes,
            work: measured.work,
            translated,
        }),
        Err(why) => Profiled::Failed(why),
    };
    json!(profiled)
}

/// Returns the waits of one boot as text.
#[must_use]
pub fn text(load: &Load, measured: &Measured, translated: bool) -> String {
    let profile = measured.locks.clone().unwrap_or_default();
    let mut text = format!(
        "{}: {} x 1 {}, {}, {}\n",
        load.workload.name(),
        measured.work,
        measured.unit,
        count(load.vcpus as usize, "CPU"),
        count(load.processes as usize, "process"),
    );
    let most = profile.locks.iter().max_by_key(|lock| lock.nanoseconds);
    let lead = most.map_or_else(
        || "No lock was waited for.".to_owned(),
        |lock| {
            let share = lock.nanoseconds as f64 / profile.nanoseconds().max(1) as f64;
            format!(
                "{} % of the waiting was for {}.",
                percent(100.0 * share),
                lock.name
            )
        },
    );
    let _ = writeln!(text, "{}", wrapped("", &lead));
    if !profile.locks.is_empty() {
        let rows: Vec<Used> = profile.locks.iter().map(used).collect();
        let table = match translated {
            true => ContentionProfile::table_of_shares(&rows, rows.len()),
            false => ContentionProfile::table(&rows, rows.len()),
        };
        let _ = write!(text, "\n{}\n", render::table(&table));
    }
    let _ = writeln!(text, "{}", wrapped("", caveat(translated)));
    for note in losses(&[&profile]) {
        let _ = writeln!(text, "{}", wrapped("", &note));
    }
    text
}

/// Returns the waits for the locks of a name, as a row of the table of locks.
fn used(lock: &LockWaits) -> Used {
    Used {
        name: lock.name.clone(),
        kind: Some(lock.kind.clone()),
        locks: lock.locks,
        counts: Counts {
            contended: lock.waits,
            waited_ns: Some(lock.nanoseconds as f64),
            longest_ns: Some(lock.longest as f64),
            ..Counts::default()
        },
        spent: None,
    }
}

/// Returns the same for programs.
#[must_use]
pub fn json(load: &Load, measured: &Measured, translated: bool) -> Value {
    let profiled = detail(load, Ok(measured.clone()), translated);
    Profiled::deserialize(profiled).map_or(Value::Null, |profiled| document(&profiled))
}

/// Returns a section for each cell that was profiled.
pub(crate) fn sections(experiment: &Experiment) -> Vec<Section> {
    experiment.cells.iter().filter_map(section).collect()
}

/// Returns the same for programs, pair by pair.
pub(crate) fn data(experiment: &Experiment) -> Map<String, Value> {
    let cells: Vec<Value> = experiment
        .cells
        .iter()
        .filter_map(|cell| {
            let pairs: Vec<Value> = cell
                .pairs
                .iter()
                .filter(|pair| pair.samples().iter().any(|s| profiled(s).is_some()))
                .map(|pair| {
                    json!({
                        "pair": pair.index,
                        "baseline": profiled(&pair.baseline).as_ref().map(document),
                        "experiment": profiled(&pair.experiment).as_ref().map(document),
                    })
                })
                .collect();
            (!pairs.is_empty()).then(|| json!({"cell": cell.key.to_string(), "pairs": pairs}))
        })
        .collect();
    match cells.is_empty() {
        true => Map::new(),
        false => Map::from_iter([("lock_profile".to_owned(), json!(cells))]),
    }
}

fn profiled(sample: &Sample) -> Option<Profiled> {
    Profiled::deserialize(sample.detail.get(KEY)?).ok()
}

/// Returns one side of a pair, without times of a translator.
fn document(profiled: &Profiled) -> Value {
    match profiled {
        Profiled::Failed(why) => json!({"failed": why}),
        Profiled::Run(run) => {
            let all = run.profile.nanoseconds();
            let locks = run.profile.locks.iter().map(|lock| {
                let time = |ns: u64| (!run.translated).then_some(ns);
                json!({
                    "name": lock.name,
                    "kind": lock.kind,
                    "locks": lock.locks,
                    "waits": lock.waits,
                    "share": lock.nanoseconds as f64 / all.max(1) as f64,
                    "waited_ns": time(lock.nanoseconds),
                    "longest_ns": time(lock.longest),
                })
            });
            json!({
                "translated": run.translated,
                "cpus": run.cpus,
                "processes": run.processes,
                "work": run.work,
                "lost": run.profile.lost,
                "unmatched": run.profile.unmatched,
                "locks": locks.collect::<Vec<_>>(),
            })
        }
    }
}

fn section(cell: &Cell) -> Option<Section> {
    let mut waits = BothSides::default();
    let mut runs: Vec<Run> = Vec::new();
    let mut failed = Vec::new();
    for pair in &cell.pairs {
        for (side, sample) in Side::BOTH.into_iter().zip(pair.samples()) {
            match profiled(sample) {
                None => {}
                Some(Profiled::Failed(why)) => failed.push(why),
                Some(Profiled::Run(run)) => {
                    waits.add(side, pair.index, run.profile.locks.iter().map(used));
                    runs.push(run);
                }
            }
        }
    }
    let first = runs.first().cloned();
    if first.is_none() && failed.is_empty() {
        return None;
    }
    let mut section = Section::new(format!("Locks waited for, {}", cell.key));
    if let Some(why) = failed.first() {
        section = section.note(format!(
            "{} of the profiled runs failed; the first failed because {why}",
            failed.len()
        ));
    }
    let Some(first) = first else {
        return Some(section);
    };
    section = section.note(format!(
        "For this table each pair was run once more, with {} and {}. The waits are the mean \
         of a run. {}",
        count(first.cpus as usize, "CPU"),
        count(first.processes as usize, "process"),
        caveat(first.translated)
    ));
    let all: Vec<&LockProfile> = runs.iter().map(|run| &run.profile).collect();
    for note in losses(&all) {
        section = section.note(note);
    }
    if waits.is_empty() {
        return Some(section.prose("No lock was waited for."));
    }
    Some(section.with(Part::Table(waits.table(MOST, !first.translated))))
}

/// Returns what the reader of any profile has to know.
fn caveat(translated: bool) -> &'static str {
    match translated {
        true => {
            "The kernels ran in QEMU's translator, so the table has the number of waits and each \
             lock's share of the waiting, and no times: they would be those of no machine. The \
             tracepoints see waits that queue or sleep; they do not see a spinlock that is free \
             again at once."
        }
        false => {
            "The tracepoints take time, and are off while figures are measured. Times have a \
             resolution of 1 µs. The tracepoints see waits that queue or sleep; they see neither \
             a spinlock that is free again at once nor the spinlocks of a guest of KVM."
        }
    }
}

fn losses(profiles: &[&LockProfile]) -> Vec<String> {
    let sum = |of: fn(&LockProfile) -> u64| profiles.iter().map(|p| of(p)).sum::<u64>();
    let mut notes = Vec::new();
    let (lost, unmatched) = (sum(|p| p.lost), sum(|p| p.unmatched));
    if lost > 0 {
        notes.push(format!(
            "{} events found no room, so the table is about the first part of the run; a run with \
             fewer operations has room for all.",
            grouped(lost)
        ));
    }
    if unmatched > 0 {
        notes.push(format!(
            "{} waits were left out, because their begin was not seen.",
            grouped(unmatched)
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
