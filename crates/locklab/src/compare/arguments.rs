//! The arguments of `locklab compare`. Parsing only.

use crate::cli::FailOn;
use crate::list::Lengths;
use clap::Args;
use std::path::PathBuf;

/// `locklab compare`.
///
/// Workloads: nginx-churn, rocksdb-deleteseq, readwhilewriting, fstat,
/// context-switch (also with :threads, +pipe or both), gcc, fs-mark,
/// kernel-build, command.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// An experiment file (TOML); flags win over it
    pub file: Option<PathBuf>,
    /// Print an experiment file with every setting
    #[arg(long)]
    pub example: bool,
    /// Workloads, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub workload: Vec<String>,
    /// The command that is the yardstick
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
    /// {out} the folder for the programs, and CFLAGS tells the C header
    #[arg(long, value_name = "CMD", requires = "inline")]
    pub build: Option<String>,
    /// Write footprint, misses and throughput against call sites, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// A figure in the command's output: name[unit]:higher=REGEX, or
    /// name:lower=json:PATH; the first decides [default: elapsed time]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Pairs of runs of each workload; a verdict takes 8 at least [default: 20]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u32>,
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
    #[arg(long, value_enum)]
    pub counters: Option<crate::counters::Mode>,
    /// Quieten the machine (watchdog, governor, turbo, ASLR) and put it back
    #[arg(long)]
    pub prepare: bool,
    /// Compare the baseline with itself, and store how far off this set-up is
    #[arg(long)]
    pub aa: bool,
    /// What counts as flat, in percent [default: 1]
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<f64>,
    /// Go on with the same comparison where it was interrupted
    #[arg(long)]
    pub resume: bool,
    /// Exit with 3 if a workload is worse
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Write the report as one HTML file too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Folder of the runs' logs [default: beside the store]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// One command for both, with two locks, builds or environments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}
