//! The report of the lock events of Java's Flight Recorder: who waited, where, and for how
//! long, as `jfr print --json` prints them.
//!
//! Waits for monitors and parks are in a recording if they last for as long as its settings
//! ask, 10 or 20 ms by default; how long threads worked is not. It must never be taken for
//! a recording of all waits: nothing can be simulated of it, and it is no bound.

use crate::runtime_profile;
use locklab_document::contention_profile::ContentionProfile;
use locklab_document::number::{count, percent, time};
use locklab_host::error::Error;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// The first bytes of a recording of the Flight Recorder.
const MAGIC: &[u8] = b"FLR\0";
/// The events that are read.
const EVENTS: &str = "jdk.JavaMonitorEnter,jdk.ThreadPark";
/// Packages of the runtime, whose functions call no lock of their own accord.
const OF_JAVA: [&str; 4] = ["java/", "javax/", "jdk/", "sun/"];
/// The classes in which threads park that wait for a lock, and not for work.
const LOCKS: [&str; 2] = ["ReentrantLock", "ReentrantReadWriteLock"];

#[derive(Deserialize)]
struct Printed {
    recording: Events,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    values: Values,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Values {
    duration: Option<String>,
    event_thread: Option<Thread>,
    stack_trace: Option<Stack>,
    monitor_class: Option<Class>,
    parked_class: Option<Class>,
    address: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thread {
    os_thread_id: Option<i64>,
}

#[derive(Deserialize)]
struct Stack {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    method: Option<Method>,
    line_number: Option<i64>,
}

#[derive(Deserialize)]
struct Method {
    #[serde(rename = "type")]
    class: Option<Class>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Class {
    name: Option<String>,
}

/// The lock events of Java's Flight Recorder.
#[derive(Clone, Debug)]
pub struct JavaProfile {
    file: String,
    /// The waits, by place and kind.
    used: ContentionProfile,
    threads: usize,
    locks: usize,
    locks_ns: f64,
    shortest_ns: f64,
}

impl JavaProfile {
    /// Returns the events in a file: a recording of the Flight Recorder, or what `jfr print
    /// --json` printed of it. `None` of another file.
    ///
    /// # Errors
    /// [`Error::Failed`] if the JDK's command `jfr` cannot read the recording.
    pub fn read(file: &Path) -> Result<Option<Self>, Error> {
        let Ok(open) = File::open(file) else {
            return Ok(None);
        };
        let mut open = BufReader::new(open);
        let start = open.fill_buf().unwrap_or_default();
        if start.starts_with(MAGIC) {
            return Self::printed(file).map(Some);
        }
        let is_json = start.trim_ascii_start().starts_with(b"{");
        let text = String::from_utf8_lossy(&start[..start.len().min(200)]);
        if !is_json || !text.contains("\"recording\"") {
            return Ok(None);
        }
        Ok(Self::of(open, file))
    }

    /// Has the JDK print its recording.
    fn printed(file: &Path) -> Result<Self, Error> {
        let failed = |why: String| {
            Error::Failed(format!(
                "{}: a recording of Java's Flight Recorder, which the JDK's command jfr has to \
                 print: {why}",
                file.display()
            ))
        };
        let output = Command::new("jfr")
            .args(["print", "--json", "--events", EVENTS])
            .arg(file)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failed(format!("it does not start ({e}); install a JDK")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().next().unwrap_or("it says nothing");
        match Self::of(&output.stdout[..], file) {
            Some(read) if output.status.success() => Ok(read),
            _ => Err(failed(said.to_owned())),
        }
    }

    fn of(json: impl Read, file: &Path) -> Option<Self> {
        let read: Printed = serde_json::from_reader(json).ok()?;
        let (mut rows, mut locks_ns) = (Vec::new(), 0.0);
        let (mut threads, mut locks) = (BTreeSet::new(), BTreeSet::new());
        let mut shortest_ns = f64::INFINITY;
        for event in &read.recording.events {
            let values = &event.values;
            let class = |class: &Option<Class>| -> Option<String> {
                Some(class.as_ref()?.name.as_deref()?.replace('/', "."))
            };
            let (kind, is_lock) = match event.kind.as_str() {
                "jdk.JavaMonitorEnter" => {
                    let class = class(&values.monitor_class).unwrap_or_else(|| "?".into());
                    (format!("monitor of {class}"), true)
                }
                "jdk.ThreadPark" => match class(&values.parked_class) {
                    Some(class) => {
                        let name = class.rsplit('.').next().unwrap_or(&class);
                        let owner = name.split('$').next().unwrap_or(name);
                        (owner.to_owned(), LOCKS.contains(&owner))
                    }
                    None => ("park".into(), false),
                },
                _ => continue,
            };
            let Some(waited) = values.duration.as_deref().and_then(nanoseconds) else {
                continue;
            };
            let thread = values.event_thread.as_ref();
            threads.extend(thread.and_then(|thread| thread.os_thread_id));
            if is_lock {
                locks.extend(values.address);
                locks_ns += waited;
            }
            shortest_ns = shortest_ns.min(waited);
            let frames = values.stack_trace.as_ref().map_or(&[][..], |of| &of.frames);
            rows.push(runtime_profile::row(place(frames), Some(kind), 1, waited));
        }
        Some(Self {
            file: file.display().to_string(),
            used: ContentionProfile::new(Default::default(), Vec::new(), rows),
            threads: threads.len(),
            locks: locks.len(),
            locks_ns,
            shortest_ns,
        })
    }

    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        runtime_profile::text(
            format!("Waits of Java's threads, from {}", self.file),
            "events of Java's Flight Recorder; read, not measured here",
            (self.verdict(), self.note()),
            &self.used.sites,
        )
    }

    /// Returns the report for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "schema": 1,
            "kind": "java_profile",
            "provenance": { "source": "files", "name": "Java Flight Recorder" },
            "threads": self.threads,
            "locks": self.locks,
            "waited_for_locks_ns": self.locks_ns,
            "shortest_wait_ns": Some(self.shortest_ns).filter(|ns| ns.is_finite()),
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
                "{} waited for {} in all, {} % of it for {}; {} ({}) has {} % of it.",
                count(self.threads, "thread"),
                time(all),
                percent(100.0 * self.locks_ns / all),
                count(self.locks, "lock"),
                row.name,
                row.kind.as_deref().unwrap_or("park"),
                percent(100.0 * row.counts.waited_ns.unwrap_or(0.0) / all)
            ),
            _ => "It has no wait for a monitor, and no park.".into(),
        }
    }

    fn note(&self) -> String {
        let shortest = match self.shortest_ns.is_finite() {
            true => format!("; the shortest here took {}", time(self.shortest_ns)),
            false => String::new(),
        };
        format!(
            "Waits shorter than the recording's threshold are not in it{shortest}. Settings such \
             as jdk.JavaMonitorEnter#threshold=0ms record all. How long threads worked is not in \
             it either, so what a lock can gain is not known: 'locklab record --system' says that"
        )
    }
}

/// Returns the nanoseconds of a duration such as `PT1M0.5S`.
fn nanoseconds(text: &str) -> Option<f64> {
    let mut left = text.strip_prefix("PT")?;
    let mut seconds = 0.0;
    while let Some(end) = left.find(|letter: char| letter.is_ascii_alphabetic()) {
        let number: f64 = left[..end].parse().ok()?;
        seconds += number
            * match left.as_bytes()[end] {
                b'H' => 3600.0,
                b'M' => 60.0,
                b'S' => 1.0,
                _ => return None,
            };
        left = &left[end + 1..];
    }
    (left.is_empty() && seconds >= 0.0).then_some(seconds * 1e9)
}

/// Returns the first function outside Java's own, with its line.
fn place(frames: &[Frame]) -> String {
    let class = |frame: &Frame| frame.method.as_ref()?.class.as_ref()?.name.clone();
    let outside = frames.iter().find(|frame| {
        class(frame).is_some_and(|class| !OF_JAVA.iter().any(|of| class.starts_with(of)))
    });
    let Some(frame) = outside.or(frames.last()) else {
        return "(place unknown)".into();
    };
    let class = class(frame).map_or_else(|| "?".into(), |class| class.replace('/', "."));
    let method = frame.method.as_ref().and_then(|of| of.name.as_deref());
    let line = frame.line_number.filter(|line| *line >= 0);
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{class}.{}{line}", method.unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"{ "recording": { "events": [
        { "type": "jdk.JavaMonitorEnter", "values": {
            "startTime": "2026-11-27T04:30:45.562447948Z", "duration": "PT0.03S",
            "eventThread": { "osThreadId": 7, "javaName": "Thread-2" },
            "stackTrace": { "truncated": false, "frames": [
                { "method": { "type": { "name": "shop\/Cart" }, "name": "add" },
                  "lineNumber": 5, "type": "Interpreted" }] },
            "monitorClass": { "name": "java\/lang\/Object" }, "previousOwner": null,
            "address": 140134649436864 } },
        { "type": "jdk.ThreadPark", "values": {
            "duration": "PT0.02S", "eventThread": { "osThreadId": 8 },
            "stackTrace": { "frames": [
                { "method": { "type": { "name": "jdk\/internal\/misc\/Unsafe" }, "name": "park" },
                  "lineNumber": -1 },
                { "method": { "type": { "name": "shop\/Store" }, "name": "sell" },
                  "lineNumber": 9 }] },
            "parkedClass": { "name": "java\/util\/concurrent\/locks\/ReentrantLock$NonfairSync" },
            "timeout": null, "until": null, "address": 28437154392 } },
        { "type": "jdk.ThreadPark", "values": {
            "duration": "PT1M0.05S", "eventThread": null, "stackTrace": null,
            "parkedClass": null, "address": 0 } }
    ] } }"#;

    #[test]
    fn waits_for_monitors_and_locks_are_told_from_parks() {
        let profile = JavaProfile::of(PRINTED.as_bytes(), Path::new("j.json")).unwrap();
        let rows: Vec<_> = profile.used.sites.iter().collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[1].name, "shop.Cart.add:5");
        assert_eq!(rows[1].kind.as_deref(), Some("monitor of java.lang.Object"));
        assert_eq!(rows[2].name, "shop.Store.sell:9");
        assert_eq!(rows[2].kind.as_deref(), Some("ReentrantLock"));
        assert_eq!((profile.threads, profile.locks), (2, 2));
        assert!((profile.locks_ns - 50e6).abs() < 1.0);
        assert!((profile.shortest_ns - 20e6).abs() < 1.0);
        let text = profile.text();
        assert!(text.contains("threshold"), "{text}");
        assert_eq!(profile.json()["locks"], 2);
    }

    #[test]
    fn other_files_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for other in ["", "{ \"events\": 3 }", "{ \"recording\": 3 }", "text"] {
            std::fs::write(&file, other).unwrap();
            assert!(JavaProfile::read(&file).unwrap().is_none(), "{other}");
        }
        assert!(JavaProfile::read(folder.path()).unwrap().is_none());
        assert_eq!(nanoseconds("PT-3S"), None);
        assert_eq!(nanoseconds("P1D"), None);
        assert_eq!(nanoseconds("PT2M0.5S"), Some(120.5e9));
    }

    #[test]
    fn a_cut_recording_of_the_flight_recorder_fails_in_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cut.jfr");
        std::fs::write(&file, b"FLR\0\0\x02").unwrap();
        let why = JavaProfile::read(&file).unwrap_err().to_string();
        assert!(
            why.contains("which the JDK's command jfr has to print"),
            "{why}"
        );
    }
}
