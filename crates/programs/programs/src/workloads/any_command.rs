//! `command`: any command, with its figure found by regular expression or JSON
//! path; without one, its elapsed time decides.
//!
//! One run is the command from start to end. Invalid: an exit status other
//! than 0, a signal, the time limit, output without the figure.

use super::output_metric::{self, Extractor, OutputMetric};
use super::spec::WorkloadSpec;
use super::workload::Workload;
use crate::fault::Fault;
use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_harness::experiment::{Metric, Source, Values};
use locklab_harness::metric::ELAPSED;
use locklab_host::error::Error;

/// The program that runs commands which are more than a program and its
/// arguments.
const SHELL: &str = "/bin/sh";

pub(super) struct AnyCommand {
    command: Option<String>,
    metrics: Vec<(OutputMetric, Extractor)>,
}

impl AnyCommand {
    pub(super) fn new(spec: &WorkloadSpec) -> Result<Self, Error> {
        let metrics = spec.metric.iter().map(|p| Ok((p.clone(), p.extractor()?)));
        Ok(Self {
            command: spec.command.clone(),
            metrics: metrics.collect::<Result<_, Error>>()?,
        })
    }

    fn words(&self, subject: &Subject) -> Result<Vec<String>, Error> {
        words(self.command.as_ref(), subject)
    }
}

/// Returns the words of a subject's command, or of the one that both have.
///
/// # Errors
/// If there is no command, it names a build and there is none, or it is no words.
pub(super) fn words(common: Option<&String>, subject: &Subject) -> Result<Vec<String>, Error> {
    let Some(command) = subject.command.as_ref().or(common) else {
        return Err(Error::Usage(
            "there is no command to run; give --baseline and --experiment, or one command after --"
                .into(),
        ));
    };
    let build = subject.build.as_ref().map(|b| b.display().to_string());
    if command.contains("{build}") && build.is_none() {
        return Err(Error::Usage(format!(
            "'{command}' names {{build}}, and no build is given; give --set baseline.build=DIR and \
             --set experiment.build=DIR"
        )));
    }
    let command = command.replace("{build}", &build.unwrap_or_default());
    // A command with shell syntax is run by a shell.
    if command.contains(['|', '&', ';', '<', '>', '$', '`', '*', '~', '\n']) {
        return Ok(vec![SHELL.into(), "-c".into(), command]);
    }
    match shlex::split(&command) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(Error::Usage(format!(
            "'{command}' is no command: a quote is open, or it is empty"
        ))),
    }
}

impl Workload for AnyCommand {
    fn about(&self) -> String {
        match self.command.as_ref() {
            Some(command) => format!("'{command}', from start to end."),
            None => "The command, from start to end.".into(),
        }
    }

    fn setup(&self, launcher: &Launcher) -> Vec<(String, String)> {
        vec![("CPUs".into(), launcher.cpus_text())]
    }

    fn is_one_process(&self) -> bool {
        // A shell starts other programs; about any other command nothing is
        // known.
        let words = self.words(&Subject::default());
        words.is_ok_and(|words| words[0] != SHELL)
    }

    fn metrics(&self) -> Vec<Metric> {
        if self.metrics.is_empty() {
            return vec![Metric::lower(ELAPSED, "s", Source::Process)];
        }
        self.metrics.iter().map(|(p, _)| p.metric()).collect()
    }

    fn check(&self, subjects: [&Subject; 2], _: &Launcher) -> Result<(), Error> {
        for subject in subjects {
            let words = self.words(subject)?;
            if locklab_host::process::find(&words[0], &subject.folders()).is_none() {
                let name = words[0].clone();
                return Err(if name.contains('/') {
                    Error::Usage(format!("there is no program {name}; check the path"))
                } else {
                    Error::Usage(format!(
                        "there is no program '{name}' in PATH; 'apt-file search bin/{name}' names \
                         its Debian package"
                    ))
                });
            }
        }
        Ok(())
    }

    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault> {
        let words = self.words(subject)?;
        let ended = launcher.run(subject, &words[0], &words[1..], &launcher.cpus.clone())?;
        ended.check()?;
        let mut figures = ended.figures();
        for (metric, extractor) in &self.metrics {
            let number = match output_metric::read(&metric.name, extractor, &ended.out) {
                // Some programs report on standard error.
                Err(fault) => match extractor.read(&ended.err) {
                    Some(number) => number,
                    None if ended.out.trim().is_empty() => {
                        return Err(output_metric::read(&metric.name, extractor, &ended.err)
                            .err()
                            .unwrap_or(fault));
                    }
                    None => return Err(fault),
                },
                Ok(number) => number,
            };
            figures.insert(metric.name.clone(), number);
        }
        Ok(figures)
    }
}
