//! The report of a mutex or block profile of Go, in pprof's format: who waited, where, and
//! for how long, as far as it goes.
//!
//! A mutex profile names the releases after which others went on, and how long those had
//! waited; a block profile names the waits. Neither says how long goroutines worked, so there
//! is no bound. It must never be taken for a recording: nothing can be simulated of it.

use crate::runtime_profile;
use flate2::read::GzDecoder;
use locklab_document::contention_profile::ContentionProfile;
use locklab_document::number::{percent, time};
use prost::Message;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read as _};
use std::path::Path;

/// The most bytes of a profile: Go's are of kilobytes.
const LARGEST: u64 = 256 << 20;

/// Pprof's message `Profile`, as far as it is read.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_types: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    locations: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    functions: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    strings: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    name: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "4")]
    file: i64,
}

/// The things that are waited for, by a part of the names of the functions of Go that
/// wait or release; whether it is a lock.
const KINDS: [(&str, &str, bool); 9] = [
    ("sync.(*RWMutex)", "rwmutex", true),
    ("sync.(*Mutex)", "mutex", true),
    ("runtime._LostContendedRuntimeLock", "the runtime's", true),
    ("runtime.unlock", "the runtime's", true),
    ("sync.(*Cond)", "condition", false),
    ("sync.(*WaitGroup)", "wait group", false),
    ("runtime.selectgo", "select", false),
    ("runtime.chan", "channel", false),
    ("time.Sleep", "sleep", false),
];

/// A mutex or block profile of Go.
#[derive(Clone, Debug)]
pub struct GoProfile {
    file: String,
    /// Says whether it names releases, and not waits.
    of_releases: bool,
    /// The waits, by place and kind.
    used: ContentionProfile,
    /// The waits for locks, in nanoseconds.
    locks_ns: f64,
}

impl GoProfile {
    /// Returns the profile in a file, if it is one of contention.
    #[must_use]
    pub fn read(file: &Path) -> Option<Self> {
        const COMPRESSED: [u8; 2] = [0x1f, 0x8b];
        /// The first field, of what samples are.
        const PLAIN: u8 = 0x0a;
        let mut open = File::open(file).ok()?;
        let mut start = [0; 2];
        open.read_exact(&mut start).ok()?;
        let whole = Cursor::new(start).chain(open);
        let mut bytes = Vec::new();
        let read = match start {
            COMPRESSED => GzDecoder::new(whole).take(LARGEST).read_to_end(&mut bytes),
            [PLAIN, _] => whole.take(LARGEST).read_to_end(&mut bytes),
            _ => return None,
        };
        read.ok()?;
        Self::of(&Profile::decode(&bytes[..]).ok()?, file)
    }

    fn of(profile: &Profile, file: &Path) -> Option<Self> {
        let text = |number: i64| -> &str {
            let place = usize::try_from(number).unwrap_or(usize::MAX);
            profile.strings.get(place).map_or("", String::as_str)
        };
        let types: Vec<(&str, &str)> = profile
            .sample_types
            .iter()
            .map(|value| (text(value.name), text(value.unit)))
            .collect();
        if types != [("contentions", "count"), ("delay", "nanoseconds")] {
            return None;
        }
        let locations: HashMap<u64, &Location> =
            profile.locations.iter().map(|of| (of.id, of)).collect();
        let functions: HashMap<u64, &Function> =
            profile.functions.iter().map(|of| (of.id, of)).collect();
        let (mut rows, mut of_releases, mut locks_ns) = (Vec::new(), false, 0.0);
        for sample in &profile.samples {
            let &[count, delay] = &sample.values[..] else {
                continue;
            };
            let frames: Vec<(&str, &str, i64)> = sample
                .locations
                .iter()
                .filter_map(|id| locations.get(id))
                .flat_map(|location| &location.lines)
                .filter_map(|line| {
                    let function = functions.get(&line.function)?;
                    Some((text(function.name), text(function.file), line.line))
                })
                .collect();
            let kind = KINDS.iter().find(|(part, ..)| {
                let mut names = frames.iter().map(|(name, ..)| name);
                names.any(|name| name.starts_with(part))
            });
            of_releases |= frames.iter().any(|(name, ..)| name.ends_with("nlock"));
            let waited = delay.max(0) as f64;
            if kind.is_some_and(|(_, _, lock)| *lock) {
                locks_ns += waited;
            }
            rows.push(runtime_profile::row(
                place(&frames),
                kind.map(|(_, words, _)| (*words).to_owned()),
                count.max(0).cast_unsigned(),
                waited,
            ));
        }
        Some(Self {
            file: file.display().to_string(),
            of_releases,
            used: ContentionProfile::new(Default::default(), Vec::new(), rows),
            locks_ns,
        })
    }

    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        runtime_profile::text(
            format!("Waits of goroutines, from {}", self.file),
            "a profile of Go's runtime; read, not measured here",
            (self.verdict(), self.note()),
            &self.used.sites,
        )
    }

    /// Returns the report for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "schema": 1,
            "kind": "go_profile",
            "provenance": { "source": "files", "name": "pprof" },
            "of_releases": self.of_releases,
            "waited_for_locks_ns": self.locks_ns,
            "rows": runtime_profile::json(&self.used.sites),
            "verdict": self.verdict(),
            "notes": [self.note()],
        })
    }

    fn verdict(&self) -> String {
        let rows = &self.used.sites;
        let all: f64 = rows.iter().filter_map(|row| row.counts.waited_ns).sum();
        match rows.first() {
            Some(row) if all > 0.0 => format!(
                "Goroutines waited for {} in all, {} % of it for locks; {} has {} % of it.",
                time(all),
                percent(100.0 * self.locks_ns / all),
                row.name,
                percent(100.0 * row.counts.waited_ns.unwrap_or(0.0) / all)
            ),
            _ => "It has no wait.".into(),
        }
    }

    fn note(&self) -> String {
        let of = match self.of_releases {
            true => "places release what others waited for: shorten what is done before",
            false => "places are where goroutines waited",
        };
        format!(
            "{of}; how long goroutines worked is not in it, so what a lock can gain is not known"
        )
    }
}

/// Returns the first function outside Go's own locks, with its line.
fn place(frames: &[(&str, &str, i64)]) -> String {
    let of_go = |name: &str| {
        ["sync.", "internal/sync.", "runtime."]
            .iter()
            .any(|package| name.starts_with(package))
    };
    let mut outside = frames.iter().filter(|(name, ..)| !of_go(name));
    match outside.next().or(frames.first()) {
        Some((name, file, line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{name} {file}:{line}")
        }
        None => "(place unknown)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Option<GoProfile> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/go");
        GoProfile::read(&folder.join(name))
    }

    #[test]
    fn a_mutex_profile_names_who_held_the_lock() {
        let profile = read("mutex.pb.gz").unwrap();
        assert!(profile.of_releases);
        let row = &profile.used.sites[0];
        assert_eq!(row.name, "main.hold main.go:20");
        assert_eq!(row.kind.as_deref(), Some("mutex"));
        assert!(row.counts.contended > 10, "{row:?}");
        let text = profile.text();
        assert!(text.contains("100 % of it for locks"), "{text}");
        assert!(text.contains("shorten what is done before"), "{text}");
    }

    #[test]
    fn a_block_profile_has_waits_that_are_for_no_lock() {
        let profile = read("block.pb.gz").unwrap();
        assert!(!profile.of_releases);
        let kinds: Vec<_> = profile.used.sites.iter().map(|row| &row.kind).collect();
        assert!(kinds.contains(&&Some("wait group".to_owned())), "{kinds:?}");
        let json = profile.json();
        let locks = json["waited_for_locks_ns"].as_f64().unwrap();
        let rows = json["rows"].as_array().unwrap();
        let all = rows
            .iter()
            .map(|row| row["counts"]["waited_ns"].as_f64().unwrap());
        assert!(locks > 0.0 && locks < all.sum::<f64>(), "{json}");
    }

    #[test]
    fn other_files_are_none() {
        assert!(read("main.go").is_none());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cut");
        let whole =
            std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/go/mutex.pb.gz"));
        std::fs::write(&file, &whole.unwrap()[..100]).unwrap();
        assert!(GoProfile::read(&file).is_none());
        assert!(GoProfile::read(folder.path()).is_none());
    }
}
