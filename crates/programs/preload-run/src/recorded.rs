//! A recording in words: who waited, for what, and whether another lock could
//! gain anything.
//!
//! It turns a recording into text and JSON, and reads the program's files for
//! names. It must never claim more than was recorded.

use crate::runtimes::Runtime;
use crate::summary::time;
use crate::symbols::Symbols;
use crate::unrecorded::{self, Judged, judged};
use crate::windows::in_windows;
use locklab_document::contention_profile::{ContentionProfile, Counts};
use locklab_document::number::{count, grouped, percent};
use locklab_document::render::{self, Colour};
use locklab_document::{Document, Section};
use locklab_host::error::Error;
use locklab_replay::{Limits, Recording, Tally};
use locklab_trace::{Apart, LockKind, Source, Stopped};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;

/// Number of call sites that are shown.
const HOTTEST: usize = 5;

/// A recording that was read.
pub struct Recorded {
    recording: Recording,
    used: ContentionProfile,
    judged: Judged,
    /// The name of each lock of the survey.
    names: Vec<String>,
    /// Says why nothing was recorded, where that is known.
    why_empty: Option<String>,
    /// Holds what else the reader has to know.
    told: Vec<String>,
}

impl Recorded {
    /// Reads the recording in `file`.
    ///
    /// # Errors
    /// [`Error::Failed`] if it cannot be read or is no recording of this version.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let recording = Recording::open(file, Limits::default())?;
        let mut symbols = Symbols::default();
        Ok(Self {
            names: recording.lock_names(&mut symbols).to_vec(),
            used: recording.contention_profile(&mut symbols),
            judged: judged(&recording),
            recording,
            why_empty: None,
            told: Vec::new(),
        })
    }

    pub(crate) fn with_why_empty(self, why: Option<String>) -> Self {
        Self {
            why_empty: why,
            ..self
        }
    }

    pub(crate) fn with_notes(self, told: Vec<String>) -> Self {
        Self { told, ..self }
    }

    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        render::text(&self.document(), Colour::Plain)
    }

    /// Returns what to think of it, in a sentence.
    fn verdict(&self) -> String {
        let (survey, info) = (self.recording.survey(), self.recording.info());
        let threads = survey.threads.len();
        if threads == 0 {
            let why = self.why_empty.as_deref();
            return format!(
                "Nothing was recorded: {}. 'locklab record --system' sees such programs.",
                match why {
                    Some(why) => format!("{why}, and loads no recorder"),
                    None => "the program did not load the recorder, or could not use it".into(),
                }
            );
        }
        let acquired: u64 = survey.locks.iter().map(|lock| lock.tally.acquired).sum();
        if acquired == 0 && info.source != Source::Program {
            return "No lock was acquired in it: perf lost the begin or the end of each wait."
                .into();
        }
        if acquired == 0 {
            if let Some(why) = &self.why_empty {
                return format!(
                    "No pthread lock was taken; {why}, and loads no recorder. 'locklab record \
                     --system' sees such programs."
                );
            }
            let others = unrecorded::of_recording(&self.recording);
            let runtime = Runtime::of_name(self.recording.program_name());
            if !others.is_empty() && runtime.is_none() {
                return format!(
                    "No pthread mutex or rwlock was taken; it may wait for {}, which are not \
                     recorded: 'locklab record --system' sees who waits for them.",
                    others.join(", ")
                );
            }
            let own = runtime.map_or(
                "spinlocks, semaphores, OpenMP and locks that a language brings itself (Rust, Go, \
                 Java) are not seen",
                |runtime| runtime.locks,
            );
            return format!(
                "No pthread lock was taken; {own}. 'locklab record --system' sees such locks."
            );
        }
        if threads == 1 && info.source == Source::Program {
            return "Nothing to gain: the program has one thread, which never waits for a lock."
                .into();
        }
        if !self.recording.is_whole() {
            return "No verdict: the file is not whole, so nobody knows who waited for whom."
                .into();
        }
        if info.source == Source::KernelWaits {
            return self.waits_of_kernel();
        }
        let Judged { bound, words, .. } = &self.judged;
        match self.hottest_lock().filter(|_| bound.is_worth_a_try()) {
            Some((lock, part)) => format!("{words} {part} % of the waiting is for {lock}."),
            None => words.clone(),
        }
    }

    /// Returns the lock that was waited for the longest, and its part of all waiting in
    /// percent.
    fn hottest_lock(&self) -> Option<(String, String)> {
        let survey = self.recording.survey();
        let all: u64 = survey.locks.iter().map(|lock| lock.tally.waited).sum();
        let locks = survey.locks.iter().zip(&self.names);
        let (lock, name) = locks
            .max_by_key(|(lock, _)| lock.tally.waited)
            .filter(|_| all > 0)?;
        let part = percent(100.0 * lock.tally.waited as f64 / all as f64);
        let lock = match (name.starts_with("0x"), self.recording.info().source) {
            // An address is no name.
            (true, _) => format!("the lock at {name}"),
            (false, Source::Program) if name.starts_with("lock of ") => format!("the {name}"),
            (false, Source::Program) => name.clone(),
            (false, _) => format!("the lock {name} ({:#x})", lock.address),
        };
        Some((lock, part))
    }

    /// Returns what to think of waits alone.
    fn waits_of_kernel(&self) -> String {
        let survey = self.recording.survey();
        let sum = |of: fn(&Tally) -> u64| -> u64 {
            survey.locks.iter().map(|lock| of(&lock.tally)).sum()
        };
        let (waits, ticks) = (sum(|tally| tally.contended), sum(|tally| tally.waited));
        let all = format!(
            "{} {} took {} in all",
            grouped(waits),
            if waits == 1 { "wait" } else { "waits" },
            time(self.recording.nanoseconds(ticks))
        );
        match self.hottest_lock() {
            Some((lock, part)) => format!("{all}. {part} % of that was for {lock}."),
            None => format!("{all}."),
        }
    }

    /// Returns what the reader has to know of the recording.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.told.iter().cloned());
        let (info, missing) = (self.recording.info(), self.recording.trace().missing);
        if info.source == Source::KernelWaits {
            notes.push(
                "perf recorded only waits, and neither holds nor acquisitions of free locks. So \
                 the gain of another lock is not known."
                    .into(),
            );
        }
        let after = time(self.recording.length_ns());
        match info.stopped {
            Stopped::Full => notes.push(format!(
                "The file was full after {after}, and the program ran on unrecorded. \
                 --megabytes gives a recording more room."
            )),
            Stopped::Deadline => notes.push(format!(
                "It was recorded for {after}, as asked. The program ran on unrecorded."
            )),
            Stopped::Never => notes.push(
                "The command that recorded was stopped before the program ended. This is all that \
                 it had recorded."
                    .into(),
            ),
            Stopped::Ended => {}
        }
        notes.extend(info.windows.map(in_windows));
        if let Some(between) = self.recording.waits_between_windows()
            && !(0.75..1.34).contains(&between)
        {
            notes.push(format!(
                "Between the windows threads waited {between:.2} times as long as in them, because \
                 recording changes how long short sections take. The shares above are those \
                 between them; the tables are of the windows."
            ));
        }
        if let Apart::Moved([one, two]) = info.apart() {
            notes.push(format!(
                "The host moved the CPUs during the recording. A round trip of a cache line between \
                 two of them took {one:.0} ns at first and {two:.0} ns at the end, and waits for \
                 locks grow with it."
            ));
        }
        if let Some(others) = info.shared_with_others() {
            notes.push(format!(
                "Other programs used {others:.1} CPUs during the recording, and hardly one was \
                 free, so the program ran slower than alone. Record it on an idle machine."
            ));
        }
        if missing.blocks > 0 {
            notes.push(format!(
                "The file is cut off. A part or all of {} is missing; the rest was read.",
                count(missing.blocks as usize, "block")
            ));
        }
        if missing.damaged > 0 {
            notes.push(format!(
                "{} of the file could be read only up to a damage.",
                count(missing.damaged as usize, "block")
            ));
        }
        let images = &self.recording.survey().images;
        let forks = images.iter().filter(|image| image.forked).count();
        if images.len() > 1 {
            notes.push(format!(
                "{} were recorded, {forks} of them made by fork. Each has locks of its own.",
                count(images.len(), "program image")
            ));
        }
        let locks = self.recording.survey().locks.iter();
        let shared = locks.filter(|lock| lock.kind.is(LockKind::SHARED));
        let by: HashSet<u64> = shared
            .filter(|lock| lock.tally.contended > 0)
            .map(|lock| lock.image)
            .collect();
        if by.len() > 1 {
            notes.push(
                "A mutex that processes share is one lock where a fork has it at its parent's \
                 address, and else a lock of each: who held it in another process counts as \
                 nobody. 'locklab record --system' sees all of them."
                    .into(),
            );
        }
        notes
    }

    /// Returns what the recording itself took, in nanoseconds: of an operation, and in
    /// all.
    fn overhead(&self) -> Option<(f64, f64)> {
        let survey = self.recording.survey();
        let cost = survey.cost()? * self.recording.info().nanoseconds_per_tick;
        Some((cost, cost * survey.operations as f64))
    }

    fn document(&self) -> Document {
        let fact = |name: &str, text: String| (name.to_owned(), text);
        let (recording, info) = (&self.recording, self.recording.info());
        let survey = recording.survey();
        let mut document = Document {
            title: format!("Locks of {}", recording.program_name()),
            head: vec![
                fact("Command", info.command.clone()),
                fact("Machine", info.machine.clone()),
                fact(
                    "Recorded",
                    format!(
                        "{} in {}, {} kB",
                        time(recording.length_ns()),
                        recording.path().display(),
                        grouped(recording.bytes().div_ceil(1000))
                    ),
                ),
                fact(
                    "Source",
                    match self.overhead() {
                        Some((cost, all)) => format!(
                            "hardware; the recorder took {} of each operation and {} in all, by \
                             its own clock",
                            time(cost),
                            time(all)
                        ),
                        None => "hardware; too few operations to time the recording".into(),
                    },
                ),
            ],
            ..Document::default()
        };
        let mut head = Section::new("").prose(self.verdict());
        for note in self.notes() {
            head = head.note(note);
        }
        document.push(head);
        if survey.threads.is_empty() {
            return document;
        }
        let times = &self.used.times;
        document.push(times.section(vec![
            fact("Threads", grouped(survey.threads.len() as u64)),
            fact("Locks", grouped(survey.locks.len() as u64)),
            fact("Preempted", format!("{} times", grouped(survey.sum(|thread| thread.preempted)))),
        ]).note(
            "A thread had nothing to do while it slept or waited for a condition (with the mutex \
             that it takes again), for the end of a thread or for a file. Waits for something \
             that was not recorded are not known (I/O, semaphores, locks of other libraries) if \
             a thread had more than a few. Such a wait is seen if it took at least 20 µs, and a \
             hundred times what it takes to ask the system.",
        ));
        if let Some(spent) = self.used.spent().filter(|spent| !spent.parts().is_empty()) {
            let parts = spent
                .parts()
                .into_iter()
                .map(|(part, words)| format!("{} % {words}", percent(100.0 * part)));
            document.push(Section::new("Waits").items(parts.collect()));
        }
        if !self.used.locks.is_empty() {
            let locks = &self.used.locks;
            document.push(ContentionProfile::section("Hottest locks", locks, HOTTEST));
        }
        if !self.used.sites.is_empty() {
            let sites = &self.used.sites;
            document.push(ContentionProfile::section(
                "Hottest call sites",
                sites,
                HOTTEST,
            ));
        }
        document
    }

    /// Returns the findings as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let recording = &self.recording;
        let (survey, info) = (recording.survey(), recording.info());
        let of = |ticks: u64| recording.nanoseconds(ticks);
        let counts = |counts: Counts| {
            let mut json = counts.json();
            // Readers of this document rely on the key.
            json["held_ns"] = json!(counts.held_ns.unwrap_or(0.0));
            json
        };
        let overhead = self.overhead();
        json!({
            "schema": 1,
            "provenance": { "source": "hardware", "machine": info.machine },
            "command": info.command,
            "file": recording.path(),
            "bytes": recording.bytes(),
            "recorded_ns": recording.length_ns(),
            "round_trips_ns": info.round_trips,
            "cpus_used": info.cpus_used,
            "windows": info.windows.map(|windows| json!({
                "count": windows.count,
                "share": windows.share,
            })),
            "ended": match info.stopped {
                Stopped::Never => "unknown",
                Stopped::Ended => "program",
                Stopped::Full => "full",
                Stopped::Deadline => "seconds",
            },
            "missing_blocks": recording.trace().missing.blocks,
            "damaged_blocks": recording.trace().missing.damaged,
            "images": survey.images.iter().map(|image| json!({
                "number": image.number,
                "process": image.process,
                "forked": image.forked,
            })).collect::<Vec<_>>(),
            "waiting_share": self.used.times.share(),
            "operations": survey.operations,
            "overhead": overhead.map(|(cost, all)| json!({
                "ns_per_operation": cost,
                "ns": all,
            })),
            "threads": recording.trace().threads.iter().zip(&survey.threads).map(|(thread, times)| {
                json!({
                    "number": thread.number,
                    "image": thread.image,
                    "lived_ns": of(times.lived),
                    "waited_ns": of(times.waited),
                    "woke_ns": of(times.woke),
                    "idle_ns": of(times.idle),
                    "ready_ns": of(times.ready),
                    "unknown_ns": of(times.unknown),
                    "preempted": times.preempted,
                })
            }).collect::<Vec<_>>(),
            "account": self.used.times.json(),
            "waiting_between_windows": recording.waits_between_windows(),
            "bound": self.judged.bound.json(),
            "waiting": self.used.spent().map(|spent| spent.json()),
            "locks": survey.locks.iter().zip(&self.names).map(|(lock, name)| json!({
                "name": name,
                "kind": lock.kind.words(),
                "image": lock.image,
                "address": format!("{:#x}", lock.address),
                "counts": counts(recording.counts(&lock.tally)),
            })).collect::<Vec<_>>(),
            "sites": self.used.sites.iter().map(|site| json!({
                "name": site.name,
                "counts": counts(site.counts),
            })).collect::<Vec<_>>(),
            "verdict": self.verdict(),
            "notes": self.notes(),
        })
    }
}
