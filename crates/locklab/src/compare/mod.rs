//! `locklab compare`: whole programs, baseline against experiment.
//!
//! The vocabulary: who is compared, under what, and what one run gives.
//! Workloads fill [`Run`]; the judge and the report read it. Nothing here
//! measures, judges or prints.

pub mod arguments;
mod asked;
mod build;
pub(crate) mod command;
pub mod experiment;
pub mod lab;
mod outcome;
mod progress;
pub mod records;
pub mod session;
pub mod verdicts;

pub(crate) use outcome::show;

use locklab_judge::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One of the two: what it runs, on what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Subject {
    /// How reports call it; made from the rest if absent.
    pub name: Option<String>,
    /// The command of a `command` workload.
    pub command: Option<String>,
    /// The lock under its pthread mutexes: a name of `locklab locks`,
    /// `pthread` for none but glibc's own, `pthread-interposed` for glibc's
    /// own behind the same interposer.
    pub lock: Option<String>,
    /// A folder where its programs are looked for before `PATH`; `{build}`
    /// in a command stands for it.
    pub build: Option<PathBuf>,
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// Whether unlock is inlined, for a program that is built for the
    /// comparison.
    pub inline: Option<Inline>,
}

/// Whether a lock's release is inlined where it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inline {
    /// A copy at each call site.
    Always,
    /// One function.
    Never,
}

impl Inline {
    /// As a user writes it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// Both sides of `unlock=never|always`, the baseline first.
    ///
    /// # Errors
    /// A sentence that shows the form.
    pub fn parse_pair(text: &str) -> Result<[Self; 2], String> {
        let of = |word: &str| match word.trim() {
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        };
        let pair = text.strip_prefix("unlock=").and_then(|pair| {
            let (b, e) = pair.split_once('|')?;
            Some([of(b)?, of(e)?])
        });
        pair.ok_or_else(|| {
            format!("'{text}' is not what can be inlined; write unlock=never|always")
        })
    }
}

impl Subject {
    /// What a report calls it.
    #[must_use]
    pub fn label(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let mut parts = Vec::new();
        if let Some(command) = &self.command {
            parts.push(command.clone());
        }
        if let Some(lock) = &self.lock {
            parts.push(lock.clone());
        }
        if let Some(build) = &self.build {
            parts.push(format!("build {}", build.display()));
        }
        if let Some(inline) = self.inline {
            parts.push(format!("unlock inlined {}", inline.word()));
        }
        parts.extend(self.env.iter().map(|(k, v)| format!("{k}={v}")));
        if parts.is_empty() {
            parts.push("as installed".into());
        }
        parts.join(", ")
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// What the program, or its client, says of itself.
    Output,
    /// The kernel's account of the process and its children (wait4).
    Process,
    /// A counter of the processor.
    Hardware,
    /// A counter of the kernel (perf software event).
    Software,
    /// The i-cache model, in an emulated execution.
    Model,
    /// The program's file.
    File,
}

impl Source {
    /// For a reader.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Output => "hardware; as the program or its client prints it",
            Self::Process => {
                "hardware; the kernel's account of the process and its children (wait4)"
            }
            Self::Hardware => "hardware; a counter of the processor, running all the time",
            Self::Software => "hardware; a software event of the kernel (perf_event_open)",
            Self::File => "the program's file; bytes of its function symbols",
            Self::Model => "model; L1i of the stated geometry in an emulated execution",
        }
    }
}

/// A figure that each run gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name, as `l1i-misses:k`.
    pub name: String,
    /// Its unit; empty for a count or a ratio.
    pub unit: String,
    /// Which way it improves.
    pub direction: Direction,
    /// Where it comes from.
    pub source: Source,
}

impl Metric {
    /// One that improves upwards.
    #[must_use]
    pub fn higher(name: &str, unit: &str, source: Source) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            direction: Direction::HigherIsBetter,
            source,
        }
    }

    /// One that improves downwards.
    #[must_use]
    pub fn lower(name: &str, unit: &str, source: Source) -> Self {
        Self {
            direction: Direction::LowerIsBetter,
            ..Self::higher(name, unit, source)
        }
    }
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum Invalid {
    /// It did not end well, or its output has no figure. The pair is set
    /// aside; the rest stand.
    Failed(String),
    /// The workload's own check failed. The workload has no verdict.
    CheckFailed(String),
    /// A counter did not run all the time. The pair is set aside.
    Counter(String),
    /// It was never run: Ctrl-C came after the other run of its pair. Such a
    /// half is stored, and its pair is run again, since two runs with hours
    /// between them are no pair.
    Interrupted,
}

impl Invalid {
    /// The reason.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Failed(why) | Self::CheckFailed(why) | Self::Counter(why) => why,
            Self::Interrupted => "interrupted before it ran",
        }
    }
}

/// One run of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// When it began, in seconds after the experiment's start.
    pub started: f64,
    /// Figures by the name of their metric.
    pub values: BTreeMap<String, f64>,
    /// Why it does not count, if it does not.
    pub invalid: Option<Invalid>,
}

/// A pair: both sides, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPair {
    /// Its number in the workload.
    pub index: u32,
    /// What the coin said.
    pub baseline_first: bool,
    /// The baseline's run.
    pub baseline: Run,
    /// The experiment's run.
    pub experiment: Run,
}

impl RunPair {
    /// Whether only one of its runs was made.
    #[must_use]
    pub fn is_half(&self) -> bool {
        let both = [&self.baseline, &self.experiment];
        both.iter()
            .any(|run| run.invalid == Some(Invalid::Interrupted))
    }

    /// The first reason why the pair does not count.
    #[must_use]
    pub fn invalid(&self) -> Option<&Invalid> {
        let both = [&self.baseline, &self.experiment];
        let faults = || both.iter().filter_map(|run| run.invalid.as_ref());
        faults()
            .find(|fault| matches!(fault, Invalid::CheckFailed(_)))
            .or_else(|| faults().next())
    }
}

/// What was asked, all workloads of it. Two experiments are the same
/// question if this is the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The yardstick.
    pub baseline: Subject,
    /// What is judged against it.
    pub experiment: Subject,
    /// In the order in which they run.
    pub workloads: Vec<crate::workloads::Asked>,
    /// Pairs a workload.
    pub pairs: u32,
    /// Runs of each side before the first pair, left out.
    pub warm_up: u32,
    /// Of the coin.
    pub seed: u64,
    /// The margin for flat, a fraction.
    pub delta: f64,
    /// Of one run, in seconds.
    pub time_limit: f64,
    /// CPUs to use; the workload's own choice if empty.
    pub pin: Vec<usize>,
    /// What is counted beside.
    pub counters: crate::counters::Mode,
    /// Baseline against baseline.
    pub aa: bool,
}

impl Spec {
    /// Both subjects, the baseline first.
    #[must_use]
    pub fn subjects(&self) -> [&Subject; 2] {
        [&self.baseline, &self.experiment]
    }
}

/// An experiment with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was asked.
    pub spec: Spec,
    /// Name of the machine.
    pub machine: String,
    /// Facts about it, in a report's order.
    pub environment: Vec<(String, String)>,
    /// What a reader must know beside.
    pub caveats: Vec<String>,
    /// Each workload, in order.
    pub workloads: Vec<Measurement>,
    /// Why it is not complete, if it is not.
    pub interrupted: Option<String>,
}

/// One workload with its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Its title.
    pub name: String,
    /// What one run is, in a sentence.
    pub about: String,
    /// How it was set up.
    pub setup: Vec<(String, String)>,
    /// Its metrics; the first decides.
    pub metrics: Vec<Metric>,
    /// Bias band of the first, if an A/A run measured it.
    pub bias_band: Option<f64>,
    /// Every pair, in order.
    pub pairs: Vec<RunPair>,
    /// Why it was not run, or not to the end.
    pub stopped: Option<String>,
}
