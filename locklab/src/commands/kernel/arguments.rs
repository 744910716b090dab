//! Arguments that commands share which build and boot kernels.

use crate::arguments::ComparingArgs;
use clap::{Args, ValueEnum as _};
use locklab_harness::settings::{DesignSettings, refuse};
use locklab_host::error::Error;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::settings::{GuestSettings, Target};
use locklab_kernel::workload::Workload;
use std::path::{Path, PathBuf};

/// The cache of kernel sources and builds.
#[derive(Clone, Debug, Default, Args)]
pub struct CacheArgs {
    /// Folder of kernel sources and builds [default: the user's cache]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub cache: Option<PathBuf>,
}

/// An experiment file.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The experiment file, such as experiments/inline-unlock.toml
    pub file: PathBuf,
    /// Set any key of an experiment file, such as kernel.source=debian:6.1
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub(crate) kernels: KernelsArgs,
}

/// The kernels of a file to use, and their cache.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub struct KernelsArgs {
    /// Take only the variants of these names
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub variant: Vec<String>,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// The heading of options for kernels.
const HEADING: &str = "Kernels";

/// How two kernels are compared.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub struct KernelOptions {
    #[command(flatten)]
    pub(crate) kernels: KernelsArgs,
    /// A test machine for kernels, such as ssh:root@testhost: run them there, instead of in
    /// QEMU
    #[arg(long, value_name = "ssh:HOST", hide_short_help = true)]
    pub host: Option<Target>,
    /// Serial number of the test machine's disk that fs-mark overwrites, as scratch_disk in
    /// the file's table "test_machine": what is on that disk is lost
    #[arg(long, value_name = "SERIAL", hide_short_help = true)]
    pub scratch_disk: Option<String>,
    #[command(flatten)]
    pub(crate) guests: GuestSettings,
}

impl KernelOptions {
    /// Refuses what only kernels have.
    ///
    /// # Errors
    /// [`Error::Usage`] with the first such option, and `why` it is refused.
    pub(crate) fn refuse(&self, why: &str) -> Result<(), Error> {
        for (option, given) in [
            ("--variant", !self.kernels.variant.is_empty()),
            ("--cache", self.kernels.cache.cache.is_some()),
            ("--host", self.host.is_some()),
            ("--scratch-disk", self.scratch_disk.is_some()),
        ] {
            if given {
                return Err(Error::Usage(format!("{option} {why}")));
            }
        }
        refuse(&self.guests, why)
    }
}

/// `locklab kernel bisect`.
#[derive(Debug, Args)]
pub struct BisectArgs {
    /// The experiment file, such as experiments/inline-unlock.toml
    pub file: PathBuf,
    /// Workloads to run, separated by commas [default: the file's]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<String>,
    #[command(flatten)]
    pub(crate) design: DesignSettings,
    #[command(flatten)]
    pub(crate) kernels: KernelOptions,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

/// A comparison of two kernels, as a command line asks for it.
#[derive(Clone, Copy, Debug)]
pub struct KernelRequest<'a> {
    /// The experiment file.
    pub file: &'a Path,
    /// The names of the workloads to run; none for those of the file.
    pub workload: &'a [String],
    /// The design, which takes precedence over the file's.
    pub design: &'a DesignSettings,
    /// Options of kernels.
    pub kernels: &'a KernelOptions,
    /// Settings that take precedence over the file's.
    pub set: &'a [String],
}

impl KernelRequest<'_> {
    /// Returns the workloads to run.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no workload of a name.
    pub(super) fn workloads(&self) -> Result<Vec<Workload>, Error> {
        let named = |name: &String| {
            Workload::from_str(name.trim(), false).map_err(|_| {
                let all = Workload::value_variants()
                    .iter()
                    .map(|workload| workload.name());
                let all: Vec<_> = all.collect();
                Error::Usage(format!(
                    "kernels have no workload '{name}'; there are {}",
                    all.join(", ")
                ))
            })
        };
        self.workload.iter().map(named).collect()
    }

    /// Returns the experiment of the file, with the options of the command line
    /// applied.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be read or is invalid, or has no
    /// such variant.
    pub(super) fn experiment(&self) -> Result<Experiment, Error> {
        let mut experiment = Experiment::read(self.file, self.set)?;
        experiment.keep_variants(&self.kernels.kernels.variant)?;
        Ok(experiment)
    }
}

impl FileArgs {
    /// Returns the experiment of the file, with the options of the command line
    /// applied.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be read or is invalid, or has no
    /// such variant.
    pub(super) fn experiment(&self) -> Result<Experiment, Error> {
        let mut experiment = Experiment::read(&self.file, &self.set)?;
        experiment.keep_variants(&self.kernels.variant)?;
        Ok(experiment)
    }
}
