//! Declares the options of `locklab rank`. Nothing is run here.

use super::needs::Need;
use crate::arguments::ComparingArgs;
use crate::commands::matrix::settings::LockSettings;
use clap::Args;
use locklab_host::error::Error;
use locklab_workload::{Cells, Work};
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
    /// Locks: names, C or C++ files, locks of a kernel (kernel:qspinlock)
    #[arg(value_name = "LOCK")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub(crate) wanted: Wanted,
    #[command(flatten)]
    pub(crate) locks: LockSettings,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

impl RankArgs {
    /// Returns the settings of the command line.
    ///
    /// # Errors
    /// [`Error::Usage`] if one of `--set` is none.
    pub(super) fn settings(&self) -> Result<RankSettings, Error> {
        Ok(RankSettings {
            kind: Kind::default(),
            names: self.names.clone(),
            wanted: self.wanted.clone(),
            locks: self.locks.with_set(&self.comparing.set)?,
        })
    }
}

/// Says which locks are ranked, and under which program.
#[derive(Clone, Debug, Default, Args, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Wanted {
    /// Features that every lock must have: try, timeout, fifo, recursive,
    /// shared-memory, no-context, bytes<=N
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[schemars(with = "Vec<String>")]
    pub needs: Vec<Need>,
    /// The lock that is in use today: the report says whether to keep it
    #[arg(long, value_name = "LOCK")]
    pub against: Option<String>,
    /// Replay the program in this recording of 'locklab record'
    ///
    /// That is the work of each thread, under its locks and between them; --threads changes
    /// how many threads do that work, which are as many as recorded otherwise.
    #[arg(long, value_name = "FILE")]
    #[serde(alias = "trace")]
    pub replay: Option<PathBuf>,
}

/// The settings of a ranking, as keys of a file of kind `rank`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankSettings {
    /// Locks are ranked.
    #[expect(dead_code, reason = "a file says it, and nothing else asks")]
    pub kind: Kind,
    /// Locks: names, C or C++ files, locks of a kernel (kernel:qspinlock)
    #[serde(default, rename = "candidates")]
    pub names: Vec<String>,
    #[serde(flatten)]
    pub(crate) wanted: Wanted,
    #[serde(flatten, deserialize_with = "LockSettings::of_a_file")]
    pub(crate) locks: LockSettings,
}

/// The only `kind` of these files.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Locks, ranked.
    #[default]
    Rank,
}

impl RankSettings {
    /// Returns the points to rank at, on so many CPUs, with these numbers of threads if none
    /// were given.
    pub(super) fn cells_on(&self, cpus: usize, threads: impl FnOnce() -> Vec<usize>) -> Cells {
        let settings = &self.locks;
        let preset = settings.preset.and_then(|preset| preset.threads(cpus));
        let threads = || preset.unwrap_or_else(threads);
        let cells = &settings.cells;
        cells.cells(&settings.turns, Work::Units, threads, [&[1], &[32]])
    }
}
