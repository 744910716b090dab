//! The arguments of `locklab compare`. They are only parsed here.

use crate::comparing::ComparingArgs;
use crate::list::Lengths;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use locklab_programs::counters::Mode;
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
    /// The command of the experiment
    #[arg(long, value_name = "CMD")]
    pub experiment: Option<String>,
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
    /// Warm-up runs of each side before the first pair [default: 1]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,
    /// Amount of work of a run, relative to the default
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// Time limit of one run in seconds, after which it is killed [default:
    /// 120]
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// CPUs to use [default: the workload's choice]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Lengths>,
    /// Which counters are read [default: auto]
    #[arg(long, value_parser = PossibleValuesParser::new(Mode::NAMES).try_map(|s| s.parse::<Mode>()))]
    pub counters: Option<Mode>,
    /// Reduce noise (watchdog, governor, turbo, ASLR), and restore it at the
    /// end
    #[arg(long)]
    pub prepare: bool,
    /// Folder of the runs' logs [default: beside the store]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// One command for both sides, which differ in lock, build or environment
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

impl CompareArgs {
    /// The first given option that only programs have.
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
}
