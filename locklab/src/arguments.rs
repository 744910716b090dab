//! The arguments that several commands share.
//!
//! Each is declared once, so that `--resume` or `--fail-on` mean the same for
//! locks, programs and kernels, and `--pin` or `--on` the same for two locks and
//! for many. Nothing here measures or knows a command.

pub mod report_files;

use clap::Args;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use locklab_harness::chunk::Chunk;
use locklab_harness::gate::FailOn;
use locklab_harness::list::Cpus;
use locklab_harness::settings::{Limit, refuse};
use locklab_harness::workload::check_readers;
use locklab_host::error::Error;
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
    /// Overwrite files that Locklab did not write; a recording is never overwritten
    #[arg(long, global = true)]
    pub force: bool,
}

/// The store of a command that has one.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct StoreArgs {
    /// The store of samples [default: locklab.sqlite in the user's data folder]
    #[arg(long, global = true, value_name = "PATH", hide_short_help = true)]
    pub store: Option<PathBuf>,
}

/// Says how locks of the user's own are compiled.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "Locks of your own")]
#[serde(default)]
pub struct UserLockArgs {
    /// Compiler arguments for a lock of your own, such as '-DSLOTS=64
    /// -Iinclude'
    #[arg(
        long,
        value_name = "FLAGS",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
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
    /// Compare one with itself, which shows what differs by chance
    #[arg(long, hide_short_help = true)]
    pub aa: bool,
    /// Continue the same comparison where it was interrupted
    #[arg(long)]
    pub resume: bool,
    /// Run only every N-th cell, into a store that 'results merge' joins with the others'
    #[arg(long, value_name = "I/N", hide_short_help = true)]
    pub chunk: Option<Chunk>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) gate: GateArgs,
    /// Set any key of an experiment file, such as slice_us=200 or experiment.env.X=1
    #[arg(long, value_name = "KEY=VALUE")]
    #[serde(skip)]
    pub set: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) files: ReportFiles,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) store: StoreArgs,
}

/// The verdicts that make a command fail.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct GateArgs {
    /// Fail if a result has one of these verdicts: exit with 3 for worse, 4 for unclear, 5 for
    /// invalid, 6 for incomplete
    #[arg(long, value_name = "VERDICT", value_parser = Trimmed(EnumValueParser::<FailOn>::new()), hide_possible_values = true, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
}

/// Parses an item of a list, which may have a space before it.
#[derive(Clone)]
pub(crate) struct Trimmed<P>(pub(crate) P);

impl<P: TypedValueParser> TypedValueParser for Trimmed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        option: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let text = value.to_str().map_or(value, |text| text.trim().as_ref());
        self.0.parse_ref(command, option, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

impl GateArgs {
    /// Returns the words of `--fail-on`; a regression always fails a test file.
    pub(crate) fn failing(&self) -> Vec<&'static str> {
        self.fail_on.iter().map(|f| f.word()).collect()
    }
}

impl ComparingArgs {
    /// Refuses to continue what no store has kept, and files that cannot be written.
    ///
    /// # Errors
    /// [`Error::Usage`] if the store is kept in memory, or with the first such file.
    pub(crate) fn check(&self, common: &Common) -> Result<(), Error> {
        if self.resume && !self.is_kept() {
            return Err(Error::Usage(
                "--resume continues a stored experiment, and --store :memory: keeps none; leave \
                 one of them out"
                    .into(),
            ));
        }
        self.files.check(common.force)
    }

    /// Returns whether the samples outlive the command.
    pub(crate) fn is_kept(&self) -> bool {
        self.store.store.as_deref() != Some(Path::new(":memory:"))
    }
}

/// Settings of a matrix on this machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On this machine")]
#[serde(default)]
pub(crate) struct NativeSettings {
    /// Seconds to measure or to record
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u32>,
    /// Stop after this many seconds, and report what was measured
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    pub time_limit: Option<Limit>,
    /// Measured part of a slice, in microseconds; found for each cell by default.
    #[arg(skip)]
    pub slice_us: Option<u32>,
    /// Code layout of all locks; drawn for each slice by default.
    #[arg(skip)]
    pub layout: Option<usize>,
    /// CPUs to use, in this order [default: cores, siblings, other nodes]
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub pin: Option<Cpus>,
    /// Processes that share memory run, instead of threads.
    #[arg(skip)]
    pub processes: bool,
}

/// Settings of runs on a simulated machine.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[command(next_help_heading = "On a modelled machine")]
#[serde(default)]
pub(crate) struct ModelledSettings {
    /// Simulate a modelled machine: a name of `locklab machine list`, or a file
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    /// CPUs of the virtual machine, on a modelled machine
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses.
    #[arg(skip)]
    pub physical: Option<usize>,
    /// CPUs that simulated threads get: compact, spread, numbered or random.
    #[arg(skip)]
    #[schemars(with = "Option<String>")]
    pub placement: Option<Placement>,
    /// Acquisitions of a simulated run, all threads together; as many as its precision
    /// requires by default.
    #[arg(skip)]
    pub acquisitions: Option<u64>,
    /// Each simulated thread does so many operations and ends, as programs of fixed work do;
    /// the rate covers the time until the last thread ends.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
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
            None => refuse(
                &Self {
                    on: None,
                    ..self.clone()
                },
                NOT_MODELLED,
            )?,
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
