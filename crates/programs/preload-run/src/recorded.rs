//! A recording in words: who waited, for what, and whether another lock could
//! gain anything.
//!
//! It turns a recording into text and JSON, and reads the program's files for
//! names. It must never claim more than was recorded.

use crate::summary::{LOCKS_OF_RUNTIMES, mean, time};
use crate::symbols::Symbols;
use crate::waiting::{Counts, Lock, Site, Waiting, waiting};
use locklab_document::number::{count, grouped, percent, short};
use locklab_document::render::{self, Colour};
use locklab_document::{Column, ColumnGroup, Document, Part, Section, Table};
use locklab_host::error::Error;
use locklab_trace::{Apart, Missing, Source, Stopped, Trace, calls};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of call sites that are shown.
const HOTTEST: usize = 5;
/// Number of ways to call sites that are named: names take long to find.
const NAMED: usize = 200;
/// The share of waiting below which no other lock is worth a try.
const NOTHING: f64 = 0.01;

/// A recording that was read.
pub struct Recorded {
    trace: Trace,
    waiting: Waiting,
    sites: Vec<(String, Counts)>,
    /// The file's name and size in bytes.
    file: PathBuf,
    bytes: u64,
    /// Why nothing was recorded, where that is known.
    why_empty: Option<String>,
    /// What else the reader has to know.
    note: Option<String>,
}

impl Recorded {
    /// Reads the recording in `file`.
    ///
    /// # Errors
    /// [`Error::Failed`] if it cannot be read or is no recording of this version.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let failed = |why: String| Error::Failed(format!("{}: {why}", file.display()));
        let bytes = fs::read(file).map_err(|e| failed(format!("cannot be read: {e}")))?;
        let length = bytes.len() as u64;
        let trace = Trace::read(bytes).map_err(|fault| failed(fault.to_string()))?;
        let waiting = waiting(&trace);
        let sites = named(&waiting);
        Ok(Self {
            trace,
            waiting,
            sites,
            file: file.into(),
            bytes: length,
            why_empty: None,
            note: None,
        })
    }

    pub(crate) fn with_why_empty(self, why: Option<String>) -> Self {
        Self {
            why_empty: why,
            ..self
        }
    }

    pub(crate) fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        render::text(&self.document(), Colour::Plain)
    }

    /// Length of the recording in nanoseconds.
    fn length(&self) -> f64 {
        let info = &self.trace.info;
        self.trace
            .nanoseconds(info.ended.saturating_sub(info.began))
    }

    fn program(&self) -> &str {
        let command = &self.trace.info.command;
        let word = command.split(' ').next().unwrap_or(command);
        word.rsplit('/')
            .next()
            .unwrap_or(word)
            .trim_end_matches(',')
    }

    /// What to think of it, in a sentence.
    fn verdict(&self) -> String {
        let waiting = &self.waiting;
        if self.trace.threads.is_empty() {
            let why = self.why_empty.as_deref();
            return format!(
                "Nothing was recorded: {}.",
                why.unwrap_or("the program did not load the recorder, or could not use it")
            );
        }
        let acquired: u64 = waiting.locks.iter().map(|lock| lock.counts.acquired).sum();
        if acquired == 0 && self.trace.info.source != Source::Program {
            return "No lock was acquired in it: perf lost the begin or the end of each wait."
                .into();
        }
        if acquired == 0 {
            let own = LOCKS_OF_RUNTIMES
                .iter()
                .find(|(start, _)| self.program().starts_with(start))
                .map_or(
                    "locks that a language brings itself (Rust, Go, Java) are not seen",
                    |(_, own)| own,
                );
            return format!(
                "No pthread lock was taken; {own}. 'locklab record --system' sees such locks."
            );
        }
        if self.trace.threads.len() == 1 && self.trace.info.source == Source::Program {
            return "Nothing to gain: one thread, which never waits for a lock.".into();
        }
        if self.trace.missing != Missing::default() {
            return "No verdict: the file is not whole, so who waited for whom is not known."
                .into();
        }
        if self.trace.info.source == Source::KernelWaits {
            return self.waits_of_kernel();
        }
        let share = 100.0 * waiting.share();
        let spent = format!(
            "{} % of the time in which threads had work is spent waiting for locks or waking \
             those that do",
            percent(share)
        );
        if waiting.share() < NOTHING {
            return format!("Nothing to gain: {spent}.");
        }
        let all: u64 = waiting.locks.iter().map(|lock| lock.counts.waited).sum();
        let hottest = waiting.locks.iter().max_by_key(|lock| lock.counts.waited);
        match hottest.filter(|lock| lock.counts.waited > 0) {
            Some(lock) => format!(
                "{spent}; the lock {} has {} % of the waiting.",
                self.called(lock),
                percent(100.0 * lock.counts.waited as f64 / all as f64)
            ),
            None => format!("{spent}."),
        }
    }

    /// What a lock is called in a sentence: by lockdep's name, if there is one.
    fn called(&self, lock: &Lock) -> String {
        match self.waiting.name_of(lock) {
            Some(name) => format!("{name} ({:#x})", lock.address),
            None => format!("at {:#x}", lock.address),
        }
    }

    /// What to think of waits alone.
    fn waits_of_kernel(&self) -> String {
        let waiting = &self.waiting;
        let sum = |of: fn(&Counts) -> u64| -> u64 {
            waiting.locks.iter().map(|lock| of(&lock.counts)).sum()
        };
        let (waits, ticks) = (sum(|counts| counts.contended), sum(|counts| counts.waited));
        let all = format!(
            "{} {} of {} in all",
            grouped(waits),
            if waits == 1 { "wait" } else { "waits" },
            time(self.trace.nanoseconds(ticks))
        );
        match waiting.locks.iter().max_by_key(|lock| lock.counts.waited) {
            Some(lock) if ticks > 0 => format!(
                "{all}; the lock {} has {} % of it.",
                self.called(lock),
                percent(100.0 * lock.counts.waited as f64 / ticks as f64)
            ),
            _ => format!("{all}."),
        }
    }

    /// What the reader has to know of the recording.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.note.clone());
        let info = &self.trace.info;
        if info.source == Source::KernelWaits {
            notes.push(
                "perf recorded waits only: neither holds nor acquisitions of free locks are seen, \
                 so nothing says what another lock would gain"
                    .into(),
            );
        }
        let after = time(self.length());
        match info.stopped {
            Stopped::Full => notes.push(format!(
                "the file was full after {after}, and the program ran on unrecorded; \
                 --megabytes gives it more room"
            )),
            Stopped::Deadline => notes.push(format!(
                "recorded for {after} as asked; the program ran on unrecorded"
            )),
            Stopped::Never => notes.push(
                "the command that recorded was stopped before the program ended; all that was \
                 recorded until then is here"
                    .into(),
            ),
            Stopped::Ended => {}
        }
        if let Apart::Moved([one, two]) = info.apart() {
            notes.push(format!(
                "the CPUs were moved meanwhile: a round trip of a cache line between two of them \
                 took {one:.0} ns at first and {two:.0} ns at the end, and how long locks are \
                 waited for follows that"
            ));
        }
        if let Some(others) = info.shared_with_others() {
            notes.push(format!(
                "other programs had {others:.1} CPUs while it was recorded, and hardly one was \
                 free, so the program ran slower than alone; record it on an idle machine"
            ));
        }
        if self.trace.missing.blocks > 0 {
            notes.push(format!(
                "the file is cut off: of {} a part or all is missing; the rest was read",
                count(self.trace.missing.blocks as usize, "block")
            ));
        }
        if self.trace.missing.damaged > 0 {
            notes.push(format!(
                "{} of the file is damaged; it was read up to the damage",
                count(self.trace.missing.damaged as usize, "block")
            ));
        }
        let forks = self.waiting.images.iter().filter(|image| image.forked);
        let (forks, images) = (forks.count(), self.waiting.images.len());
        if images > 1 {
            notes.push(format!(
                "{} were recorded, {forks} of them by fork; each has locks of its own",
                count(images, "program image")
            ));
        }
        notes
    }

    /// What the recording itself took, in nanoseconds: of an operation, and in
    /// all.
    fn overhead(&self) -> Option<(f64, f64)> {
        let cost = self.waiting.cost()? * self.trace.info.nanoseconds_per_tick;
        Some((cost, cost * self.waiting.operations as f64))
    }

    fn document(&self) -> Document {
        let fact = |name: &str, text: String| (name.to_owned(), text);
        let info = &self.trace.info;
        let waiting = &self.waiting;
        let mut document = Document {
            title: format!("Locks of {}", self.program()),
            head: vec![
                fact("Command", info.command.clone()),
                fact("Machine", info.machine.clone()),
                fact(
                    "Recorded",
                    format!(
                        "{} in {}, {} kB",
                        time(self.length()),
                        self.file.display(),
                        grouped(self.bytes.div_ceil(1000))
                    ),
                ),
                fact(
                    "Source",
                    match self.overhead() {
                        Some((cost, all)) => format!(
                            "hardware; the recording took {} of each operation, {} in all, by \
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
        if self.trace.threads.is_empty() {
            return document;
        }
        let part = |ticks: u64| {
            let all = waiting.sum(|thread| thread.lived).max(1);
            format!(
                "{} ({} %)",
                time(self.trace.nanoseconds(ticks)),
                percent(100.0 * ticks as f64 / all as f64)
            )
        };
        document.push(Section::new("Threads").facts(vec![
            fact("Threads", grouped(self.trace.threads.len() as u64)),
            fact("Locks", grouped(waiting.locks.len() as u64)),
            fact("Lived, in all", time(self.trace.nanoseconds(waiting.sum(|t| t.lived)))),
            fact("Waited for locks", part(waiting.sum(|t| t.waited))),
            fact("Woke waiters", part(waiting.sum(|t| t.woke))),
            fact("Had no work", part(waiting.sum(|t| t.idle))),
            fact("Preempted", format!("{} times", grouped(waiting.sum(|t| t.preempted)))),
        ]).note(
            "had no work: slept, or waited for conditions (with the mutex that they take again), \
             ends of threads and files, or for what was not recorded (I/O, semaphores, locks of \
             other libraries), if that took at least 20 µs, and a hundred times what \
             it takes to ask the system.",
        ));
        if !self.sites.is_empty() {
            document.push(self.hottest());
        }
        document
    }

    fn hottest(&self) -> Section {
        let column = |title: &str, width| Column::new(title, width);
        let all: u64 = self.sites.iter().map(|(_, counts)| counts.waited).sum();
        let sites = self.sites.iter().take(HOTTEST).enumerate();
        let of = |ticks: u64| self.trace.nanoseconds(ticks);
        let rows = sites.clone().map(|(number, (_, counts))| {
            vec![
                format!("{}", number + 1),
                short(counts.acquired as f64),
                short(counts.contended as f64),
                match all {
                    0 => "-".into(),
                    all => format!("{} %", percent(100.0 * counts.waited as f64 / all as f64)),
                },
                mean(of(counts.waited), counts.contended),
                match self.trace.info.source {
                    Source::KernelWaits => "-".into(),
                    _ => mean(of(counts.held), counts.acquired),
                },
            ]
        });
        let table = Table {
            groups: vec![
                ColumnGroup::new("", vec![column("#", 3)]),
                ColumnGroup::new("", vec![column("acquired", 8), column("contended", 9)]),
                ColumnGroup::new("waited", vec![column("of all", 7), column("mean", 7)]),
                ColumnGroup::new("held", vec![column("mean", 7)]),
            ],
            rows: rows.collect(),
        };
        let names = sites.map(|(number, (name, _))| format!("#{} {name}", number + 1));
        Section::new("Hottest call sites")
            .with(Part::Table(table))
            .items(names.collect())
    }

    /// The findings as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let of = |ticks: u64| self.trace.nanoseconds(ticks);
        let (waiting, info) = (&self.waiting, &self.trace.info);
        let counts = |counts: &Counts| {
            json!({
                "acquired": counts.acquired,
                "contended": counts.contended,
                "waited_ns": of(counts.waited),
                "held_ns": of(counts.held),
            })
        };
        let overhead = self.overhead();
        json!({
            "schema": 1,
            "provenance": { "source": "hardware", "machine": info.machine },
            "command": info.command,
            "file": self.file,
            "bytes": self.bytes,
            "recorded_ns": self.length(),
            "round_trips_ns": info.round_trips,
            "cpus_used": info.cpus_used,
            "ended": match info.stopped {
                Stopped::Never => "unknown",
                Stopped::Ended => "program",
                Stopped::Full => "full",
                Stopped::Deadline => "seconds",
            },
            "missing_blocks": self.trace.missing.blocks,
            "damaged_blocks": self.trace.missing.damaged,
            "images": waiting.images.iter().map(|image| json!({
                "number": image.number,
                "process": image.process,
                "forked": image.forked,
            })).collect::<Vec<_>>(),
            "waiting_share": waiting.share(),
            "operations": waiting.operations,
            "overhead": overhead.map(|(cost, all)| json!({
                "ns_per_operation": cost,
                "ns": all,
            })),
            "threads": self.trace.threads.iter().zip(&waiting.threads).map(|(thread, times)| {
                json!({
                    "number": thread.number,
                    "image": thread.image,
                    "lived_ns": of(times.lived),
                    "waited_ns": of(times.waited),
                    "woke_ns": of(times.woke),
                    "idle_ns": of(times.idle),
                    "preempted": times.preempted,
                })
            }).collect::<Vec<_>>(),
            "locks": waiting.locks.iter().map(|lock| json!({
                "image": lock.image,
                "address": format!("{:#x}", lock.address),
                "name": waiting.name_of(lock),
                "counts": counts(&lock.counts),
            })).collect::<Vec<_>>(),
            "sites": self.sites.iter().map(|(name, sum)| json!({
                "name": name,
                "counts": counts(sum),
            })).collect::<Vec<_>>(),
            "verdict": self.verdict(),
            "notes": self.notes(),
        })
    }
}

/// The hottest call sites with their names; ways to one place are added up.
fn named(waiting: &Waiting) -> Vec<(String, Counts)> {
    let heat = |counts: &Counts| (counts.waited, counts.held, counts.acquired);
    let mut ways: Vec<&Site> = waiting
        .sites
        .iter()
        .filter(|site| site.counts.acquired + site.counts.contended > 0)
        .collect();
    ways.sort_by_key(|site| std::cmp::Reverse(heat(&site.counts)));
    let mut symbols = Symbols::default();
    let mut by_name: BTreeMap<String, Counts> = BTreeMap::new();
    for (number, site) in ways.iter().enumerate() {
        let name = match number < NAMED {
            true => symbols.place(&calls(&waiting.modules, site.image, &site.frames)),
            false => "(other places)".into(),
        };
        let sum = by_name.entry(name).or_default();
        sum.acquired += site.counts.acquired;
        sum.contended += site.counts.contended;
        sum.waited += site.counts.waited;
        sum.held += site.counts.held;
    }
    let mut sites: Vec<_> = by_name.into_iter().collect();
    sites.sort_by_key(|(_, counts)| std::cmp::Reverse(heat(counts)));
    sites
}
