//! The files to which a report is written, in addition to standard output. It must never
//! know what a report is of.

use crate::output::{FileFormat, append_file, check_writable, write_file};
use clap::Args;
use locklab_document::{Document, render};
use locklab_host::error::Error;
use locklab_host::message;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files to which a report is written, in addition to standard output.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Reports")]
pub struct ReportFiles {
    /// Also write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the report in Markdown, as a summary of a CI job
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub markdown: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub junit: Option<PathBuf>,
    /// Also write the verdicts as SARIF
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub sarif: Option<PathBuf>,
    /// In a step of GitHub Actions: append the report to the job's summary, and
    /// annotate what fails
    #[arg(long, hide_short_help = true)]
    pub github: bool,
}

/// The most bytes of a summary that GitHub takes from a step.
const SUMMARY: usize = 1 << 20;

/// Writes a document in one format; the words are those of verdicts that fail.
type Render = fn(&Document, &[&str]) -> String;

impl ReportFiles {
    /// Returns each option with its format.
    fn formats(&self) -> [(&Option<PathBuf>, FileFormat, Render); 4] {
        [
            (&self.html, FileFormat::Html, |document, _| {
                render::html(document)
            }),
            (&self.markdown, FileFormat::Markdown, |document, _| {
                render::markdown(document)
            }),
            (&self.junit, FileFormat::Junit, render::junit),
            (&self.sarif, FileFormat::Sarif, |document, failing| {
                format!("{:#}\n", render::sarif(document, failing))
            }),
        ]
    }

    /// Returns the files that were requested, with their formats.
    fn requested(&self) -> impl Iterator<Item = (&PathBuf, FileFormat, Render)> {
        let formats = self.formats().into_iter();
        formats.filter_map(|(path, format, render)| Some((path.as_ref()?, format, render)))
    }

    /// Checks that every file can be written, before anything is measured.
    ///
    /// # Errors
    /// [`Error::Usage`] with the first file that cannot be written, or must not be.
    pub fn check(&self, force: bool) -> Result<(), Error> {
        self.requested()
            .try_for_each(|(path, format, _)| check_writable(path, format, force))?;
        match self.summary()? {
            // The report is appended, so nothing is lost.
            Some(summary) => check_writable(&summary, FileFormat::Markdown, true),
            None => Ok(()),
        }
    }

    /// Returns the file of the job's summary, where one was requested.
    fn summary(&self) -> Result<Option<PathBuf>, Error> {
        let file = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty());
        match file {
            _ if !self.github => Ok(None),
            Some(file) => Ok(Some(file.into())),
            None => Err(Error::Usage(
                "--github is for a step of GitHub Actions, and GITHUB_STEP_SUMMARY is not set; \
                 elsewhere take --markdown FILE"
                    .into(),
            )),
        }
    }

    /// Writes every requested file.
    ///
    /// # Errors
    /// [`Error::Failed`] with the first file that cannot be written.
    pub fn write(&self, document: &Document, failing: &[&str]) -> Result<(), Error> {
        let mut document = document.clone();
        for finding in &mut document.findings {
            finding.file = finding.file.take().map(in_repository);
        }
        // A report of files or of a simulation is as old as itself.
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let now = now.trim_end_matches('Z').to_owned();
        document.started.get_or_insert(now);
        let document = &document;
        self.requested()
            .try_for_each(|(path, _, render)| write_file(path, &render(document, failing)))?;
        let Some(summary) = self.summary()? else {
            return Ok(());
        };
        append_file(&summary, &shortened(render::markdown(document), SUMMARY))?;
        // The runner reads commands from either output; this one has no results.
        let annotations = render::annotations(document, failing);
        if !annotations.is_empty() {
            message::print(annotations.trim_end());
        }
        Ok(())
    }
}

/// Returns an absolute path as the repository that it is in has it, if it is in one.
fn in_repository(path: String) -> String {
    let file = Path::new(&path);
    let mut folders = file.ancestors().filter(|_| file.is_absolute()).skip(1);
    let root = folders.find(|folder| folder.join(".git").exists());
    match root.and_then(|root| file.strip_prefix(root).ok()) {
        Some(relative) => relative.display().to_string(),
        None => path,
    }
}

/// Leaves out the last lines of a text that has more bytes than allowed.
fn shortened(mut text: String, most: usize) -> String {
    const NOTE: &str = "\n\nThe report is longer than is shown here.\n";
    if text.len() > most {
        // Lines end at a boundary of characters.
        let fits = |(at, _): &(usize, char)| *at + NOTE.len() <= most;
        let ends = text.char_indices().filter(|(_, c)| *c == '\n');
        let end = ends.take_while(fits).last().map_or(0, |(at, _)| at);
        text.truncate(end);
        text.push_str(NOTE);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use locklab_document::Labels;

    #[test]
    fn a_summary_that_is_too_long_ends_with_a_line() {
        let text = "a line\n".repeat(100);
        assert_eq!(shortened(text.clone(), 700), text);
        let short = shortened(text, 699);
        assert!(short.len() <= 699 && short.contains("a line\n\nThe report is longer"));
    }

    #[test]
    fn a_path_within_a_repository_is_relative_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(in_repository(path("a/b")), path("a/b"));
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(in_repository(path("a/b")), "a/b");
        assert_eq!(in_repository("x/y".into()), "x/y");
    }

    /// The recipe of an output format: an option and a line in `formats`.
    #[test]
    fn an_option_of_a_format_writes_its_file() {
        #[derive(clap::Parser)]
        struct Options {
            #[command(flatten)]
            files: ReportFiles,
        }
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = Options::command()
            .get_arguments()
            .filter(|option| option.get_action().takes_values())
            .filter_map(|option| option.get_long().map(str::to_owned))
            .collect();
        let mut words = vec!["locklab".to_owned()];
        for option in &options {
            words.push(format!("--{option}"));
            words.push(folder.path().join(option).display().to_string());
        }
        let Options { files } = clap::Parser::parse_from(words);
        files.check(false).unwrap();
        let document = Document {
            title: "A title".into(),
            labels: Labels::new("tas", "mcs"),
            ..Document::default()
        };
        files.write(&document, &[]).unwrap();
        for option in options {
            let text = std::fs::read_to_string(folder.path().join(&option)).unwrap();
            assert!(!text.is_empty(), "--{option} wrote nothing");
        }
    }
}
