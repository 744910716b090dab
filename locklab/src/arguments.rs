//! The arguments that several commands share.
//!
//! Each is declared once, so that `--resume` or `--fail-on` mean the same for
//! locks, programs and kernels, and `--pin` or `--placement` the same for two locks and
//! for many. Nothing here measures or knows a command.

pub mod report_files;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use locklab_host::error::Error;
use locklab_lab::chunk::Chunk;
use locklab_lab::gate::FailOn;
use locklab_lab::list::Cpus;
use locklab_lab::settings::{Limit, refuse};
use locklab_lab::workload::check_readers;
use locklab_native::subject::{self, Subject};
use locklab_sim::Placement;
use locklab_workload::Mix;
use report_files::ReportFiles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Common {
    /// Show what would run, without running it
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Show no progress and no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    pub json: bool,
}

/// The store of a command that has one.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct StoreArgs {
    /// The store of samples [default: locklab.sqlite in the user's data folder]
    #[arg(long, global = true, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// Says how locks of the user's own are compiled.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Locks of your own")]
#[serde(default)]
pub struct OwnLockArgs {
    /// Compiler arguments for a lock of your own, such as '-DSLOTS=64
    /// -Iinclude'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pub cflags: Option<String>,
}

impl StoreArgs {
    /// Returns the store that the arguments name, or the default one.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no home folder for the default one.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        if let Some(path) = &self.store {
            return Ok(path.clone());
        }
        directories::ProjectDirs::from("", "", "locklab")
            .map(|dirs| dirs.data_dir().join("locklab.sqlite"))
            .ok_or_else(|| {
                Error::Usage(
                    "there is no home folder to keep the store in; give --store PATH".into(),
                )
            })
    }
}

/// Says how a comparison is carried out and reported, whatever is compared. What is
/// compared, and by which design, are settings, which a file may have too.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "How it is carried out")]
pub struct ComparingArgs {
    /// Compare the baseline with itself, and store the bias of this set-up
    /// (rank: eight copies of one lock)
    #[arg(long)]
    pub aa: bool,
    /// Continue the same comparison where it was interrupted
    #[arg(long)]
    pub resume: bool,
    /// Run only every N-th cell, into a store that 'results merge' joins with the others'
    #[arg(long, value_name = "I/N")]
    pub chunk: Option<Chunk>,
    /// Exit with 3 if a verdict is worse, 4 if unclear, 5 if invalid, 6 if incomplete;
    /// only the verdicts that are named count
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) files: ReportFiles,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) store: StoreArgs,
}

impl ComparingArgs {
    /// Refuses to continue what no store has kept, and files that cannot be written.
    ///
    /// # Errors
    /// [`Error::Usage`] if the store is kept in memory, or with the first such file.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.resume && !self.is_kept() {
            return Err(Error::Usage(
                "--resume continues a stored experiment, and --store :memory: keeps none; leave \
                 one of them out"
                    .into(),
            ));
        }
        self.files.check()
    }

    /// Returns whether the samples outlive the command.
    pub(crate) fn is_kept(&self) -> bool {
        self.store.store.as_deref() != Some(Path::new(":memory:"))
    }

    /// Returns the words of `--fail-on`; a regression always fails a test file.
    pub(crate) fn failing(&self) -> Vec<&'static str> {
        self.fail_on.iter().map(|f| f.word()).collect()
    }
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
    /// CPUs that simulated threads get
    #[arg(long, value_name = "WHERE", value_parser = placement())]
    #[schemars(with = "Option<String>")]
    pub placement: Option<Placement>,
    /// Acquisitions of a simulated run, all threads together [default: as many
    /// as its precision requires]
    #[arg(long, value_name = "N")]
    pub acquisitions: Option<u64>,
    /// Let each simulated thread do so many operations and end, as programs of fixed work do;
    /// rates are until the last has ended [default: all work until the run ends]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
}

/// Returns the placements, by name.
fn placement() -> impl TypedValueParser<Value = Placement> {
    PossibleValuesParser::new(Placement::ALL.map(|(name, _)| name))
        .try_map(|name| Placement::named(&name))
}

/// Says why settings of a simulation are refused where nothing is simulated.
pub(crate) const NOT_MODELLED: &str = "is for simulated machines; say which, with --on MACHINE";

impl ModelledSettings {
    /// Returns the modelled machine; `None` for this one. Settings that the other has
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

/// Returns the number of threads to simulate on. The results do not depend on it.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Checks that readers share one of these locks, where `mix` has readers.
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
    check_readers(mix, shared, &able)
}
