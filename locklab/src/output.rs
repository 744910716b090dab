//! The output of a command: standard output and files.
//!
//! This is the only place that writes to standard output, and that decides whether a file
//! may be overwritten: data of the user's must never be lost.

use locklab_host::error::Error;
use locklab_host::shell;
use locklab_preload_run::SYSTEM_START;
use locklab_trace::MAGIC;
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

pub use locklab_document::number::duration;

/// Writes to standard output. A closed pipe is not a failure.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written because the disk is full or it is
/// closed.
pub fn print(text: &str) -> Result<ExitCode, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write the report: {e}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints an answer, as JSON if that is requested.
///
/// # Errors
/// [`Error::Failed`] if standard output cannot be written.
pub fn answer(
    as_json: bool,
    json: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Error> {
    print(&match as_json {
        true => format!("{:#}\n", json()),
        false => text(),
    })
}

/// Says what was recorded, and ends as the program did.
pub(crate) fn ended(
    status: u8,
    json: &Value,
    text: &str,
    how: [bool; 2],
) -> Result<ExitCode, Error> {
    let [as_json, quiet] = how;
    if as_json {
        print(&format!("{json:#}\n"))?;
    } else if !quiet {
        // A message that cannot be written is not a failure.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    Ok(ExitCode::from(status))
}

/// Writes a requested file.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written.
pub fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text)
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
}

/// Appends to a file that others append to as well.
///
/// # Errors
/// [`Error::Failed`] if it cannot be written.
pub fn append_file(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| Error::Failed(format!("cannot write {}: {e}", path.display())))
}

/// Names a format in which Locklab writes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// A report as a page.
    Html,
    /// A report in Markdown.
    Markdown,
    /// Verdicts as JUnit XML.
    Junit,
    /// Verdicts as SARIF.
    Sarif,
    /// The picture of a report, as SVG.
    Picture,
    /// A timeline for Perfetto.
    Timeline,
    /// The steps of broken promises.
    Steps,
    /// How locks are verified, a line each.
    Verified,
    /// The table of named bugs in a page.
    Bugs,
    /// A machine file that was measured.
    Machine,
    /// What every lock did on a machine.
    Locks,
    /// Executions of each block of a program.
    Blocks,
    /// A recording, which is never overwritten.
    Recording,
    /// A lock to start from, which is the user's from then on.
    Lock,
    /// What a program prints.
    Printed,
}

impl FileFormat {
    /// Returns how such a file begins, and texts of which it has at least one.
    const fn marks(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Html => (
                "<!DOCTYPE html>",
                // The second is of version 0.3.
                &[
                    "<meta name=\"generator\" content=\"Locklab\"/>",
                    "<style>:root {\n  color-scheme: light dark;\n  --ground:",
                ],
            ),
            Self::Markdown => ("## ", &["\n**Figures:** ", "| Tool | locklab "]),
            Self::Junit => ("<?xml", &["package=\"locklab\""]),
            Self::Sarif => ("{", &["\"name\": \"locklab\""]),
            Self::Picture => ("<svg ", &["--ground:"]),
            Self::Timeline => ("{", &["\"otherData\":{\"entries_left_out\":"]),
            Self::Steps => ("", &[locklab_verify::LEGEND, "no promise is broken\n"]),
            Self::Verified => (locklab_verify::record::HEADER, &[""]),
            Self::Bugs => ("", &[locklab_verify::BUGS]),
            Self::Machine => ("# Made by `locklab machine fit`", &[""]),
            Self::Locks => ("{", &["\"fits\": ["]),
            Self::Blocks => ("address,bytes,instructions,executions", &[""]),
            Self::Recording | Self::Lock | Self::Printed => ("", &[]),
        }
    }

    fn is_of(self, text: &str) -> bool {
        let (start, marks) = self.marks();
        text.starts_with(start) && marks.iter().any(|mark| text.contains(mark))
    }
}

/// Returns whether a file begins as a recording of a program's locks does.
pub fn is_recording(file: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == MAGIC
}

/// The most bytes of a file that are looked at.
const LOOKED_AT: u64 = 64 << 20;

/// Checks that nothing is lost if a file is written: a recording is never overwritten, and
/// what Locklab did not write in this format only with `force`.
fn check_kept(path: &Path, format: FileFormat, force: bool) -> Result<(), Error> {
    let regular = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() > 0);
    if !regular {
        return Ok(());
    }
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(LOOKED_AT).read_to_end(&mut bytes);
    }
    let shown = path.display();
    if bytes.starts_with(&MAGIC) || bytes.starts_with(SYSTEM_START.as_bytes()) {
        return Err(Error::Usage(format!(
            "{shown} is a recording, and a recording is never overwritten; name another file, or \
             remove that one first"
        )));
    }
    let is_ours = std::str::from_utf8(&bytes).is_ok_and(|text| format.is_of(text));
    if is_ours || force {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{shown} is there already, and Locklab did not write it in this format; name another \
         file, or add --force to overwrite it"
    )))
}

/// Checks that a file can be written in this format, before long work, and that nothing is
/// lost by that. Leaves an existing file unchanged.
///
/// # Errors
/// [`Error::Usage`] if it cannot be written, is a recording, or is none of Locklab's files in
/// this format and `force` is not set.
pub fn check_writable(path: &Path, format: FileFormat, force: bool) -> Result<(), Error> {
    check_kept(path, format, force)?;
    let there = path.exists();
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|e| Error::Usage(format!("cannot write {}: {e}", path.display())))?;
    if !there {
        // An empty file would look like a report.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Returns the command line, with the program's name without its path, which does not
/// belong in a report.
pub fn command_line() -> String {
    let mut words = vec!["locklab".to_owned()];
    let given = std::env::args_os().skip(1);
    words.extend(given.map(|word| word.to_string_lossy().into_owned()));
    shell::line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_leaves_no_file_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        check_writable(&file, FileFormat::Html, false).unwrap();
        assert!(!file.exists());
        let missing = folder.path().join("no/such/report.html");
        assert!(
            check_writable(&missing, FileFormat::Html, false)
                .unwrap_err()
                .to_string()
                .contains("no/such")
        );
    }

    #[test]
    fn only_files_of_locklab_in_the_same_format_are_written_over() {
        const ALL: [FileFormat; 15] = [
            FileFormat::Html,
            FileFormat::Markdown,
            FileFormat::Junit,
            FileFormat::Sarif,
            FileFormat::Picture,
            FileFormat::Timeline,
            FileFormat::Steps,
            FileFormat::Verified,
            FileFormat::Bugs,
            FileFormat::Machine,
            FileFormat::Locks,
            FileFormat::Blocks,
            FileFormat::Recording,
            FileFormat::Lock,
            FileFormat::Printed,
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let document = locklab_document::Document {
            title: "A title".into(),
            head: vec![("Figures".into(), "none".into())],
            ..locklab_document::Document::default()
        };
        let html = locklab_document::render::html(&document);
        for format in ALL {
            std::fs::write(&path, "").unwrap();
            assert!(check_writable(&path, format, false).is_ok(), "{format:?}");
            std::fs::write(&path, "a letter to a friend\n").unwrap();
            let error = check_writable(&path, format, false).unwrap_err();
            assert!(error.to_string().contains("--force"), "{error}");
            assert!(check_writable(&path, format, true).is_ok(), "{format:?}");
            for start in [&MAGIC[..], SYSTEM_START.as_bytes()] {
                std::fs::write(&path, start).unwrap();
                for force in [false, true] {
                    let error = check_writable(&path, format, force).unwrap_err();
                    assert!(error.to_string().contains("never overwritten"), "{error}");
                }
                assert_eq!(std::fs::read(&path).unwrap(), start);
            }
            std::fs::write(&path, &html).unwrap();
            let kept = check_writable(&path, format, false);
            assert_eq!(kept.is_ok(), format == FileFormat::Html, "{format:?}");
        }
    }
}
