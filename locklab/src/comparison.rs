//! The path of every comparison, whatever is compared: what is planned, then the
//! backend with its experiment, run, judged and shown.
//!
//! It is entered once, by [`carry_out`]. It must never know what is compared.

mod announcement;

use crate::arguments::report_files::ReportFiles;
use crate::arguments::{Common, ComparingArgs};
use crate::kinds;
use crate::output::{answer, command_line, print, write_file};
use announcement::announcement;
use locklab_document::{Document, render};
use locklab_harness::backend::Backend;
use locklab_harness::experiment::{Experiment, Provenance};
use locklab_harness::gate::{FailOn, fails, not_complete};
use locklab_harness::report::{self, Context};
use locklab_harness::runner::Stop;
use locklab_harness::session::{Measured, Session};
use locklab_harness::store::{Listed, Store};
use locklab_harness::verdicts::{Verdicts, judge};
use locklab_host::error::Error;
use locklab_host::message;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Describes how a comparison is carried out and shown.
#[derive(Clone)]
pub struct Options<'a> {
    /// Options of every comparing command.
    pub args: &'a ComparingArgs,
    /// Options of every command.
    pub common: &'a Common,
    /// Set by Ctrl-C.
    pub interrupt: Arc<AtomicBool>,
    /// The time after which no pair is started.
    pub time_limit: Option<Duration>,
    /// The experiment file, where the report names it.
    pub file: Option<String>,
    /// The file for the picture of the report.
    pub plot: Option<&'a Path>,
}

impl<'a> Options<'a> {
    /// Returns the options of a command line, with no time limit.
    pub fn new(args: &'a ComparingArgs, common: &'a Common, interrupt: &Arc<AtomicBool>) -> Self {
        Self {
            args,
            common,
            interrupt: Arc::clone(interrupt),
            time_limit: None,
            file: None,
            plot: None,
        }
    }
}

/// Describes what a command asks to compare, before anything is built, changed or run.
pub trait Planned<'a> {
    /// Returns what would be done, as text or as JSON: `--dry-run`.
    ///
    /// # Errors
    /// If it could not be done.
    fn would_run(&self, json: bool) -> Result<String, Error>;

    /// Makes the comparison, and builds what it needs.
    ///
    /// # Errors
    /// If it cannot be built, or the machine or a program is missing.
    fn prepare(self) -> Result<Comparison<'a>, Error>;
}

/// A comparison that can be run.
pub struct Comparison<'a> {
    /// Holds what measures or simulates it.
    pub backend: Box<dyn Backend + 'a>,
    /// Its cells, which have no pairs yet.
    pub experiment: Experiment,
    /// Says how it is carried out and shown.
    pub options: Options<'a>,
    /// Holds what the user should know before it runs.
    pub note: Option<String>,
}

/// A comparison that has been run and judged.
pub struct Judged<'a> {
    /// The experiment with all its samples.
    pub experiment: Experiment,
    /// Holds what the judge says of its cells.
    pub verdicts: Verdicts,
    /// The report, with what its backend appends.
    pub document: Document,
    /// The error, if it did not end normally.
    pub trouble: Option<Error>,
    options: Options<'a>,
}

/// Carries out what is planned; the exit code depends on the verdicts.
///
/// # Errors
/// [`Error::Usage`] if a file cannot be written or an option is wrong,
/// [`Error::Failed`] if nothing could be built or measured, `--fail-on` judged
/// nothing or the store failed, [`Error::Interrupted`] after Ctrl-C. Samples that
/// were measured are stored and reported even then.
pub fn carry_out<'a>(planned: impl Planned<'a>, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(&planned.would_run(common.json)?);
    }
    let comparison = planned.prepare()?;
    let judged = comparison.run()?;
    judged.show()
}

impl<'a> Planned<'a> for Comparison<'a> {
    fn would_run(&self, json: bool) -> Result<String, Error> {
        let (experiment, backend) = (self.chunk()?, &*self.backend);
        Ok(match json {
            true => announcement::json(&experiment, backend),
            false => announcement::text(&experiment, backend),
        })
    }

    fn prepare(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl<'a> Comparison<'a> {
    /// Returns the experiment, or the chunk of it that is asked for.
    fn chunk(&self) -> Result<Experiment, Error> {
        let mut experiment = self.experiment.clone();
        if let Some(chunk) = self.options.args.chunk {
            chunk.take(&mut experiment.cells)?;
        }
        Ok(experiment)
    }

    /// Runs the comparison, stores its samples and judges them.
    ///
    /// # Errors
    /// [`Error::Failed`] if the store cannot be used or the experiment cannot
    /// be judged, [`Error::Usage`] if an option is wrong; nothing was measured
    /// then.
    pub fn run(self) -> Result<Judged<'a>, Error> {
        let experiment = self.chunk()?;
        let Self {
            mut backend,
            options,
            note,
            ..
        } = self;
        let (args, quiet) = (options.args, options.common.quiet);
        let store = Store::open(&args.store.path()?)?;
        if !quiet {
            note.iter().for_each(message::print);
            message::print(announcement(&experiment, &*backend));
        }
        let session = Session {
            store,
            command: command_line(),
            resume: args.resume,
            deadline: options.time_limit.map(|limit| Instant::now() + limit),
            interrupt: &options.interrupt,
            quiet,
        };
        let measured = session.run(&mut *backend, experiment)?;
        let mut trouble = trouble(&measured, args.is_kept());
        let Measured {
            experiment, listed, ..
        } = measured;
        let report = report_of(&experiment, &listed, options.file.clone());
        let (verdicts, mut document) = report.inspect_err(|_| {
            // What was changed is given back all the same; the first error is told.
            let _ = backend.finish(&mut Document::default());
        })?;
        match backend.finish(&mut document) {
            Ok(Some(note)) if !quiet => message::print(note),
            Ok(_) => {}
            Err(error) => trouble = trouble.or(Some(error)),
        }
        Ok(Judged {
            experiment,
            verdicts,
            document,
            trouble,
            options,
        })
    }
}

impl Judged<'_> {
    /// Shows the report; the exit code depends on the verdicts.
    ///
    /// # Errors
    /// [`Error::Failed`] if the report cannot be written or `--fail-on` judged
    /// nothing, and the error of the measurement, if it did not end normally.
    pub fn show(self) -> Result<ExitCode, Error> {
        self.print()?;
        if let Some(trouble) = self.trouble {
            return Err(trouble);
        }
        let failed = fails(
            &self.options.args.gate.fail_on,
            &self.experiment,
            &self.verdicts,
        )?;
        Ok(ExitCode::from(failed.map_or(0, FailOn::exit_code)))
    }

    /// Prints the report, and writes the requested files.
    ///
    /// # Errors
    /// [`Error::Failed`] if one of them cannot be written.
    pub fn print(&self) -> Result<(), Error> {
        let args = self.options.args;
        show(&self.document, self.options.common)?;
        if let Some(path) = self.options.plot {
            let picture = render::svg(&self.document).ok_or_else(|| {
                Error::Failed("--plot shows workloads of call-sites, and none was measured".into())
            })?;
            write_file(path, &picture)?;
        }
        let written = args.files.write(&self.document, &args.gate.failing());
        written.map_err(|error| match error {
            Error::Failed(why) if args.is_kept() => Error::Failed(format!(
                "{why}; the samples are stored, so 'locklab results show' with another file makes \
                 it again"
            )),
            other => other,
        })
    }
}

/// Returns the verdicts of an experiment and its report, with what its backend
/// appends.
fn report_of(
    experiment: &Experiment,
    listed: &Listed,
    file: Option<String>,
) -> Result<(Verdicts, Document), Error> {
    let verdicts = judge(experiment).map_err(|e| Error::Failed(e.to_string()))?;
    let context = Context {
        date: match experiment.provenance {
            Provenance::Simulation(_) => "irrelevant: the same seed gives the same figures".into(),
            _ => format!("{} UTC", listed.started),
        },
        command: listed.command.clone(),
        // A lock of the user's own is named by its file.
        file: file.or_else(|| {
            let subject = &experiment.labels.experiment;
            Path::new(subject).is_file().then(|| subject.clone())
        }),
        started: match experiment.provenance {
            Provenance::Simulation(_) => None,
            _ => Some(listed.started.replacen(' ', "T", 1)),
        },
        words: kinds::words(&experiment.kind),
    };
    let mut document = report::document(experiment, &verdicts, &context);
    kinds::append(experiment, &verdicts, &mut document);
    Ok((verdicts, document))
}

/// Prints a report as text, or as JSON if requested.
///
/// # Errors
/// [`Error::Failed`] if standard output cannot be written.
pub fn show(document: &Document, common: &Common) -> Result<ExitCode, Error> {
    let text = || render::text(document, render::Colour::for_stdout());
    answer(common.json, || render::json(document), text)
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
    files.check(common.force)?;
    let (_, document) = report_of(experiment, listed, None)?;
    show(&document, common)?;
    files.write(&document, &[FailOn::Worse.word()])?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the error, with its exit code, of a comparison that did not end normally.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::StoreArgs;
    use locklab_document::{Labels, Section};
    use locklab_harness::backend::{Stopped, Turn};
    use locklab_harness::experiment::{Cell, Design, Key, Metric, Role, Sample, Source};
    use locklab_judge::Side;
    use serde_json::{Value, json};

    /// Tosses coins; one that is not sound is lost in the end.
    struct Coins {
        is_sound: bool,
    }

    impl Backend for Coins {
        fn experiment(&self, design: Design) -> Experiment {
            let metric = Metric::higher("heads", "", Source::Model).with_role(Role::Primary);
            Experiment {
                kind: "coins".into(),
                labels: Labels::new("copper", "silver"),
                spec: Value::Null,
                design,
                provenance: Provenance::Model("arithmetic".into()),
                facts: vec![],
                caveats: vec![],
                cells: vec![Cell::new(Key::workload("coins", ""), vec![metric])],
                interrupted: None,
            }
        }

        fn fingerprint(&self) -> Value {
            json!("coins")
        }

        fn run(&mut self, _: &Cell, turn: &Turn, side: Side) -> Result<Sample, Stopped> {
            let silver = side == Side::Experiment;
            let heads = 50.0 + f64::from(turn.pair % 3) + if silver { 20.0 } else { 0.0 };
            Ok(Sample {
                values: [("heads".to_owned(), heads)].into(),
                ..Sample::default()
            })
        }

        fn finish(&mut self, report: &mut Document) -> Result<Option<String>, Error> {
            report.push(Section::new("Given back"));
            match self.is_sound {
                true => Ok(None),
                false => Err(Error::Failed("a coin is lost".into())),
            }
        }
    }

    /// Plans ten tosses of each coin.
    fn planned<'a>(args: &'a ComparingArgs, common: &'a Common, is_sound: bool) -> Comparison<'a> {
        let coins = Coins { is_sound };
        Comparison {
            experiment: coins.experiment(Design::usual(10)),
            backend: Box::new(coins),
            options: Options::new(args, common, &Arc::default()),
            note: None,
        }
    }

    #[test]
    fn what_a_backend_changed_is_given_back_before_the_report() {
        let args = ComparingArgs {
            store: StoreArgs {
                store: Some(":memory:".into()),
            },
            ..ComparingArgs::default()
        };
        let common = Common {
            dry_run: false,
            quiet: true,
            json: false,
            force: false,
        };
        let text = planned(&args, &common, true).would_run(false).unwrap();
        assert!(
            text.starts_with("Would compare silver with copper."),
            "{text}"
        );
        for is_sound in [true, false] {
            let judged = planned(&args, &common, is_sound).run().unwrap();
            let last = judged.document.sections.last().unwrap();
            assert_eq!(last.heading, "Given back");
            assert_eq!(judged.verdicts.primaries().count(), 1);
            // What could not be given back is an error behind a whole report.
            let trouble = judged.trouble.map(|error| error.to_string());
            assert_eq!(trouble, (!is_sound).then(|| "a coin is lost".to_owned()));
        }
    }
}
