//! A workload as specified by a user: by name, with settings.

use super::output_metric::OutputMetric;
use super::switching::{Between, By};
use locklab_host::error::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A workload by its name, with its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The name: see [`super::NAMES`].
    pub name: String,
    /// Its title in the report; its name if absent.
    pub title: Option<String>,
    /// The amount of work of a run, relative to the default.
    pub scale: Option<f64>,
    /// Number of threads or processes, if it has several; for `call-sites` the
    /// number of call sites.
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
    pub metric: Vec<OutputMetric>,
}

impl WorkloadSpec {
    /// Parses a name with variants: `context-switch:threads+pipe`.
    ///
    /// # Errors
    /// If there is no such workload or variant; the message lists the names.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (name, variants) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = Self {
            name: name.trim().into(),
            title: (!variants.is_empty()).then(|| text.trim().into()),
            ..Self::default()
        };
        for variant in variants.split('+').filter(|v| !v.is_empty()) {
            match variant {
                "processes" => spec.between = Some(Between::Processes),
                "threads" => spec.between = Some(Between::Threads),
                "futex" => spec.by = Some(By::Futex),
                "pipe" => spec.by = Some(By::Pipe),
                number => match number.parse() {
                    Ok(threads) => spec.threads = Some(threads),
                    Err(_) => {
                        return Err(Error::Usage(format!(
                            "'{variant}' in '{text}' is no variant; those are processes, threads, \
                             futex, pipe, or a number of threads"
                        )));
                    }
                },
            }
        }
        spec.workload()?;
        Ok(spec)
    }

    /// Returns its title in reports.
    #[must_use]
    pub fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| self.name.clone())
    }

    /// Returns the amount of work for `usual` work by default, at least `least`.
    pub(super) fn scaled(&self, usual: u64, least: u64) -> u64 {
        let scale = self.scale.unwrap_or(1.0);
        ((usual as f64 * scale).round() as u64).max(least)
    }
}
