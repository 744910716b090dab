//! The arguments of `locklab compare`, and what they make of an experiment
//! file: they win over it.

use crate::comparing::ComparingArgs;
use crate::list::Lengths;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use locklab_host::libraries::preload_library;
use locklab_programs::counters::Mode;
use locklab_programs::subject::{PTHREAD, PTHREAD_INTERPOSED};
use locklab_programs::workloads::{OutputMetric, WorkloadSpec};
use locklab_programs::{File, Inline, Subject};
use std::path::PathBuf;

/// `locklab compare`.
///
/// Workloads: nginx-churn, rocksdb-deleteseq, readwhilewriting, fstat,
/// context-switch (also with :threads, +pipe or both), call-sites, gcc,
/// fs-mark, kernel-build, command.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// An experiment file (TOML) of any kind; options win over it
    pub file: Option<PathBuf>,
    /// Print an experiment file with every setting
    #[arg(long)]
    pub example: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
    /// Workloads, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workload: Vec<String>,
    /// The command of the baseline
    #[arg(long, value_name = "CMD")]
    pub baseline: Option<String>,
    /// The command that is judged against it
    #[arg(long, value_name = "CMD")]
    pub experiment: Option<String>,
    /// The lock under the baseline's pthread mutexes
    #[arg(long, value_name = "LOCK")]
    pub baseline_lock: Option<String>,
    /// The lock under the experiment's
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
    /// Build both sides of --inline by this: {inline} is always or never,
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
    /// Runs of each side before the first pair, left out [default: 1]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,
    /// How much work a run is, over its usual
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Of one run, in seconds: then it is killed [default: 120]
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// CPUs to use [default: the workload's choice]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Lengths>,
    /// What is counted beside [default: auto]
    #[arg(long, value_parser = PossibleValuesParser::new(Mode::NAMES).try_map(|s| s.parse::<Mode>()))]
    pub counters: Option<Mode>,
    /// Quieten the machine (watchdog, governor, turbo, ASLR) and put it back
    #[arg(long)]
    pub prepare: bool,
    /// Folder of the runs' logs [default: beside the store]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// One command for both, with two locks, builds or environments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

impl CompareArgs {
    /// The first option that only programs have, if one was given.
    pub(super) fn given_for_programs(&self) -> Option<&'static str> {
        let given = [
            ("--workload", !self.workload.is_empty()),
            ("--baseline", self.baseline.is_some()),
            ("--experiment", self.experiment.is_some()),
            ("--baseline-lock", self.baseline_lock.is_some()),
            ("--experiment-lock", self.experiment_lock.is_some()),
            ("--baseline-build", self.baseline_build.is_some()),
            ("--experiment-build", self.experiment_build.is_some()),
            ("--baseline-env", !self.baseline_env.is_empty()),
            ("--experiment-env", !self.experiment_env.is_empty()),
            ("--inline", self.inline.is_some()),
            ("--build", self.build.is_some()),
            ("--plot", self.plot.is_some()),
            ("--metric", !self.metric.is_empty()),
            ("--warm-up", self.warm_up.is_some()),
            ("--scale", self.scale.is_some()),
            ("--time-limit", self.time_limit.is_some()),
            ("--pin", self.pin.is_some()),
            ("--counters", self.counters.is_some()),
            ("--prepare", self.prepare),
            ("--logs", self.logs.is_some()),
            ("a command after --", !self.command.is_empty()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(name, _)| name)
    }

    /// The experiment file, or none, with the options written over it.
    ///
    /// # Errors
    /// A sentence that says what is wrong with which.
    pub(super) fn settings(&self) -> Result<File, String> {
        let mut file = match &self.file {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        self.write_subjects(&mut file)?;
        self.write_workloads(&mut file)?;
        let list = |list: &Lengths| list.0.iter().map(|n| usize::try_from(*n)).collect();
        if let Some(pin) = &self.pin {
            let cpus: Result<_, _> = list(pin);
            file.pin = Some(cpus.map_err(|_| "--pin names a CPU that no machine has".to_owned())?);
        }
        file.warm_up = self.warm_up.or(file.warm_up);
        file.time_limit = self.time_limit.or(file.time_limit);
        file.counters = self.counters.or(file.counters);
        Ok(file)
    }

    fn write_subjects(&self, file: &mut File) -> Result<(), String> {
        let baseline = &mut file.baseline;
        write_over(&mut baseline.command, &self.baseline);
        write_over(&mut baseline.lock, &self.baseline_lock);
        write_over(&mut baseline.build, &self.baseline_build);
        variables(baseline, &self.baseline_env)?;
        let experiment = &mut file.experiment;
        write_over(&mut experiment.command, &self.experiment);
        write_over(&mut experiment.lock, &self.experiment_lock);
        write_over(&mut experiment.build, &self.experiment_build);
        variables(experiment, &self.experiment_env)?;
        if let Some(inline) = &self.inline {
            let [never, always] = Inline::parse_pair(inline)?;
            (file.baseline.inline, file.experiment.inline) = (Some(never), Some(always));
        }
        if self.comparing.aa {
            file.experiment = file.baseline.clone();
        }
        check_lock(&file.baseline)?;
        check_lock(&file.experiment)
    }

    fn write_workloads(&self, file: &mut File) -> Result<(), String> {
        if !self.workload.is_empty() {
            let workloads = self.workload.iter().map(|name| WorkloadSpec::parse(name));
            file.workload = workloads.collect::<Result<_, _>>()?;
        }
        let command = (!self.command.is_empty())
            .then(|| shlex::try_join(self.command.iter().map(String::as_str)))
            .transpose()
            .map_err(|e| format!("the command after -- cannot be written as a line: {e}"))?;
        let has_command = command.is_some() || file.baseline.command.is_some();
        if file.workload.is_empty() && has_command {
            file.workload.push(WorkloadSpec {
                name: "command".into(),
                ..WorkloadSpec::default()
            });
        }
        for workload in &mut file.workload {
            write_over(&mut workload.scale, &self.scale);
            if workload.name == "command" {
                write_over(&mut workload.command, &command);
                for metric in &self.metric {
                    workload.metric.push(OutputMetric::parse(metric)?);
                }
            }
        }
        let builds_itself = |workload: &WorkloadSpec| workload.name == "call-sites";
        if self.inline.is_some() && self.build.is_none() && !file.workload.iter().all(builds_itself)
        {
            return Err(
                "--inline is of call-sites, which builds its own program; for another give \
                 --build CMD, which builds it twice"
                    .into(),
            );
        }
        Ok(())
    }
}

fn write_over<T: Clone>(setting: &mut Option<T>, option: &Option<T>) {
    if option.is_some() {
        setting.clone_from(option);
    }
}

fn variables(subject: &mut Subject, given: &[String]) -> Result<(), String> {
    for one in given {
        let (name, value) = one
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("'{one}' sets no variable; write NAME=VALUE"))?;
        subject.env.insert(name.into(), value.into());
    }
    Ok(())
}

/// Whether there is such a lock, and a library that puts it under mutexes.
fn check_lock(subject: &Subject) -> Result<(), String> {
    let Some(lock) = subject.lock.as_deref().filter(|lock| *lock != PTHREAD) else {
        return Ok(());
    };
    if lock != PTHREAD_INTERPOSED && locklab_native::subject::find(lock)?.peer {
        return Err(format!(
            "'{lock}' cannot be put under pthread mutexes; 'locklab locks' lists those that can"
        ));
    }
    preload_library().map(|_| ())
}
