//! Settings of a comparison of programs: options of the command line, and
//! files of kind `compare`, documented by the example that
//! `locklab results schema example` prints.
//!
//! Everything may be left out; [`Settings::spec`] supplies the defaults, after
//! the command line has been laid over the file.

use crate::counters::Mode;
use crate::spec::Spec;
use crate::subject::Subject;
use crate::workloads::WorkloadSpec;
use clap::Args;
use locklab_harness::file;
use locklab_harness::list::Cpus;
use locklab_harness::settings::{DesignSettings, Limit, NewName, Renamed};
use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The heading of options for programs.
pub const HEADING: &str = "Programs";

/// The settings; the subjects and workloads are tables of a file, for which
/// the command line has short options.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// What reads the kind first insists on it.
#[schemars(extend("required" = ["kind"]))]
pub struct Settings {
    /// Programs are compared.
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub kind: Kind,
    #[command(flatten)]
    #[serde(flatten)]
    #[allow(missing_docs, reason = "its settings have their own")]
    pub design: DesignSettings,
    /// Warm-up runs of each side before the first pair [default: 1]
    #[arg(long, short, value_name = "N", help_heading = HEADING)]
    pub warm_up: Option<u32>,
    /// Time limit of one run in seconds, after which it is killed [default:
    /// 120]
    #[arg(long, value_name = "SECONDS", help_heading = HEADING, hide_short_help = true)]
    pub run_limit: Option<Limit>,
    /// The name of this limit in 0.2, refused with the new one.
    #[arg(skip)]
    #[schemars(skip)]
    pub time_limit: Option<Renamed<RunLimit>>,
    /// CPUs to use, in this order [default: the workload's choice]
    #[arg(long, value_name = "LIST", help_heading = HEADING, hide_short_help = true)]
    pub pin: Option<Cpus>,
    /// Counters to read; auto by default.
    #[arg(skip)]
    pub counters: Option<Mode>,
    /// Folder of the runs' logs; beside the store by default.
    #[arg(skip)]
    pub logs: Option<PathBuf>,
    /// The existing subject.
    #[arg(skip)]
    pub baseline: Subject,
    /// The subject that is compared with it.
    #[arg(skip)]
    pub experiment: Subject,
    /// Workloads in the order in which they run.
    #[arg(skip)]
    pub workload: Vec<WorkloadSpec>,
}

/// Stands for `time_limit`, the name of the limit of a run in 0.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLimit {}

impl NewName for RunLimit {
    const SENTENCE: &'static str = "a time limit is of a whole comparison, and this limits one \
                                    run; write --run-limit, in a file run_limit";
}

/// The kind of comparison, in files, JSON and the store.
pub const KIND: &str = "compare";

/// The only `kind` of these files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Programs, builds or environments.
    #[default]
    #[serde(alias = "programs")]
    Compare,
}

/// The limit of a run, unless another was given.
pub const RUN_LIMIT: Limit = Limit::seconds(120);

/// The example that is printed; tests read it.
pub const EXAMPLE: &str = include_str!("example.toml");

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read or parsed; the message names the file and the
    /// line.
    pub fn read(path: &Path, set: &[String]) -> Result<Self, Error> {
        Self::parse_with(&file::read(path)?, set).map_err(|e| e.within(path))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown or missing key, or a workload does not
    /// exist; the message names the line.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_with(text, &[])
    }

    /// Parses the text of a file, with these of `--set KEY=VALUE` over its settings.
    ///
    /// # Errors
    /// Those of [`Settings::parse`], and if there is no such setting.
    pub fn parse_with(text: &str, set: &[String]) -> Result<Self, Error> {
        let file: Self = file::parse_with(text, set).map_err(|e| {
            e.reworded(|why| format!("{why}; 'locklab results schema example' shows the form"))
        })?;
        for workload in &file.workload {
            workload.workload()?;
        }
        Ok(file)
    }

    /// Returns its specification, with defaults for everything that it leaves out.
    #[must_use]
    pub fn spec(&self) -> Spec {
        Spec {
            baseline: self.baseline.clone(),
            experiment: self.experiment.clone(),
            workloads: self.workload.clone(),
            warm_up: self.warm_up.unwrap_or(1),
            run_limit: self.run_limit.unwrap_or(RUN_LIMIT),
            pin: self.pin.clone().map(|cpus| cpus.0).unwrap_or_default(),
            counters: self.counters.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_an_experiment() {
        let file = Settings::parse(EXAMPLE).unwrap();
        assert_eq!(file.design.pairs, Some(20));
        assert_eq!(file.baseline.lock.as_deref(), Some("pthread"));
        assert!(file.workload.len() >= 3);
        assert_eq!(file.spec().run_limit, RUN_LIMIT);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, part) in [
            ("pairs = 'many'", "line 1: invalid type"),
            ("warm_up = 1\ndelta = 100", "line 2: 100 is no margin"),
            ("run_limit = 0.0", "line 1: a time limit of 0 s"),
            ("time_limit = 60", "line 1: a time limit is of a whole"),
            ("\npears = 20", "line 2: unknown field `pears`"),
            (
                "[[workload]]\nname = 'nginx-chrun'",
                "did you mean nginx-churn",
            ),
            (
                "[[workload]]\nname = 'fstat'\nscale = -1.0",
                "not between 0 and",
            ),
        ] {
            let error = Settings::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
