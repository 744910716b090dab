//! A recording of the kernel's events in words: the bound, where the waiting is spent, and
//! the call sites, as text and as JSON.
//!
//! It must never claim more than the events show: what was not told, lost or not seen is said.

use crate::bound::{Interval, interval};
use crate::kernel_waits::{KernelUse, kernel_use};
use crate::recording::{Events, Source, Stopped};
use crate::waits::{Lock, Parts, Use, Waits, waits};
use locklab_document::number::{count, grouped, percent, time};
use locklab_document::render::{self, Colour};
use locklab_document::{Column, ColumnGroup, Document, Part, Section, Table};
use locklab_host::error::Error;
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Locks, or callers, that are shown.
const SHOWN: usize = 8;
/// The share of waiting below which no lock is worth a change.
const NOTHING: f64 = 0.01;

/// A recording that was read.
#[derive(Debug)]
pub struct SystemRecorded {
    events: Events,
    file: PathBuf,
    found: Found,
    share: Interval,
}

#[derive(Debug)]
enum Found {
    Program(Waits),
    Kernel(KernelUse),
}

impl SystemRecorded {
    /// Reads the recording in `file`.
    ///
    /// # Errors
    /// [`Error::Failed`] if it cannot be read or is no such recording of this version.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let failed = |why: String| Error::Failed(format!("{}: {why}", file.display()));
        let open = File::open(file).map_err(|e| failed(format!("cannot be read: {e}")))?;
        let events = Events::read(BufReader::new(open)).map_err(failed)?;
        Ok(Self::of(events, file))
    }

    pub(crate) fn of(events: Events, file: &Path) -> Self {
        let (found, windows) = match events.head.source {
            Source::System => {
                let found = waits(&events);
                let windows = found.windows.clone();
                (Found::Program(found), windows)
            }
            Source::Kernel => {
                let found = kernel_use(&events);
                let windows = found.windows.clone();
                (Found::Kernel(found), windows)
            }
        };
        let share = interval(&windows, lost(&events));
        Self {
            events,
            file: file.into(),
            found,
            share,
        }
    }

    /// The share of the time with work in which threads waited for locks or woke those that
    /// did; of the kernel's locks, that of all CPU time.
    #[must_use]
    pub fn share(&self) -> Interval {
        self.share
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        render::text(&self.document(), Colour::Plain)
    }

    /// The report.
    #[must_use]
    pub fn document(&self) -> Document {
        let head = &self.events.head;
        let fact = |name: &str, text: String| (name.to_owned(), text);
        let what = match head.source {
            Source::System => "the kernel's events (futex, context switches, wake-ups)",
            Source::Kernel => "the kernel's events (lock contention), of the whole machine",
        };
        let mut document = Document {
            title: match head.source {
                Source::System => format!("Locks of {}", self.program()),
                Source::Kernel => format!("The kernel's locks while {} ran", self.program()),
            },
            head: vec![
                fact("Command", head.command.clone()),
                fact("Machine", head.machine.clone()),
                fact(
                    "Recorded",
                    format!(
                        "{} in {}, {}",
                        time(head.length as f64),
                        self.file.display(),
                        count(self.events.events.len(), "event")
                    ),
                ),
                fact("Source", format!("hardware; {what}")),
            ],
            ..Document::default()
        };
        let mut first = Section::new("").prose(self.verdict());
        for note in self.notes() {
            first = first.note(note);
        }
        document.push(first);
        match &self.found {
            Found::Program(found) => program(found, &mut document),
            Found::Kernel(found) => kernel(found, &mut document),
        }
        if let Value::Object(data) = self.json() {
            document.data = data;
        }
        document
    }

    fn program(&self) -> &str {
        let word = self
            .events
            .head
            .command
            .split(' ')
            .next()
            .unwrap_or_default();
        word.rsplit('/').next().unwrap_or(word)
    }

    /// No lock can make the program more than so many times as fast.
    fn limit(&self, found: &Waits) -> f64 {
        let without = 1.0 / (1.0 - self.share.high).max(0.001);
        let head = &self.events.head;
        let work = found.ran.saturating_sub(found.woke + found.spun).max(1);
        let cpus = head.cpus as f64 * head.length as f64 / work as f64;
        without.min(cpus.max(1.0))
    }

    /// What to think of it.
    fn verdict(&self) -> String {
        let share = 100.0 * self.share.share;
        let between = format!(
            "{} % ({} to {} %)",
            percent(share),
            percent(100.0 * self.share.low),
            percent(100.0 * self.share.high)
        );
        match &self.found {
            Found::Program(found) if self.events.events.is_empty() || found.threads == 0 => {
                "Nothing was recorded: no thread did anything meanwhile.".into()
            }
            Found::Program(found) => {
                let gain = 100.0 * (self.limit(found) - 1.0);
                if found.calls > 0 && found.unnamed == found.calls {
                    return "No stack names what was waited for, so locks cannot be told from \
                            conditions: build the program with symbols."
                        .into();
                }
                if self.share.high < NOTHING {
                    return format!(
                        "Nothing to gain: {between} of the time in which threads had work was \
                         spent waiting for locks, spinning or asleep, or waking those that did; no lock can make the \
                         program more than {} % faster.",
                        percent(gain)
                    );
                }
                let spent = format!(
                    "{between} of the time in which threads had work was spent waiting for locks \
                     or waking those that did: no lock can make the program more than {} % faster.",
                    percent(gain)
                );
                match found.locks.first() {
                    Some(lock) => format!("{spent} {}", advice(lock, found.waited)),
                    None => spent,
                }
            }
            Found::Kernel(found) if found.waits == 0 => {
                "Nothing to gain: no lock of the kernel was waited for.".into()
            }
            Found::Kernel(found) => {
                let most =
                    found
                        .callers
                        .first()
                        .map_or_else(String::new, |((caller, kind), used)| {
                            format!(
                                "; {} % of it for a {kind} in {caller}",
                                percent(100.0 * used.waited as f64 / found.waited.max(1) as f64)
                            )
                        });
                format!(
                    "{} of {} in all, {between} of the CPUs' time{most}.",
                    count(found.waits as usize, "wait"),
                    time(found.waited as f64)
                )
            }
        }
    }

    /// What the reader has to know.
    fn notes(&self) -> Vec<String> {
        let head = &self.events.head;
        let mut notes = Vec::new();
        if head.lost > 0 {
            notes.push(format!(
                "{} events were lost, {} % of all: the kernel wrote faster than they were read, \
                 and the interval is that much wider",
                grouped(head.lost),
                percent(100.0 * lost(&self.events))
            ));
        }
        if head.unreadable > 0 {
            notes.push(format!(
                "{} could not be read",
                count(head.unreadable as usize, "record")
            ));
        }
        if self.events.cut {
            notes.push("the file is cut off; it was read up to there".into());
        }
        match head.stopped {
            Stopped::Full => notes.push(format!(
                "there was no more room after {}, and the program ran on unrecorded; --megabytes \
                 gives it more",
                time(head.length as f64)
            )),
            Stopped::Seconds => notes.push(format!(
                "recorded for {}; the program ran on unrecorded",
                time(head.length as f64)
            )),
            Stopped::Program => {}
        }
        match &self.found {
            Found::Program(found) => {
                notes.push(
                    "spinning is seen by samples, in functions that wait for locks by their names; \
                     where a lock spins within its caller, it counts as work"
                        .into(),
                );
                if let Some(others) = head.others.filter(|others| *others > 0.1)
                    && found.ready > found.ran
                {
                    notes.push(format!(
                        "other programs had {others:.1} CPUs meanwhile, and threads were ready \
                         without a CPU for longer than they ran; record it on an idle machine"
                    ));
                }
                let share = |part: u64| 100.0 * part as f64 / found.calls.max(1) as f64;
                if found.early > 0 {
                    notes.push(format!(
                        "{} % of the stacks end before they say who takes the lock",
                        percent(share(found.early))
                    ));
                }
                if found.unnamed > 0 && found.unnamed < found.calls {
                    notes.push(format!(
                        "{} % of the waits name nothing that is known, and count as no lock's",
                        percent(share(found.unnamed))
                    ));
                }
                let runs = |name: &str| {
                    self.events
                        .functions
                        .iter()
                        .any(|function| function.0.starts_with(name))
                };
                if runs("runtime.futex") {
                    notes.push(
                        "a Go program: goroutines wait in Go's scheduler, which the kernel does \
                         not see, so locks of sync are not in it; only the runtime's own are. Go's \
                         mutex profile (pprof) has them"
                            .into(),
                    );
                }
                if self
                    .events
                    .functions
                    .iter()
                    .any(|function| function.2 == "libjvm.so")
                {
                    notes.push(
                        "a Java program: monitors are seen; locks of java.util.concurrent park \
                         like threads without work, and are told from them only if the stack has \
                         names (-XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit)"
                            .into(),
                    );
                }
            }
            Found::Kernel(found) => {
                if !head.kernel_names {
                    notes.push(
                        "the kernel hides the names of its functions (kernel.kptr_restrict)".into(),
                    );
                }
                if found.unmatched > 0 {
                    notes.push(format!(
                        "{} without a begin are left out",
                        count(found.unmatched, "end")
                    ));
                }
            }
        }
        notes
    }

    /// The findings as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let head = &self.events.head;
        let mut value = json!({
            "schema": 1,
            "provenance": { "source": "hardware", "machine": head.machine },
            "source": head.source,
            "command": head.command,
            "file": self.file,
            "recorded_ns": head.length,
            "cpus": head.cpus,
            "ended": head.stopped,
            "events": self.events.events.len(),
            "lost_events": head.lost,
            "lost_share": lost(&self.events),
            "waiting_share": self.share.share,
            "waiting_share_low": self.share.low,
            "waiting_share_high": self.share.high,
            "verdict": self.verdict(),
            "notes": self.notes(),
        });
        let fields = match &self.found {
            Found::Program(found) => json!({
                "gain_at_most_percent": 100.0 * (self.limit(found) - 1.0),
                "threads": found.threads,
                "busy_ns": found.busy,
                "ran_ns": found.ran,
                "ready_ns": found.ready,
                "waited_ns": found.waited,
                "woke_ns": found.woke,
                "spun_ns": found.spun,
                "conditions_ns": found.conditions,
                "barriers_ns": found.barriers,
                "parked_ns": found.parked,
                "untold_ns": found.untold,
                "asleep_ns": found.asleep,
                "stacks_early": found.early,
                "stacks_unnamed": found.unnamed,
                "futex_waits": found.calls,
                "locks": found.locks.iter().map(|lock| json!({
                    "family": lock.family,
                    "process": lock.process,
                    "address": lock.address.map(|address| format!("{address:#x}")),
                    "counts": used(&lock.all),
                    "sites": lock.sites.iter().map(|(name, site)| json!({
                        "name": name,
                        "counts": used(site),
                    })).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            }),
            Found::Kernel(found) => json!({
                "waits": found.waits,
                "waited_ns": found.waited,
                "unmatched": found.unmatched,
                "callers": found.callers.iter().map(|((caller, kind), used)| json!({
                    "caller": caller,
                    "kind": kind,
                    "locks": used.locks.len(),
                    "waits": used.waits,
                    "waited_ns": used.waited,
                    "longest_ns": used.longest,
                })).collect::<Vec<_>>(),
            }),
        };
        if let (Value::Object(all), Value::Object(fields)) = (&mut value, fields) {
            all.extend(fields);
        }
        value
    }
}

/// The share of events that were lost.
fn lost(events: &Events) -> f64 {
    let lost = events.head.lost as f64;
    lost / (lost + events.events.len() as f64).max(1.0)
}

fn used(used: &Use) -> Value {
    json!({
        "waits": used.waits,
        "waited_ns": used.waited,
        "longest_ns": used.longest,
        "holder_working_ns": used.parts.working,
        "holder_preempted_ns": used.parts.preempted,
        "holder_asleep_ns": used.parts.asleep,
        "in_line_ns": used.parts.in_line,
        "wake_up_ns": used.parts.waking,
        "unknown_ns": used.parts.unknown,
    })
}

/// The place that takes a lock most, by its name.
fn place(lock: &Lock) -> &str {
    let most = lock.sites.iter().max_by_key(|(_, site)| site.waited);
    most.map_or("(place unknown)", |(name, _)| name)
}

/// What to do about the lock that is waited for most, in a sentence.
fn advice(lock: &Lock, waited: u64) -> String {
    let Parts {
        working,
        preempted,
        asleep,
        in_line,
        waking,
        unknown,
    } = lock.all.parts;
    let all = lock.all.parts.sum().max(1);
    let what = [
        (
            working,
            "its holder works meanwhile: shorten what is done under it, or split it",
        ),
        (
            preempted,
            "its holder had lost its CPU: run fewer threads, or give it more CPUs",
        ),
        (
            asleep,
            "its holder slept or waited itself: do not hold it across that",
        ),
        (
            in_line,
            "others were served first: split it, or take it less often",
        ),
        (
            waking,
            "the waiter was woken and not yet on a CPU: wake fewer, or spin before sleeping",
        ),
        (unknown, "who held it is not seen by the kernel"),
    ];
    let (part, words) = what
        .into_iter()
        .max_by_key(|(part, _)| *part)
        .unwrap_or_default();
    format!(
        "{} % of the waiting is for a lock of {} taken in {}; for {} % of that, {words}.",
        percent(100.0 * lock.all.waited as f64 / waited.max(1) as f64),
        lock.family,
        place(lock),
        percent(100.0 * part as f64 / all as f64)
    )
}

fn program(found: &Waits, document: &mut Document) {
    let fact = |name: &str, text: String| (name.to_owned(), text);
    let of = |part: u64| {
        let all = found.busy.max(1) as f64;
        format!(
            "{} ({} %)",
            time(part as f64),
            percent(100.0 * part as f64 / all)
        )
    };
    let idle = |part: u64| time(part as f64);
    let mut section = Section::new("Time with work").facts(vec![
        fact("Threads", grouped(found.threads as u64)),
        fact("On a CPU", of(found.ran)),
        fact("Ready, without a CPU", of(found.ready)),
        fact("Waited for locks", of(found.waited)),
        fact("Woke waiters", of(found.woke)),
        fact("Spun for locks", of(found.spun)),
    ]);
    section = section.note(format!(
        "no work: {} for conditions, {} at barriers and ends of threads, {} parked, {} in waits \
         that no stack tells, {} asleep or in input and output; of all threads together.",
        idle(found.conditions),
        idle(found.barriers),
        idle(found.parked),
        idle(found.untold),
        idle(found.asleep)
    ));
    document.push(section);
    if found.locks.is_empty() {
        return;
    }
    let column = |title: &str| Column::new(title, 7);
    let shown = || found.locks.iter().take(SHOWN).enumerate();
    let rows = shown().map(|(number, lock)| {
        let share = |part: u64| {
            let all = lock.all.parts.sum().max(1) as f64;
            format!("{} %", percent(100.0 * part as f64 / all))
        };
        let parts = &lock.all.parts;
        vec![
            format!("{}", number + 1),
            grouped(lock.all.waits),
            format!(
                "{} %",
                percent(100.0 * lock.all.waited as f64 / found.waited.max(1) as f64)
            ),
            time(lock.all.waited as f64 / lock.all.waits.max(1) as f64),
            share(parts.working),
            share(parts.preempted),
            share(parts.asleep),
            share(parts.in_line),
            share(parts.waking),
            share(parts.unknown),
        ]
    });
    let table = Table {
        groups: vec![
            ColumnGroup::new("", vec![Column::new("#", 3)]),
            ColumnGroup::new(
                "waits",
                vec![column("number"), column("of all"), column("mean")],
            ),
            ColumnGroup::new(
                "of the waiting: holder",
                vec![column("works"), column("no CPU"), column("asleep")],
            ),
            ColumnGroup::new(
                "",
                vec![column("in line"), column("waking"), column("unknown")],
            ),
        ],
        rows: rows.collect(),
    };
    let names = shown().map(|(number, lock)| {
        let address = lock
            .address
            .map_or_else(String::new, |at| format!(" at {at:#x}"));
        let more = match lock.sites.len() {
            0 | 1 => String::new(),
            all => format!(", and {}", count(all - 1, "other place")),
        };
        format!(
            "#{} {}{address}: {}{more}",
            number + 1,
            lock.family,
            place(lock)
        )
    });
    document.push(
        Section::new("Locks")
            .with(Part::Table(table))
            .items(names.collect())
            .note("the thread that woke a waiter is taken for the holder."),
    );
}

fn kernel(found: &KernelUse, document: &mut Document) {
    if found.callers.is_empty() {
        return;
    }
    let column = |title: &str, width| Column::new(title, width);
    let shown = || found.callers.iter().take(SHOWN).enumerate();
    let rows = shown().map(|(number, ((_, kind), used))| {
        vec![
            format!("{}", number + 1),
            (*kind).to_owned(),
            grouped(used.locks.len() as u64),
            grouped(used.waits),
            time(used.waited as f64),
            time(used.longest as f64),
            time(used.waited as f64 / used.waits.max(1) as f64),
        ]
    });
    let table = Table {
        groups: vec![
            ColumnGroup::new(
                "",
                vec![column("#", 3), column("kind", 11), column("locks", 6)],
            ),
            ColumnGroup::new(
                "waits",
                vec![
                    column("number", 8),
                    column("total", 9),
                    column("longest", 9),
                    column("mean", 9),
                ],
            ),
        ],
        rows: rows.collect(),
    };
    let names = shown().map(|(number, ((caller, _), _))| format!("#{} {caller}", number + 1));
    document.push(
        Section::new("Callers")
            .with(Part::Table(table))
            .items(names.collect()),
    );
}
