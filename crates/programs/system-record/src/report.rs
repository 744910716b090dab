//! A recording of the kernel's events as a report: the bound, where the waiting is spent, and
//! the call sites, as text and as JSON.

use crate::found::{Findings, Found};
use crate::json::json;
use crate::recording::{Events, Source};
use crate::tables;
use crate::words::{notes, verdict};
use locklab_document::number::{count, time};
use locklab_document::render::{self, Colour};
use locklab_document::{Document, Section};
use locklab_host::error::Error;
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A recording that was read.
#[derive(Debug)]
pub struct SystemRecorded {
    findings: Findings,
    file: PathBuf,
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
        Self {
            findings: Findings::of(events),
            file: file.into(),
        }
    }

    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        render::text(&self.document(), Colour::Plain)
    }

    /// Returns the findings as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json(&self.findings, &self.file)
    }

    /// Returns the report.
    #[must_use]
    pub fn document(&self) -> Document {
        let events = &self.findings.events;
        let head = &events.head;
        let fact = |name: &str, text: String| (name.to_owned(), text);
        let word = head.command.split(' ').next().unwrap_or_default();
        let program = word.rsplit('/').next().unwrap_or(word);
        let (title, what) = match head.source {
            Source::System => (
                format!("Locks of {program}"),
                "the kernel's events of futex calls, context switches and wake-ups",
            ),
            Source::Kernel => (
                format!("The kernel's locks while {program} ran"),
                "the kernel's events of lock contention, on the whole machine",
            ),
        };
        let recorded = format!(
            "{} in {}, {}",
            time(head.length as f64),
            self.file.display(),
            count(events.events.len(), "event")
        );
        let cost = head.record_ns.map_or_else(String::new, |ns| {
            let all = time(ns * events.events.len() as f64);
            format!(
                "; {} for each, as measured before it began, {all} in all",
                time(ns)
            )
        });
        let mut document = Document {
            title,
            head: vec![
                fact("Command", head.command.clone()),
                fact("Machine", head.machine.clone()),
                fact("Recorded", recorded),
                fact("Source", format!("hardware; {what}{cost}")),
            ],
            ..Document::default()
        };
        let mut first = Section::new("").prose(verdict(&self.findings));
        for note in notes(&self.findings) {
            first = first.note(note);
        }
        document.push(first);
        match &self.findings.found {
            Found::Program(found) => tables::program(&self.findings, found, &mut document),
            Found::Kernel(found) => tables::kernel(found, &mut document),
        }
        if let Value::Object(data) = self.json() {
            document.data = data;
        }
        document
    }
}
