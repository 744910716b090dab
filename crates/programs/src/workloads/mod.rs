//! The workloads for subjects, one file each.
//!
//! Each says what to install, how it starts and stops, what one run is, which
//! metric decides, and what makes a run invalid. A workload knows nothing of
//! pairs, coins or verdicts, and cleans up what it made.

mod any_command;
mod call_sites;
mod context_switch;
mod fs_mark;
mod fstat;
mod gcc;
mod kernel_build;
mod nginx_churn;
mod output_metric;
mod rocksdb;
mod spec;

use crate::launcher::Launcher;
use crate::subject::Subject;
use locklab_lab::experiment::{Facts, Metric, Values};
use std::path::PathBuf;

pub use context_switch::{Between, By};
pub use output_metric::{Extractor, OutputMetric, excerpt};
pub use spec::WorkloadSpec;

/// Why a run yields no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This run failed; another may not.
    Failed(String),
    /// The workload's own check failed.
    CheckFailed(String),
    /// Counters did not run all the time.
    Counter(String),
    /// No run of it can succeed, for the reason given.
    Unrunnable(String),
    /// SIGINT or SIGTERM was received.
    Interrupted,
}

/// A workload.
pub trait Workload {
    /// A sentence that describes one run.
    fn about(&self) -> String;
    /// The facts of its set-up on this machine, for the report.
    fn setup(&self, launcher: &Launcher) -> Facts;
    /// Whether all that it measures is done by the program that it starts and
    /// not by others that this one starts: only that can be modelled.
    fn is_one_process(&self) -> bool {
        false
    }
    /// The metrics that it measures besides the kernel's accounting; the first
    /// decides.
    fn metrics(&self) -> Vec<Metric>;
    /// Checks that it can run for both subjects, before anything runs.
    ///
    /// # Errors
    /// If a program is missing or a setting is wrong; the message says what to
    /// install or to change.
    fn check(&self, subjects: [&Subject; 2], launcher: &Launcher) -> Result<(), String>;
    /// Runs it once for one subject.
    ///
    /// # Errors
    /// [`Fault`]: why there are no figures.
    fn run(&mut self, subject: &Subject, launcher: &mut Launcher) -> Result<Values, Fault>;
}

/// Every workload, with its description.
pub const NAMES: [(&str, &str); 10] = [
    (
        "nginx-churn",
        "one nginx worker, a new connection each request",
    ),
    ("rocksdb-deleteseq", "db_bench deleting keys in sequence"),
    (
        "readwhilewriting",
        "db_bench reading while one thread writes: contention",
    ),
    (
        "fstat",
        "processes, each in a loop of fstat(2) on its own file",
    ),
    (
        "context-switch",
        "two processes or threads on one CPU that wake each other",
    ),
    ("gcc", "compiling one large preprocessed C file"),
    ("fs-mark", "making empty files in many folders at once"),
    ("kernel-build", "make of a small Linux kernel"),
    (
        "call-sites",
        "a program of many call sites of unlock, inlined or not, in many layouts",
    ),
    (
        "command",
        "any command, a figure of its output or its elapsed time",
    ),
];

/// Finds `program` for `subject`.
///
/// # Errors
/// If it is not installed; the message names the package.
fn program(name: &str, package: &str, subject: &Subject) -> Result<PathBuf, String> {
    locklab_host::process::find(name, &subject.folders())
        .ok_or_else(|| format!("{name} is not installed; apt-get install {package}"))
}

/// Refuses two builds for a workload whose program is Locklab's own, because
/// they would not differ.
fn same_program(name: &str, subjects: [&Subject; 2]) -> Result<(), String> {
    if subjects[0].build != subjects[1].build || subjects[0].command != subjects[1].command {
        return Err(format!(
            "{name} runs a program of Locklab's own, in which two builds or commands do not \
             differ; compare locks or environments, or use --workload command"
        ));
    }
    Ok(())
}
