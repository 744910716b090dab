//! What the subjects are put under: one file a workload.
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
mod output;
pub(crate) mod own;
mod rocksdb;

use crate::compare::lab::Lab;
use crate::compare::{Metric, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use context_switch::{Between, By};
pub(crate) use output::shown;
pub use output::{Pattern, Place};

/// Why a run gives no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This run failed; another may not.
    Failed(String),
    /// The workload's own check failed.
    CheckFailed(String),
    /// Counters did not run all the time.
    Counter(String),
    /// No run of it can succeed: a sentence.
    Hopeless(String),
    /// Ctrl-C.
    Interrupted,
}

/// The figures of one run, by the name of their metric.
pub type Figures = BTreeMap<String, f64>;

/// A workload.
pub trait Workload {
    /// What one run is, in a sentence.
    fn about(&self) -> String;
    /// How it is set up here, for the report.
    fn setup(&self, lab: &Lab) -> Vec<(String, String)>;
    /// What it measures beside what the kernel accounts; the first decides.
    fn metrics(&self) -> Vec<Metric>;
    /// Whether it can run for both, before anything does.
    ///
    /// # Errors
    /// A sentence that says what to install or to change.
    fn check(&self, subjects: [&Subject; 2], lab: &Lab) -> Result<(), String>;
    /// Runs it once.
    ///
    /// # Errors
    /// Why there are no figures.
    fn run(&mut self, subject: &Subject, lab: &mut Lab) -> Result<Figures, Fault>;
}

/// A workload that is asked for, with what is said of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// Which: see [`NAMES`].
    pub name: String,
    /// How the report calls it; its name if absent.
    pub title: Option<String>,
    /// How much work a run is, over what it is by default.
    pub scale: Option<f64>,
    /// Threads or processes, where it has a number of them; `call-sites`: how
    /// many.
    pub threads: Option<u32>,
    /// `context-switch`: `processes` or `threads`.
    pub between: Option<Between>,
    /// `context-switch`: how one wakes the other.
    pub by: Option<By>,
    /// `fs-mark`: the folder to fill; `kernel-build`: the source tree; `gcc`:
    /// the preprocessed C file.
    pub path: Option<PathBuf>,
    /// `nginx-churn`: the port; a free one if absent.
    pub port: Option<u16>,
    /// `command`: the command of both subjects, if they have none of their own.
    pub command: Option<String>,
    /// `command`: what to read in its output; elapsed time if none.
    pub metric: Vec<Pattern>,
}

impl Asked {
    /// By name, with variants: `context-switch:threads+pipe`.
    ///
    /// # Errors
    /// A sentence that lists the names.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, variants) = text.split_once(':').unwrap_or((text, ""));
        let mut asked = Self {
            name: name.trim().into(),
            title: (!variants.is_empty()).then(|| text.trim().into()),
            ..Self::default()
        };
        for variant in variants.split('+').filter(|v| !v.is_empty()) {
            match variant {
                "processes" => asked.between = Some(Between::Processes),
                "threads" => asked.between = Some(Between::Threads),
                "futex" => asked.by = Some(By::Futex),
                "pipe" => asked.by = Some(By::Pipe),
                number => match number.parse() {
                    Ok(threads) => asked.threads = Some(threads),
                    Err(_) => {
                        return Err(format!(
                            "'{variant}' in '{text}' is no variant; those are processes, \
                             threads, futex, pipe, or a number of threads"
                        ));
                    }
                },
            }
        }
        asked.make()?;
        Ok(asked)
    }

    /// How reports call it.
    #[must_use]
    pub fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| self.name.clone())
    }

    /// So much of its usual work, at least `least`.
    fn scaled(&self, usual: u64, least: u64) -> u64 {
        let scale = self.scale.unwrap_or(1.0);
        ((usual as f64 * scale).round() as u64).max(least)
    }

    /// The workload.
    ///
    /// # Errors
    /// A sentence: no such workload, or something it does not know.
    pub fn make(&self) -> Result<Box<dyn Workload>, String> {
        if let Some(scale) = self.scale
            && !(scale > 0.0 && scale <= 1e4)
        {
            return Err(format!(
                "scale {scale} of {} is not between 0 and 10000; 1 is the usual length",
                self.name
            ));
        }
        if self.threads == Some(0) {
            return Err(format!(
                "zero threads of {} do no work; ask for 1",
                self.name
            ));
        }
        Ok(match self.name.as_str() {
            "nginx-churn" => Box::new(nginx_churn::NginxChurn::new(self)),
            "rocksdb-deleteseq" | "readwhilewriting" => Box::new(rocksdb::RocksDb::new(self)),
            "fstat" => Box::new(fstat::Fstat::new(self)),
            "context-switch" => Box::new(context_switch::ContextSwitch::new(self)),
            "call-sites" => Box::new(call_sites::CallSites::new(self)),
            "gcc" => Box::new(gcc::Gcc::new(self)),
            "fs-mark" => Box::new(fs_mark::FsMark::new(self)),
            "kernel-build" => Box::new(kernel_build::KernelBuild::new(self)),
            "command" => Box::new(any_command::AnyCommand::new(self)?),
            other => {
                let near = NAMES
                    .iter()
                    .map(|(name, _)| (strsim::damerau_levenshtein(name, other), name))
                    .min()
                    .filter(|(distance, _)| *distance <= 3);
                return Err(match near {
                    Some((_, near)) => {
                        format!("there is no workload '{other}'; did you mean {near}?")
                    }
                    None => format!(
                        "there is no workload '{other}'; those are {}",
                        NAMES.map(|(name, _)| name).join(", ")
                    ),
                });
            }
        })
    }
}

/// Every workload, with what it shows.
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

/// Where `program` is for `subject`.
///
/// # Errors
/// A sentence that names the package.
fn program(name: &str, package: &str, subject: &Subject) -> Result<PathBuf, String> {
    locklab_host::process::find(name, &Lab::folders(subject))
        .ok_or_else(|| format!("{name} is not installed; apt-get install {package}"))
}

/// Two builds, for a workload whose program is our own, do not differ.
fn own_program(name: &str, subjects: [&Subject; 2]) -> Result<(), String> {
    if subjects[0].build != subjects[1].build || subjects[0].command != subjects[1].command {
        return Err(format!(
            "{name} runs a program of Locklab's own, in which two builds or commands do not \
             differ; compare locks or environments, or use --workload command"
        ));
    }
    Ok(())
}
