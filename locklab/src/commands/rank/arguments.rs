//! Declares the options of `locklab rank`. Nothing is run here.

use super::needs::Need;
use super::preset::Preset;
use crate::arguments::{ComparingArgs, ModelledSettings, NativeSettings, OwnLockArgs};
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::list::Numbers;
use locklab_lab::settings::DesignSettings;
use locklab_lab::workload::{CellSettings, UnitWord, WorkloadSettings};
use locklab_workload::{Cells, Distribution, Work};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Says why a ranking has no rounds for what is undecided.
pub(super) const NO_RETRY: &str = "is for two programs or kernels: a ranking has looks of its own, at which \
                        locks leave it";

/// `locklab rank`
///
/// Without names it ranks every lock that does what is needed.
#[derive(Debug, Args)]
pub struct RankArgs {
    #[command(flatten)]
    pub(crate) settings: RankSettings,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

/// The settings of a ranking: options of the command line, and keys of a file
/// of kind `rank`.
#[derive(Clone, Debug, Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankSettings {
    /// Locks are ranked.
    #[arg(skip)]
    pub kind: Kind,
    /// Locks: names, C or C++ files, locks of a kernel (kernel:qspinlock)
    #[arg(value_name = "LOCK")]
    #[serde(default, rename = "candidates")]
    pub locks: Vec<String>,
    /// Features that every lock must have: try, timeout, fifo, recursive,
    /// shared-memory, no-context, bytes<=N
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub needs: Vec<Need>,
    /// The lock that is in use today: the report says whether to keep it
    #[arg(long, value_name = "LOCK")]
    pub against: Option<String>,
    /// A situation instead of lengths and turns of your own
    #[arg(long, value_enum, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// Replay the program in this recording of 'locklab record': the work of each
    /// thread, under its locks and between them; --threads changes how many
    /// threads do that work [default: as recorded]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) cells: CellSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) turns: WorkloadSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) design: DesignSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) own: OwnLockArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) here: NativeSettings,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) modelled: ModelledSettings,
}

/// The only `kind` of these files.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Locks, ranked.
    #[default]
    Rank,
}

impl RankSettings {
    /// Returns the settings with the options that their preset sets.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of these was given as well.
    pub(super) fn with_preset(&self) -> Result<Self, Error> {
        let mut settings = self.clone();
        let Some(preset) = settings.preset else {
            return Ok(settings);
        };
        let (cells, turns) = (&mut settings.cells, &mut settings.turns);
        let [critical, non_critical] = preset.lengths();
        let mut twice = Vec::new();
        let mut set = |option: &'static str, given: bool| {
            if given {
                twice.push(option);
            }
        };
        set("--trace", settings.trace.is_some());
        set("--unit", turns.unit.replace(UnitWord::Ns).is_some());
        set(
            "--critical",
            cells.critical.replace(Numbers(vec![critical])).is_some(),
        );
        set(
            "--non-critical",
            cells
                .non_critical
                .replace(Numbers(vec![non_critical]))
                .is_some(),
        );
        match preset {
            Preset::Burst => set(
                "--distribution",
                turns.distribution.replace(Distribution::Bursty).is_some(),
            ),
            Preset::Hog => set("--hog", turns.hog.replace(100_000).is_some()),
            Preset::Readers => set("--reads", turns.reads.replace(95).is_some()),
            Preset::ManyLocks => set(
                "--locks",
                turns.lock_counts.replace(Numbers(vec![1_000])).is_some(),
            ),
            Preset::Oversubscribed => set("--threads", cells.threads.is_some()),
            Preset::Counter | Preset::Short | Preset::Long => {}
        }
        match twice.first() {
            None => Ok(settings),
            Some(option) => Err(Error::Usage(format!(
                "--preset {preset} says what {option} is; leave out one of the two",
                preset = preset.word()
            ))),
        }
    }

    /// Returns the points to rank at, on so many CPUs, with these numbers of threads if none
    /// were given.
    pub(super) fn cells_on(&self, cpus: usize, threads: impl FnOnce() -> Vec<usize>) -> Cells {
        let preset = self.preset.and_then(|preset| preset.threads(cpus));
        self.cells(|| preset.unwrap_or_else(threads))
    }

    /// Returns the points to rank at, with these numbers of threads if none were given.
    pub(super) fn cells(&self, threads: impl FnOnce() -> Vec<usize>) -> Cells {
        self.cells
            .cells(&self.turns, Work::Units, threads, [&[1], &[32]])
    }
}
