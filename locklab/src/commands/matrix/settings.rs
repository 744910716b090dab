//! The settings of a matrix of two locks: options of the command line, and
//! keys of a file of kind `matrix`.

use crate::cli::OwnLockArgs;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use locklab_host::error::Error;
use locklab_lab::list::{self, Cpus, Numbers};
use locklab_lab::settings::{DesignSettings, Limit, refuse};
use locklab_lab::workload::{Work, WorkloadSettings, check_readers};
use locklab_native::subject::{self, Subject};
use locklab_sim::Placement;
use locklab_workload::Mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

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

/// The cells of a matrix, and what runs in them.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Cells")]
#[serde(default)]
pub(crate) struct CellSettings {
    /// Numbers of threads, such as 1,2,4..64 [default: 1, half the CPUs, all]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section [default: 0,1,2,4..128]
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Numbers>,
    /// Lengths of the non-critical section [default: 1,32; with fstat 0]
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Numbers>,
    /// Content of the critical section [default: units]
    #[arg(long, value_enum)]
    pub workload: Option<Work>,
    /// Measure the latency of each acquisition too, in separate slices
    #[arg(long)]
    pub latency: bool,
}

/// Settings of a matrix on this machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On this machine")]
#[serde(default)]
pub(crate) struct NativeSettings {
    /// Time of all cells together, in seconds [default: 60; in a ranking 2 for
    /// each lock, but at least 10 and at most 60]
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u32>,
    /// Stop after this many seconds, and report what was measured
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<Limit>,
    /// Measured part of a slice, in microseconds [default: found for each cell]
    #[arg(long, value_name = "US")]
    pub slice_us: Option<u32>,
    /// Code layout of all locks [default: drawn for each slice]
    #[arg(long, value_name = "N")]
    pub layout: Option<usize>,
    /// CPUs to pin to, in this order [default: cores, siblings, other nodes]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Cpus>,
    /// Use processes that share memory instead of threads
    #[arg(long)]
    pub processes: bool,
}

/// Settings of runs on a simulated machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On a modelled machine")]
#[serde(default)]
pub(crate) struct ModelledSettings {
    /// Simulate on a modelled machine: a name of `locklab machine list`, or a
    /// file
    // It is never refused, so it is not among what was given.
    #[serde(skip_serializing)]
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    /// Virtual CPUs of a simulated virtual machine
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses
    #[arg(long, value_name = "N")]
    pub physical: Option<usize>,
    /// Which CPUs simulated threads get
    #[arg(long, value_name = "WHERE", value_parser = placement())]
    #[schemars(with = "Option<String>")]
    pub placement: Option<Placement>,
    /// Acquisitions of a simulated run, all threads together [default: as many
    /// as its precision requires]
    #[arg(long, value_name = "N")]
    pub acquisitions: Option<u64>,
}

/// The placements, by name.
fn placement() -> impl TypedValueParser<Value = Placement> {
    PossibleValuesParser::new(Placement::ALL.map(|(name, _)| name))
        .try_map(|name| Placement::named(&name))
}

/// What a matrix shows besides, on a simulated machine.
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
    /// The name of the experiment; the baseline's if it is compared with
    /// itself.
    pub(super) fn experiment(&self, aa: bool) -> &str {
        match &self.experiment {
            Some(experiment) if !aa => experiment,
            _ => &self.baseline,
        }
    }

    /// As [`ModelledSettings::machine`], with what a matrix shows besides.
    pub(super) fn machine(&self) -> Result<Option<&str>, Error> {
        let machine = self.modelled.machine(&self.here)?;
        if machine.is_none() {
            refuse(&self.extras, NOT_MODELLED)?;
        }
        Ok(machine)
    }
}

/// Why settings of a simulation are refused where nothing is simulated.
const NOT_MODELLED: &str = "is for simulated machines; say which, with --on MACHINE";

impl ModelledSettings {
    /// The modelled machine; `None` for this one. Settings that the other has
    /// are refused.
    ///
    /// # Errors
    /// [`Error::Usage`] with the first such setting.
    pub(crate) fn machine(&self, here: &NativeSettings) -> Result<Option<&str>, Error> {
        let machine = self.on.as_deref().filter(|machine| *machine != "native");
        match machine {
            Some(_) => refuse(here, "is for this machine; leave it out with --on")?,
            None => refuse(self, NOT_MODELLED)?,
        }
        Ok(machine)
    }
}

impl CellSettings {
    /// Lengths of the critical and of the non-critical section.
    ///
    /// # Errors
    /// [`Error::Usage`] if a length is given for a workload that has none.
    pub(super) fn lengths(&self) -> Result<(Vec<u64>, Vec<u64>), Error> {
        let of = |given: &Option<Numbers>, default: &[u64]| {
            distinct(given.as_ref().map_or(default, |list| &list.0))
        };
        match self.workload.unwrap_or_default() {
            Work::Fstat if self.critical.is_some() => Err(Error::Usage(
                "an fstat has no length; leave out --critical, or use --workload units".into(),
            )),
            Work::Fstat => Ok((vec![0], of(&self.non_critical, &[0]))),
            // The lengths of the kernel benchmark of the virt-spin report.
            Work::Units => Ok((
                of(&self.critical, &[0, 1, 2, 4, 8, 16, 32, 64, 128]),
                of(&self.non_critical, &[1, 32]),
            )),
        }
    }

    /// The numbers of threads, if they were given.
    pub(super) fn threads(&self) -> Option<Vec<usize>> {
        self.threads.as_ref().map(Threads::distinct)
    }
}

/// Whether readers share any of these locks, where `mix` has readers.
///
/// # Errors
/// [`Error::Usage`] if they share none.
pub(crate) fn check_shared<'a>(
    mix: &Mix,
    locks: impl Iterator<Item = &'a Subject>,
) -> Result<(), Error> {
    let all = subject::all();
    let able: Vec<&str> = all
        .iter()
        .filter(|subject| subject.info.readers_share)
        .map(|subject| subject.info.name)
        .collect();
    let shared = locks.map(|lock| lock.info.readers_share);
    Ok(check_readers(mix, shared, &able)?)
}

/// A list without repetitions.
pub(crate) fn distinct<T: Copy + PartialEq>(list: &[T]) -> Vec<T> {
    let mut distinct = Vec::with_capacity(list.len());
    for n in list {
        if !distinct.contains(n) {
            distinct.push(*n);
        }
    }
    distinct
}

/// Numbers of threads: at least one of them, each at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<u64>", into = "Vec<usize>")]
#[schemars(with = "Vec<u64>")]
pub struct Threads(Vec<usize>);

impl TryFrom<Vec<u64>> for Threads {
    type Error = String;

    fn try_from(list: Vec<u64>) -> Result<Self, String> {
        let most = locklab_locks::MAX_CPUS;
        if list.is_empty() {
            return Err("no number of threads; ask for at least one".into());
        }
        list.into_iter()
            .map(|n| match usize::try_from(n) {
                Ok(0) => Err("zero threads do no work; ask for at least 1".into()),
                Ok(n) if n <= most => Ok(n),
                _ => Err(format!(
                    "{n} threads are more than the {most} that locks can name"
                )),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl Threads {
    /// Each number once.
    pub(crate) fn distinct(&self) -> Vec<usize> {
        distinct(&self.0)
    }
}

impl From<Threads> for Vec<usize> {
    fn from(threads: Threads) -> Self {
        threads.0
    }
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let list = list::parse(text).map_err(|e| e.to_string())?;
        list.try_into()
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
        assert_eq!(settings.cells.threads(), Some(vec![1, 8]));
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
