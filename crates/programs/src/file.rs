//! Experiment files of kind `programs`: TOML, documented by the example that
//! `locklab compare --example` prints.
//!
//! Everything may be left out; [`File::spec`] supplies the defaults. Options of
//! the command line are merged into a file before that.

use crate::counters::Mode;
use crate::spec::Spec;
use crate::subject::Subject;
use crate::workloads::WorkloadSpec;
use locklab_lab::file;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// What reads the kind first insists on it.
#[schemars(extend("required" = ["kind"]))]
pub struct File {
    /// Programs are compared.
    pub kind: Kind,
    /// Pairs of each workload.
    pub pairs: Option<u32>,
    /// Runs of each side before the first pair.
    pub warm_up: Option<u32>,
    /// Seed of every coin.
    pub seed: Option<u64>,
    /// What counts as flat, in percent.
    pub delta: Option<f64>,
    /// Limit of one run, in seconds.
    pub time_limit: Option<f64>,
    /// CPUs to use.
    pub pin: Option<Vec<usize>>,
    /// Which counters are read.
    pub counters: Option<Mode>,
    /// The existing subject.
    pub baseline: Subject,
    /// The subject that is compared with it.
    pub experiment: Subject,
    /// Workloads in the order in which they run.
    pub workload: Vec<WorkloadSpec>,
}

/// The only `kind` of these files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Programs, builds or environments.
    #[default]
    Programs,
}

/// The example that is printed; tests read it.
pub const EXAMPLE: &str = include_str!("example.toml");

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read or parsed; the message names the file and the
    /// line.
    pub fn read(path: &Path) -> Result<Self, String> {
        Self::parse(&file::read(path)?).map_err(|e| format!("{}, {e}", path.display()))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown or missing key, or a workload does not
    /// exist; the message names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "'locklab compare --example' shows the form";
        let file: Self = file::parse(text).map_err(|e| format!("{e}; {form}"))?;
        for workload in &file.workload {
            workload.workload()?;
        }
        Ok(file)
    }

    /// Its specification, with defaults for everything that it leaves out.
    #[must_use]
    pub fn spec(&self) -> Spec {
        Spec {
            baseline: self.baseline.clone(),
            experiment: self.experiment.clone(),
            workloads: self.workload.clone(),
            warm_up: self.warm_up.unwrap_or(1),
            time_limit: self.time_limit.unwrap_or(120.0),
            pin: self.pin.clone().unwrap_or_default(),
            counters: self.counters.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_an_experiment() {
        let file = File::parse(EXAMPLE).unwrap();
        assert_eq!(file.pairs, Some(20));
        assert_eq!(file.baseline.lock.as_deref(), Some("pthread"));
        assert!(file.workload.len() >= 3);
        assert_eq!(file.spec().time_limit, 120.0);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, part) in [
            ("pairs = 'many'", "line 1: invalid type"),
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
            let error = File::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
