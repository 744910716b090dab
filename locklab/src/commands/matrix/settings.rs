//! The settings of a matrix of two locks: options of the command line, and
//! keys of a file of kind `matrix`.

use crate::arguments::{ModelledSettings, NOT_MODELLED, NativeSettings, OwnLockArgs};
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::settings::{DesignSettings, refuse};
use locklab_lab::workload::{CellSettings, WorkloadSettings};
use locklab_workload::{Cells, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The settings.
#[derive(Clone, Debug, Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixSettings {
    /// Locks are compared in a matrix.
    #[arg(skip)]
    pub kind: Kind,
    /// The lock to compare with
    pub baseline: String,
    /// The lock that is compared with it; optional with --aa
    #[arg(required_unless_present = "aa")]
    #[schemars(required)]
    pub experiment: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) design: DesignSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) cells: CellSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) turns: WorkloadSettings,
    /// Content of the critical section [default: units]
    #[arg(long, value_enum, help_heading = "Cells")]
    pub workload: Option<Work>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) here: NativeSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) modelled: ModelledSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) extras: SimulatedExtras,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) own: OwnLockArgs,
}

/// The only `kind` of these files.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Locks.
    #[default]
    Matrix,
}

/// Says what a matrix shows besides, on a simulated machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SimulatedExtras {
    /// Show which of the model's assumptions a simulated ratio depends on
    #[arg(long)]
    pub band: bool,
    /// Write a trace of a short simulated run, for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

impl MatrixSettings {
    /// Returns the name of the experiment; the baseline's if it is compared with
    /// itself.
    pub(super) fn experiment(&self, aa: bool) -> &str {
        match &self.experiment {
            Some(experiment) if !aa => experiment,
            _ => &self.baseline,
        }
    }

    /// Returns the cells, with these numbers of threads if none were given.
    ///
    /// # Errors
    /// [`Error::Usage`] if a length is given for a workload that has none.
    pub(super) fn cells(&self, threads: impl FnOnce() -> Vec<usize>) -> Result<Cells, Error> {
        let work = self.workload.unwrap_or_default();
        let lengths: [&[u64]; 2] = match work {
            Work::Fstat if self.cells.critical.is_some() => {
                return Err(Error::Usage(
                    "fstat has no length; leave out --critical, or use --workload units".into(),
                ));
            }
            Work::Fstat => [&[0], &[0]],
            // The lengths of the kernel benchmark of the virt-spin report.
            Work::Units => [&[0, 1, 2, 4, 8, 16, 32, 64, 128], &[1, 32]],
        };
        Ok(self.cells.cells(&self.turns, work, threads, lengths))
    }

    /// Returns [`ModelledSettings::machine`], and refuses what a matrix shows only on a model.
    pub(super) fn machine(&self) -> Result<Option<&str>, Error> {
        let machine = self.modelled.machine(&self.here)?;
        if machine.is_none() {
            refuse(&self.extras, NOT_MODELLED)?;
        }
        Ok(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locklab_lab::file;

    #[test]
    fn a_file_says_what_the_command_line_can() {
        let settings: MatrixSettings = file::parse(
            "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\nthreads = [1, 8]\n\
             on = 'flat-16'\npairs = 8\nacquisitions = 500\ncflags = '-O1'\n",
        )
        .unwrap();
        assert_eq!(settings.experiment(false), "mcs");
        assert_eq!(settings.cells(Vec::new).unwrap().threads, [1, 8]);
        assert_eq!(settings.design.pairs, Some(8));
        assert_eq!(settings.modelled.acquisitions, Some(500));
        assert_eq!(settings.machine().unwrap(), Some("flat-16"));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let head = "kind = 'matrix'\nbaseline = 'ticket'\nexperiment = 'mcs'\n";
        for (text, part) in [
            ("unit = 'furlongs'", "line 4: unknown variant `furlongs`"),
            ("threds = [1]", "line 4: unknown field `threds`"),
            ("latency = true\nthreads = [0]", "line 5: zero threads"),
            ("delta = 0.0", "line 4: 0 is no margin"),
        ] {
            let settings = file::parse::<MatrixSettings>(&format!("{head}{text}\n"));
            let error = settings.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
