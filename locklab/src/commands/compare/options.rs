//! Options of `locklab compare`. Those for programs are short for what a file says
//! in the tables of its subjects and workloads.

use crate::arguments::ComparingArgs;
use crate::commands::kernel::KernelOptions;
use clap::Args;
use locklab_harness::settings::over;
use locklab_host::error::Error;
use locklab_programs::settings::HEADING;
use locklab_programs::subject::{PTHREAD, PTHREAD_INTERPOSED};
use locklab_programs::workloads::{OutputMetric, WorkloadSpec};
use locklab_programs::{Inline, Settings, Subject};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `locklab compare`.
///
/// Two commands (locklab compare './old' './new'), one command after -- whose sides differ in
/// lock, build or environment, workloads, or an experiment file of any kind. Workloads:
/// nginx-churn, rocksdb-deleteseq, readwhilewriting, fstat, context-switch (also with
/// :threads, +pipe or both), call-sites, gcc, fs-mark, kernel-build, command.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Two commands, each in quotes: the baseline, then the experiment; or one experiment file
    /// (TOML), over which options take precedence; or a report with kernels: inline-unlock,
    /// finish-task-switch
    #[arg(value_name = "A B|FILE", num_args = 0..=2)]
    pub given: Vec<OsString>,
    /// One command for both sides, which differ in lock, build or environment
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub(crate) programs: ProgramOptions,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
    #[command(flatten)]
    pub(crate) kernels: KernelOptions,
}

/// What the words of a command line name.
pub(super) enum Named<'a> {
    /// Nothing: options and a command after `--` say what is compared.
    Nothing,
    /// An experiment file, or a report by its name.
    File(&'a Path),
    /// The commands of the baseline and of the experiment.
    Commands(Vec<String>),
}

impl CompareArgs {
    /// Returns what the words of the command line name.
    ///
    /// # Errors
    /// [`Error::Usage`] if a command is not text, or one command is alone.
    pub(super) fn named(&self) -> Result<Named<'_>, Error> {
        let text = |word: &OsString| {
            let text = word.to_str().map(str::to_owned);
            text.ok_or_else(|| Error::Usage(format!("'{}' is not text in UTF-8", word.display())))
        };
        match self.given.as_slice() {
            [] => Ok(Named::Nothing),
            [one] if self.comparing.aa && !Path::new(one).is_file() => {
                Ok(Named::Commands(vec![text(one)?]))
            }
            [one] => {
                let word = one.to_string_lossy();
                if !Path::new(one).exists() && word.contains(char::is_whitespace) {
                    return Err(Error::Usage(format!(
                        "'{word}' is one command, and a comparison needs two; write locklab compare \
                         'A' 'B', or --aa to compare it with itself"
                    )));
                }
                Ok(Named::File(Path::new(one)))
            }
            words => words
                .iter()
                .map(text)
                .collect::<Result<_, _>>()
                .map(Named::Commands),
        }
    }
}

/// The options for programs, each with the setting that it is short for.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ProgramOptions {
    /// Workloads to run, separated by commas; docs/compare.md lists them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<String>,
    /// The command of the baseline, as the first of two commands
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    pub baseline: Option<String>,
    /// The command of the experiment, as the second of two commands
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    pub experiment: Option<String>,
    /// Name of a command in reports; given twice, it names the baseline, then the experiment
    /// [default: what distinguishes them]
    #[arg(long, short, value_name = "NAME")]
    pub name: Vec<String>,
    /// The lock under the baseline's pthread mutexes
    #[arg(long, value_name = "LOCK")]
    pub baseline_lock: Option<String>,
    /// The lock under the experiment's pthread mutexes
    #[arg(long, value_name = "LOCK")]
    pub experiment_lock: Option<String>,
    /// Whether unlock is inlined: baseline, then experiment
    #[arg(long, value_name = "unlock=never|always", hide_short_help = true)]
    pub inline: Option<String>,
    /// Build both sides of --inline with this command: {inline} is always or never,
    /// {out} the folder for the programs, and CFLAGS sets the C header
    #[arg(long, value_name = "CMD", requires = "inline", hide_short_help = true)]
    pub build: Option<String>,
    /// Write footprint, misses and throughput against call sites, as SVG
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub plot: Option<PathBuf>,
    /// A figure in the command's output: name[unit]:higher=REGEX, or
    /// name:lower=json:PATH; the first decides [default: elapsed time]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Amount of work in a run, relative to the default
    #[arg(long, value_name = "FACTOR", hide_short_help = true)]
    pub scale: Option<f64>,
    /// Reduce noise (watchdog, governor, turbo, ASLR), and restore it at the
    /// end
    #[arg(long)]
    pub prepare: bool,
}

impl ProgramOptions {
    /// Returns all settings: the command line's over those of the file, which may be
    /// none.
    ///
    /// # Errors
    /// If an option is malformed or contradicts another; the message names it.
    pub(super) fn settings(
        &self,
        args: &CompareArgs,
        commands: &[String],
        file: &Settings,
    ) -> Result<Settings, Error> {
        let (given, command, aa) = (&args.settings, &args.command, args.comparing.aa);
        let side =
            |at: usize, option: &Option<String>| commands.get(at).or(option.as_ref()).cloned();
        if !commands.is_empty() && (self.baseline.is_some() || self.experiment.is_some()) {
            return Err(Error::Usage(
                "both sides are named already; leave out --baseline and --experiment".into(),
            ));
        }
        if self.name.len() > 2 {
            return Err(Error::Usage(
                "there are two sides to name; give --name twice at most".into(),
            ));
        }
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
                command: side(0, &self.baseline),
                lock: self.baseline_lock.clone(),
                inline: never,
                name: self.name.first().cloned(),
                ..Subject::default()
            },
            experiment: Subject {
                command: side(1, &self.experiment),
                lock: self.experiment_lock.clone(),
                inline: always,
                name: self.name.get(1).cloned(),
                ..Subject::default()
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
                "--plot shows workloads of call-sites, and this comparison has none; leave it out"
                    .into(),
            ));
        }
        if self.scale.is_some() && !settings.workload.iter().any(WorkloadSpec::has_scale) {
            return Err(Error::Usage(
                "--scale is for workloads whose work can be scaled, and this comparison has none; leave \
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
