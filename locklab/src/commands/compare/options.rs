//! Options of `locklab compare`. Those for programs are short for what a file says
//! in the tables of its subjects and workloads.

use crate::arguments::ComparingArgs;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::settings::over;
use locklab_programs::settings::HEADING;
use locklab_programs::subject::{PTHREAD, PTHREAD_INTERPOSED};
use locklab_programs::workloads::{OutputMetric, WorkloadSpec};
use locklab_programs::{Inline, Settings, Subject};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `locklab compare`.
///
/// Workloads: nginx-churn, rocksdb-deleteseq, readwhilewriting, fstat,
/// context-switch (also with :threads, +pipe or both), call-sites, gcc,
/// fs-mark, kernel-build, command.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// An experiment file (TOML) of any kind; options take precedence over it
    pub file: Option<PathBuf>,
    /// Print an experiment file with every setting
    #[arg(long, exclusive = true)]
    pub example: bool,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) programs: ProgramOptions,
    /// One command for both sides, which differ in lock, build or environment
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// The options for programs, each with the setting that it is short for.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ProgramOptions {
    /// Workloads, separated by commas; docs/compare.md lists them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workload: Vec<String>,
    /// The command of the baseline
    #[arg(long, value_name = "CMD")]
    pub baseline: Option<String>,
    /// The command of the experiment
    #[arg(long, value_name = "CMD")]
    pub experiment: Option<String>,
    /// Name of the baseline in reports [default: what distinguishes it]
    #[arg(long, value_name = "NAME")]
    pub baseline_name: Option<String>,
    /// Name of the experiment in reports
    #[arg(long, value_name = "NAME")]
    pub experiment_name: Option<String>,
    /// The lock under the baseline's pthread mutexes
    #[arg(long, value_name = "LOCK")]
    pub baseline_lock: Option<String>,
    /// The lock under the experiment's pthread mutexes
    #[arg(long, value_name = "LOCK")]
    pub experiment_lock: Option<String>,
    /// The folder of the baseline's programs
    #[arg(long, value_name = "DIR")]
    pub baseline_build: Option<PathBuf>,
    /// The folder of the experiment's programs
    #[arg(long, value_name = "DIR")]
    pub experiment_build: Option<PathBuf>,
    /// A variable of the baseline's environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub baseline_env: Vec<String>,
    /// A variable of the experiment's environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub experiment_env: Vec<String>,
    /// Whether unlock is inlined: baseline, then experiment
    #[arg(long, value_name = "unlock=never|always")]
    pub inline: Option<String>,
    /// Build both sides of --inline with this command: {inline} is always or never,
    /// {out} the folder for the programs, and CFLAGS sets the C header
    #[arg(long, value_name = "CMD", requires = "inline")]
    pub build: Option<String>,
    /// Write footprint, misses and throughput against call sites, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// A figure in the command's output: name[unit]:higher=REGEX, or
    /// name:lower=json:PATH; the first decides [default: elapsed time]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Amount of work in a run, relative to the default
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Reduce noise (watchdog, governor, turbo, ASLR), and restore it at the
    /// end
    #[arg(long)]
    pub prepare: bool,
    /// Folder of the runs' logs [default: beside the store]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

impl ProgramOptions {
    /// Returns all settings: the command line's over those of the file, which may be
    /// none.
    ///
    /// # Errors
    /// If an option is malformed or contradicts another; the message names it.
    pub(super) fn settings(
        &self,
        given: &Settings,
        command: &[String],
        aa: bool,
        file: &Settings,
    ) -> Result<Settings, Error> {
        let [never, always] = match &self.inline {
            Some(pair) => Inline::parse_pair(pair)?.map(Some),
            None => [None, None],
        };
        let mut workload = Vec::new();
        for name in &self.workload {
            workload.push(WorkloadSpec::parse(name)?);
        }
        let given = Settings {
            baseline: Subject {
                command: self.baseline.clone(),
                lock: self.baseline_lock.clone(),
                build: self.baseline_build.clone(),
                env: variables(&self.baseline_env)?,
                inline: never,
                name: self.baseline_name.clone(),
            },
            experiment: Subject {
                command: self.experiment.clone(),
                lock: self.experiment_lock.clone(),
                build: self.experiment_build.clone(),
                env: variables(&self.experiment_env)?,
                inline: always,
                name: self.experiment_name.clone(),
            },
            workload,
            ..given.clone()
        };
        let mut settings = over(&given, file)?;
        if aa {
            settings.experiment = settings.baseline.clone();
        }
        check_lock(&settings.baseline)?;
        check_lock(&settings.experiment)?;
        self.write_workloads(command, &mut settings)?;
        Ok(settings)
    }

    /// Writes what is said of all workloads into each of them.
    fn write_workloads(&self, command: &[String], settings: &mut Settings) -> Result<(), Error> {
        let command = (!command.is_empty())
            .then(|| shlex::try_join(command.iter().map(String::as_str)))
            .transpose()
            .map_err(|e| {
                Error::Usage(format!(
                    "the command after -- cannot be written as a line: {e}"
                ))
            })?;
        let has_command = command.is_some() || settings.baseline.command.is_some();
        if settings.workload.is_empty() && has_command {
            settings.workload.push(WorkloadSpec {
                name: "command".into(),
                ..WorkloadSpec::default()
            });
        }
        let commands = |w: &WorkloadSpec| w.name == "command";
        if !settings.workload.iter().any(commands) {
            for (option, given) in [
                ("a command after --", command.is_some()),
                ("--metric", !self.metric.is_empty()),
            ] {
                if given {
                    return Err(Error::Usage(format!(
                        "{option} is for the workload 'command', which is not among those that \
                         run; add it to --workload, or leave it out"
                    )));
                }
            }
        }
        let is_of = |name: &str| settings.workload.iter().any(|w| w.name == name);
        if self.plot.is_some() && !is_of("call-sites") {
            return Err(Error::Usage(
                "--plot shows workloads of call-sites, and none of these is; leave it out".into(),
            ));
        }
        if self.scale.is_some() && !settings.workload.iter().any(WorkloadSpec::has_scale) {
            return Err(Error::Usage(
                "--scale is for workloads whose work can be scaled, and none of these is; leave \
                 it out"
                    .into(),
            ));
        }
        for workload in &mut settings.workload {
            if workload.has_scale() {
                workload.scale = self.scale.or(workload.scale);
            }
            if workload.name == "command" {
                if command.is_some() {
                    workload.command.clone_from(&command);
                }
                for metric in &self.metric {
                    workload.metric.push(OutputMetric::parse(metric)?);
                }
            }
        }
        let builds_itself = |workload: &WorkloadSpec| workload.name == "call-sites";
        if self.inline.is_some()
            && self.build.is_none()
            && !settings.workload.iter().all(builds_itself)
        {
            return Err(Error::Usage(
                "--inline is for call-sites, which builds its own program; for another workload give \
                 --build CMD, which builds it twice"
                    .into(),
            ));
        }
        Ok(())
    }
}

fn variables(given: &[String]) -> Result<BTreeMap<String, String>, Error> {
    let variable = |one: &String| {
        let (name, value) = one
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Error::Usage(format!("'{one}' sets no variable; write NAME=VALUE")))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    given.iter().map(variable).collect()
}

/// Checks that there is such a lock, and the interposer that puts it under
/// mutexes.
fn check_lock(subject: &Subject) -> Result<(), Error> {
    let Some(lock) = subject.lock.as_deref().filter(|lock| *lock != PTHREAD) else {
        return Ok(());
    };
    if lock != PTHREAD_INTERPOSED && locklab_native::subject::find(lock)?.peer {
        return Err(Error::Usage(format!(
            "'{lock}' cannot be put under pthread mutexes; 'locklab locks' lists those that can"
        )));
    }
    locklab_libraries::interposer()
        .map(|_| ())
        .map_err(|e| Error::Usage(e.to_string()))
}
