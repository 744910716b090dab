//! Recordings of many hosts, hours or processes as one answer: the bound, the locks, and
//! each recording's share.
//!
//! One recording at a time is read by each worker, and its records are not kept, so
//! memory is bounded, and time is linear in their size. It must never simulate: recordings of different
//! machines are no one program.

use locklab_document::contention_profile::{Bound, ContentionProfile, Seen, Times, Used};
use locklab_document::number::{count, percent, time};
use locklab_document::{Column, ColumnGroup, Document, Labels, Part, Section, Table, Tone};
use locklab_host::error::Error;
use locklab_replay::{Limits, Names, Recording};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of recordings, locks and places that are shown.
const SHOWN: usize = 20;
const HOTTEST: usize = 5;

/// Holds what is known of one of the recordings.
struct One {
    file: PathBuf,
    machine: String,
    command: String,
    length_ns: f64,
    used: ContentionProfile,
}

impl One {
    fn read(file: &Path, names: &mut dyn Names) -> Result<Self, Error> {
        let recording = Recording::open(file, Limits::default())?;
        Ok(Self {
            file: file.into(),
            machine: recording.info().machine.clone(),
            command: recording.info().command.clone(),
            length_ns: recording.length_ns(),
            used: recording.contention_profile(names),
        })
    }

    fn lost_ns(&self) -> f64 {
        self.used.times.lost_ns()
    }
}

/// Answers for all of these recordings together. `names` makes what names places, one for
/// each worker; `progress` is called with the number that is read, and of all; `seed`
/// decides the interval.
///
/// # Errors
/// [`Error::Failed`] if a file is no recording of this version.
pub fn many<N: Names>(
    files: &[PathBuf],
    (workers, seed): (usize, u64),
    names: impl Fn() -> N + Sync,
    progress: impl Fn(usize, usize) + Sync,
) -> Result<Document, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The largest first, so that no worker has one left when the others have ended.
    let bytes = |at: &usize| std::fs::metadata(&files[*at]).map_or(0, |file| file.len());
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(bytes(at)));
    let read: Vec<Mutex<Option<Result<One, Error>>>> =
        files.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, files.len().max(1)) {
            scope.spawn(|| {
                let mut names = names();
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&at) = order.get(turn) else { break };
                    let one = One::read(&files[at], &mut names);
                    if let Ok(mut slot) = read[at].lock() {
                        *slot = Some(one);
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, files.len());
                }
            });
        }
    });
    let read = read
        .into_iter()
        .filter_map(|slot| slot.into_inner().ok().flatten());
    let all: Vec<One> = read.collect::<Result<_, _>>()?;
    Ok(document(all, seed))
}

/// Returns the use of all locks together.
fn together(all: &mut [One]) -> ContentionProfile {
    let mut times = Times::default();
    let (mut windows, mut locks, mut sites) = (Vec::new(), Vec::new(), Vec::new());
    for one in all {
        times.add(&one.used.times);
        windows.append(&mut one.used.windows);
        locks.append(&mut one.used.locks);
        sites.append(&mut one.used.sites);
    }
    ContentionProfile {
        windows,
        ..ContentionProfile::new(times, locks, sites)
    }
}

fn document(mut all: Vec<One>, seed: u64) -> Document {
    let used = together(&mut all);
    let bound = ContentionProfile {
        seen: Seen {
            seed,
            crowded: all.iter().any(|one| one.used.seen.crowded),
            ..Seen::default()
        },
        ..used.clone()
    }
    .bound();
    all.sort_by(|one, two| {
        let heat = two.lost_ns().total_cmp(&one.lost_ns());
        heat.then_with(|| one.file.cmp(&two.file))
    });
    let machines: BTreeSet<&str> = all.iter().map(|one| one.machine.as_str()).collect();
    let commands: BTreeSet<&str> = all.iter().map(|one| one.command.as_str()).collect();
    let length: f64 = all.iter().map(|one| one.length_ns).sum();
    let words = paragraph(&all, &used, &bound);
    let fact = |name: &str, text: String| (name.to_owned(), text);
    let mut document = Document {
        title: format!("Locks of {}: what to do", count(all.len(), "recording")),
        head: vec![
            fact("Commands", of_these(&commands, "command")),
            fact("Recorded on", of_these(&machines, "kind of machine")),
            fact("Recorded", format!("{} in all", time(length))),
            fact(
                "Source",
                "hardware; nothing is simulated of several recordings".to_owned(),
            ),
        ],
        labels: Labels::new("today's lock", "another"),
        data: data(&all, &used, &bound, &words),
        ..Document::default()
    };
    document.push(Section::new("").with(Part::Prose(words, Tone::Lead)));
    document.push(recordings(&all));
    document.push(ContentionProfile::section("Locks", &used.locks, HOTTEST));
    document.push(ContentionProfile::section(
        "Call sites",
        &used.sites,
        HOTTEST,
    ));
    let parts = used.spent().map_or_else(Vec::new, |spent| spent.parts());
    let parts = parts
        .into_iter()
        .map(|(part, words)| format!("{} % {words}", percent(100.0 * part)));
    document.push(Section::new("Where the waiting goes, as recorded").items(parts.collect()));
    document
}

/// Returns the only one of these, or how many there are.
fn of_these(these: &BTreeSet<&str>, noun: &str) -> String {
    match these.iter().collect::<Vec<_>>()[..] {
        [one] => (*one).to_owned(),
        _ => count(these.len(), noun),
    }
}

/// Returns what to do, where, and what no lock can exceed.
fn paragraph(all: &[One], used: &ContentionProfile, bound: &Bound) -> String {
    let share = |part: f64| percent(100.0 * part);
    let bound_words = bound.words(
        "pthread lock",
        "threads waited for something that is not recorded, and 'locklab record --system' sees \
         for what",
    );
    if !bound.is_worth_a_try() {
        return bound_words;
    }
    let mut words = Vec::new();
    let lost: f64 = all.iter().map(One::lost_ns).sum();
    if let (Some(first), Some(one)) = (used.locks.first(), all.first()) {
        let waited: f64 = used.locks.iter().filter_map(|l| l.counts.waited_ns).sum();
        words.push(format!(
            "Begin with {}, which has {} % of the waiting, and with the recording {}, which has {} % \
             of it. 'locklab advise' of that file simulates other locks.",
            first.name,
            share(first.counts.waited_ns.unwrap_or(0.0) / waited.max(1.0)),
            one.file.display(),
            share(one.lost_ns() / lost.max(1.0)),
        ));
    }
    if let Some((part, cause, remedy)) = used.spent().and_then(|spent| spent.largest()) {
        words.push(format!(
            "{} % of the waiting is {cause}: {remedy}.",
            share(part)
        ));
    }
    words.push(bound_words);
    words.join(" ")
}

/// Returns each recording's part.
fn recordings(all: &[One]) -> Section {
    let lost: f64 = all.iter().map(One::lost_ns).sum();
    let shown = &all[..all.len().min(SHOWN)];
    let of = |part: f64| format!("{} %", percent(100.0 * part));
    let rows = shown.iter().enumerate().map(|(number, one)| {
        vec![
            format!("{}", number + 1),
            time(one.length_ns),
            time(one.used.times.busy_ns()),
            of(one.used.times.share()),
            of(one.lost_ns() / lost.max(1.0)),
        ]
    });
    let table = Table {
        groups: vec![
            ColumnGroup::new("", vec![Column::new("#", 3), Column::new("length", 8)]),
            ColumnGroup::new(
                "time with work",
                vec![Column::new("", 8), Column::new("lost", 7)],
            ),
            ColumnGroup::new("lost", vec![Column::new("of all", 7)]),
        ],
        rows: rows.collect(),
    };
    let names = shown.iter().enumerate().map(|(number, one)| {
        format!(
            "#{} {}: {} on {}",
            number + 1,
            one.file.display(),
            one.command,
            one.machine
        )
    });
    let section = Section::new("Recordings")
        .with(Part::Table(table))
        .items(names.collect());
    match all.len() - shown.len() {
        0 => section,
        more => section.note(format!(
            "Not shown: {} that lost less.",
            count(more, "recording")
        )),
    }
}

fn data(all: &[One], used: &ContentionProfile, bound: &Bound, words: &str) -> Map<String, Value> {
    let lost: f64 = all.iter().map(One::lost_ns).sum();
    let recordings = all.iter().map(|one| {
        json!({
            "file": one.file.display().to_string(),
            "machine": one.machine,
            "command": one.command,
            "seconds": one.length_ns / 1e9,
            "busy_ns": one.used.times.busy_ns(),
            "waiting_share": one.used.times.share(),
            "share_of_all_waiting": one.lost_ns() / lost.max(1.0),
        })
    });
    let rows = |rows: &[Used]| -> Vec<Value> {
        let rows = rows.iter().take(SHOWN);
        rows.map(|row| json!({ "name": row.name, "locks": row.locks, "counts": row.counts.json() }))
            .collect()
    };
    Map::from_iter(
        [
            ("schema", json!(1)),
            ("kind", json!("advice of many")),
            ("provenance", json!({ "source": "hardware" })),
            ("advice", json!(words)),
            ("bound", bound.json()),
            ("recordings", recordings.collect()),
            ("locks", rows(&used.locks).into()),
            ("sites", rows(&used.sites).into()),
            (
                "spent",
                used.spent().map_or(Value::Null, |spent| spent.json()),
            ),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(file: &str, waited_ns: f64) -> One {
        let times = Times {
            lived_ns: 1e9,
            waited_ns,
            ..Times::default()
        };
        let lock = Used {
            name: "shard[ ]".into(),
            locks: 1,
            counts: locklab_document::contention_profile::Counts {
                waited_ns: Some(waited_ns),
                contended: 1,
                ..Default::default()
            },
            ..Used::default()
        };
        One {
            file: file.into(),
            machine: "a machine, 4 CPUs".into(),
            command: "server".into(),
            length_ns: 1e9,
            used: ContentionProfile {
                windows: vec![times; 10],
                ..ContentionProfile::new(times, vec![lock], Vec::new())
            },
        }
    }

    #[test]
    fn each_recording_has_its_share_and_all_have_one_bound() {
        let document = document(vec![one("a", 1e8), one("b", 3e8)], 1);
        let data = Value::Object(document.data.clone());
        assert_eq!(data["recordings"][0]["file"], "b", "most of it is there");
        assert_eq!(data["recordings"][0]["share_of_all_waiting"], 0.75);
        assert_eq!(data["bound"]["share"], 0.2);
        assert_eq!(data["locks"][0]["locks"], 2);
        let words = data["advice"].as_str().unwrap();
        assert!(
            words.starts_with("Begin with shard[ ], which has 100 %"),
            "{words}"
        );
        assert!(
            words.contains("with the recording b, which has 75 % of it"),
            "{words}"
        );
    }

    #[test]
    fn little_waiting_everywhere_is_nothing_to_gain() {
        let document = document(vec![one("a", 1e5), one("b", 1e6)], 1);
        let words = document.data["advice"].as_str().unwrap();
        assert!(words.starts_with("Nothing to gain"), "{words}");
    }
}
