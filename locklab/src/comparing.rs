//! The common part of every comparing command: its options, and the path from
//! an instrument to a printed report and an exit code.
//!
//! It is declared once, so that `--resume` or `--fail-on` mean the same for
//! locks, programs and kernels. It must never know what is compared.

use crate::cli::{Common, StoreArgs};
use crate::output::{check_writable, command_line, print, store_path, write_file};
use clap::Args;
use locklab_document::number::{count, duration};
use locklab_document::{Document, render};
use locklab_host::error::Error;
use locklab_host::message;
use locklab_lab::experiment::{Experiment, Provenance};
use locklab_lab::gate::{FailOn, fails, not_complete, too_few_pairs};
use locklab_lab::instrument::Instrument;
use locklab_lab::report::{self, Context, Reporter, Words};
use locklab_lab::runner::Stop;
use locklab_lab::session::{Measured, Session};
use locklab_lab::store::{Listed, Store};
use locklab_lab::verdicts::{Verdicts, judge};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How a comparison is carried out and reported, whatever is compared. What is
/// compared, and by which design, are settings, which a file may have too.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "How it is carried out")]
pub struct ComparingArgs {
    /// Compare the baseline with itself, and store the bias of this set-up
    /// (rank: eight copies of one lock)
    #[arg(long)]
    pub aa: bool,
    /// Continue the same comparison where it was interrupted
    #[arg(long)]
    pub resume: bool,
    /// Exit with 3 if a verdict is one of these, or if something is missing
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) files: ReportFiles,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) store: StoreArgs,
}

/// Files to which a report is written, in addition to standard output.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Reports")]
pub struct ReportFiles {
    /// Also write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the report in Markdown, as a summary of a CI job
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Also write the verdicts as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write the verdicts as SARIF
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
}

/// Writes a document in one format; the words are those of verdicts that fail.
type Format = fn(&Document, &[&str]) -> String;

impl ReportFiles {
    /// Each option with its format.
    fn formats(&self) -> [(&Option<PathBuf>, Format); 4] {
        [
            (&self.html, |document, _| render::html(document)),
            (&self.markdown, |document, _| render::markdown(document)),
            (&self.junit, render::junit),
            (&self.sarif, |document, failing| {
                format!("{:#}\n", render::sarif(document, failing))
            }),
        ]
    }

    /// The files that were requested, with their formats.
    fn requested(&self) -> impl Iterator<Item = (&PathBuf, Format)> {
        let formats = self.formats().into_iter();
        formats.filter_map(|(path, format)| Some((path.as_ref()?, format)))
    }

    /// Checks that every file can be written, before anything is measured.
    ///
    /// # Errors
    /// [`Error::Usage`] with the first file that cannot be written.
    pub fn check(&self) -> Result<(), Error> {
        self.requested()
            .try_for_each(|(path, _)| check_writable(path))
    }

    /// Writes every requested file.
    ///
    /// # Errors
    /// [`Error::Failed`] with the first file that cannot be written.
    pub fn write(&self, document: &Document, failing: &[&str]) -> Result<(), Error> {
        self.requested()
            .try_for_each(|(path, format)| write_file(path, &format(document, failing)))
    }
}

impl ComparingArgs {
    /// Refuses to continue what no store has kept.
    ///
    /// # Errors
    /// [`Error::Usage`] if the store is kept in memory.
    pub(crate) fn check_resume(&self) -> Result<(), Error> {
        if self.resume && !self.is_kept() {
            return Err(Error::Usage(
                "--resume continues a stored experiment, and --store :memory: keeps none; leave \
                 one of them out"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Whether the samples outlive the command.
    fn is_kept(&self) -> bool {
        self.store.store.as_deref() != Some(Path::new(":memory:"))
    }

    /// The words of `--fail-on`; a regression always fails a test file.
    fn failing(&self) -> Vec<&'static str> {
        if self.fail_on.is_empty() {
            return vec![FailOn::Worse.word()];
        }
        self.fail_on.iter().map(|f| f.word()).collect()
    }
}

/// The settings with which a comparison is carried out.
pub struct Comparing<'a> {
    /// Options of every comparing command.
    pub args: &'a ComparingArgs,
    /// Options of every command.
    pub common: &'a Common,
    /// Set by Ctrl-C.
    pub interrupt: &'a AtomicBool,
    /// The time after which no pair is started.
    pub time_limit: Option<Duration>,
    /// The experiment file, where there is one.
    pub file: Option<String>,
}

/// A comparison that has been measured and judged.
pub struct Judged {
    /// The experiment with all its samples.
    pub experiment: Experiment,
    /// What the judge says of its cells.
    pub verdicts: Verdicts,
    /// The report, with the sections of its instrument.
    pub document: Document,
    /// The error, if it did not end normally.
    pub trouble: Option<Error>,
}

impl Comparing<'_> {
    /// Measures, judges and prints; the exit code depends on the verdicts.
    ///
    /// # Errors
    /// [`Error::Usage`] if a file cannot be written or an option is wrong,
    /// [`Error::Failed`] if nothing could be measured, `--fail-on` judged
    /// nothing or the store failed, [`Error::Interrupted`] after Ctrl-C.
    /// Samples that were measured are stored and reported even then.
    pub fn carry_out(
        &self,
        instrument: &mut dyn Instrument,
        experiment: Experiment,
    ) -> Result<ExitCode, Error> {
        if self.common.dry_run {
            self.args.check_resume()?;
            return dry_run(&experiment, instrument, self.common);
        }
        let judged = self.measure(instrument, experiment)?;
        self.present(judged)
    }

    /// Measures and judges.
    ///
    /// # Errors
    /// [`Error::Failed`] if the store cannot be used or the experiment cannot
    /// be judged, [`Error::Usage`] if an option is wrong; nothing was measured
    /// then.
    pub fn measure(
        &self,
        instrument: &mut dyn Instrument,
        experiment: Experiment,
    ) -> Result<Judged, Error> {
        self.args.check_resume()?;
        self.args.files.check()?;
        let store = Store::open(&store_path(&self.args.store)?)?;
        if !self.common.quiet {
            message::print(announcement(&experiment, instrument));
        }
        let session = Session {
            store,
            command: command_line(),
            resume: self.args.resume,
            deadline: self.time_limit.map(|limit| Instant::now() + limit),
            interrupt: self.interrupt,
            quiet: self.common.quiet,
        };
        let measured = session.run(instrument, experiment)?;
        let trouble = trouble(&measured, self.args.is_kept());
        let context = context(&measured.experiment, &measured.listed, self.file.clone());
        let (verdicts, document) = judged_document(&measured.experiment, &context)?;
        Ok(Judged {
            experiment: measured.experiment,
            verdicts,
            document,
            trouble,
        })
    }

    /// Prints a judged comparison; the exit code depends on the verdicts.
    ///
    /// # Errors
    /// [`Error::Failed`] if the report cannot be written or `--fail-on` judged
    /// nothing, and the error of the measurement, if it did not end normally.
    pub fn present(&self, judged: Judged) -> Result<ExitCode, Error> {
        self.print(&judged)?;
        if let Some(trouble) = judged.trouble {
            return Err(trouble);
        }
        let fail_on = &self.args.fail_on;
        let failed = fails(fail_on, &judged.experiment, &judged.verdicts)?;
        Ok(ExitCode::from(if failed { 3 } else { 0 }))
    }

    /// Prints a judged comparison, and writes the requested files.
    ///
    /// # Errors
    /// [`Error::Failed`] if one of them cannot be written.
    pub fn print(&self, judged: &Judged) -> Result<(), Error> {
        show(&judged.document, self.common)?;
        let failing = self.args.failing();
        let written = self.args.files.write(&judged.document, &failing);
        written.map_err(|error| match error {
            Error::Failed(why) if self.args.is_kept() => Error::Failed(format!(
                "{why}; the samples are stored, so 'locklab results show' with another file makes \
                 it again"
            )),
            other => other,
        })
    }
}

/// The verdicts of an experiment and its report, with the sections that only
/// its instrument can add.
///
/// # Errors
/// [`Error::Usage`] if its settings make no sense to the judge.
pub fn judged_document(
    experiment: &Experiment,
    context: &Context,
) -> Result<(Verdicts, Document), Error> {
    let verdicts = judge(experiment).map_err(|e| Error::Failed(e.to_string()))?;
    let document = report::document(experiment, &verdicts, context);
    Ok((verdicts, document))
}

/// What each instrument adds to the reports of its experiments.
static REPORTERS: [Reporter; 5] = [
    locklab_native::REPORTER,
    locklab_sim_instrument::BEYOND,
    locklab_sim_instrument::REPORTER,
    locklab_programs::report::REPORTER,
    locklab_kernel::report::REPORTER,
];

/// The words in which reports of a kind speak of what is compared, where they
/// are not those of every report.
static WORDS: [(&str, Words); 2] = [
    (locklab_lab::matrix::KIND, locklab_native::WORDS),
    (locklab_lab::ranking::KIND, locklab_native::WORDS),
];

/// The date, the command and the file of a report.
fn context(experiment: &Experiment, listed: &Listed, file: Option<String>) -> Context {
    Context {
        date: match experiment.provenance {
            Provenance::Simulation(_) => "irrelevant: the same seed gives the same figures".into(),
            _ => format!("{} UTC", listed.started),
        },
        command: listed.command.clone(),
        file,
        words: WORDS
            .iter()
            .find(|(kind, _)| *kind == experiment.kind)
            .map(|(_, words)| *words)
            .unwrap_or_default(),
        reporters: &REPORTERS,
    }
}

/// Prints a report as text, or as JSON if requested.
///
/// # Errors
/// [`Error::Failed`] if standard output cannot be written.
pub fn show(document: &Document, common: &Common) -> Result<ExitCode, Error> {
    print(&if common.json {
        format!("{:#}\n", render::json(document))
    } else {
        render::text(document, render::Colour::for_stdout())
    })
}

/// Prints the report of a stored experiment, and writes its files.
///
/// # Errors
/// [`Error::Failed`] if it cannot be judged or written.
pub fn show_stored(
    experiment: &Experiment,
    listed: &Listed,
    files: &ReportFiles,
    common: &Common,
) -> Result<ExitCode, Error> {
    files.check()?;
    let (_, document) = judged_document(experiment, &context(experiment, listed, None))?;
    show(&document, common)?;
    files.write(&document, &[FailOn::Worse.word()])?;
    Ok(ExitCode::SUCCESS)
}

/// The error, with its exit code, of a comparison that did not end normally.
fn trouble(measured: &Measured, kept: bool) -> Option<Error> {
    if let Some(failure) = &measured.store_failure {
        return Some(Error::Failed(format!(
            "{failure}; the report above is complete, but samples from then on are not stored"
        )));
    }
    match &measured.outcome.stopped {
        Some(Stop::Interrupted) => {
            let stored = if kept {
                "what was measured is stored, and the same command with --resume continues"
            } else {
                "--store :memory: keeps nothing, so the same command begins anew"
            };
            return Some(Error::Interrupted(format!("interrupted; {stored}")));
        }
        Some(Stop::Fatal(why)) => return Some(Error::Failed(why.clone())),
        Some(Stop::TimeLimit | Stop::UsedUp) | None => {}
    }
    not_complete(&measured.experiment).map(Error::Failed)
}

/// A line that announces what will be done.
fn announcement(experiment: &Experiment, instrument: &dyn Instrument) -> String {
    let pairs = experiment.design.pairs;
    let mut text = format!(
        "{} x {}",
        count(experiment.cells.len(), "cell"),
        count(pairs as usize, "pair")
    );
    if let Some(time) = instrument.estimate(&experiment.cells, pairs) {
        let _ = write!(text, ": about {}", duration(time));
    }
    text.push_str(". Ctrl-C reports what is there.");
    if let Some(warning) = too_few_pairs(experiment) {
        let _ = write!(text, "\n{warning}");
    }
    text
}

/// `--dry-run`: prints what would run and how long it would take.
///
/// # Errors
/// [`Error::Failed`] if standard output cannot be written.
pub fn dry_run(
    experiment: &Experiment,
    instrument: &dyn Instrument,
    common: &Common,
) -> Result<ExitCode, Error> {
    let design = &experiment.design;
    let time = instrument.estimate(&experiment.cells, design.pairs);
    if common.json {
        let cells: Vec<serde_json::Map<_, _>> = experiment
            .cells
            .iter()
            .map(|cell| {
                let axes = cell.key.0.iter();
                let about = (!cell.about.is_empty()).then(|| ("about".into(), json!(cell.about)));
                axes.map(|(axis, at)| (axis.clone(), json!(at)))
                    .chain(about)
                    .collect()
            })
            .collect();
        let document = json!({
            "schema": 1,
            "dry_run": true,
            "kind": experiment.kind,
            "spec": experiment.spec,
            "design": design,
            "cells": cells,
            "seconds": time.map(|t| t.as_secs_f64()),
        });
        return print(&format!("{document:#}\n"));
    }
    let mut text = format!(
        "Would compare {} with {}.\n{}\n",
        experiment.labels.experiment,
        experiment.labels.baseline,
        announcement(experiment, instrument).replace(" Ctrl-C reports what is there.", "")
    );
    let facts = &experiment.facts;
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in facts {
        let _ = writeln!(text, "{name:<width$}  {value}");
    }
    text.push_str("Cells\n");
    for cell in &experiment.cells {
        let axes: Vec<String> = cell
            .key
            .0
            .iter()
            .map(|(axis, at)| format!("{} {at}", axis.replace('_', "-")))
            .collect();
        let _ = writeln!(text, "  {}", axes.join(", "));
        if !cell.about.is_empty() {
            let _ = writeln!(text, "    {}", cell.about);
        }
    }
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use locklab_document::Labels;

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
            .filter_map(|option| option.get_long().map(str::to_owned))
            .collect();
        let mut words = vec!["locklab".to_owned()];
        for option in &options {
            words.push(format!("--{option}"));
            words.push(folder.path().join(option).display().to_string());
        }
        let Options { files } = clap::Parser::parse_from(words);
        files.check().unwrap();
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
