//! Arguments that commands share which build and boot kernels.

use crate::arguments::ComparingArgs;
use clap::Args;
use locklab_host::error::Error;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::settings::{GuestSettings, Target};
use locklab_kernel::typed;
use locklab_kernel::workload::Workload;
use locklab_lab::settings::DesignSettings;
use std::path::PathBuf;

/// The cache of kernel sources and builds.
#[derive(Clone, Debug, Default, Args)]
pub struct CacheArgs {
    /// Folder of kernel sources and builds [default: the user's cache]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// An experiment file.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The experiment file, such as experiments/inline-unlock.toml
    pub file: PathBuf,
    #[command(flatten)]
    pub(crate) kernels: KernelsArgs,
}

/// The kernels of a file to use, and their cache.
#[derive(Clone, Debug, Default, Args)]
pub struct KernelsArgs {
    /// Source of both kernels instead of the file's: debian:6.1, a folder, or
    /// git:FOLDER#REVISION
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Configuration instead of the file's: workloads, defconfig, or a file
    #[arg(long, value_name = "CONFIG")]
    pub config: Option<String>,
    /// Take only the variants of these names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub variant: Vec<String>,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// Options of a comparison of two kernels.
#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Run the kernels on a test machine, as ssh:root@testhost, instead of in QEMU
    #[arg(long, value_name = "ssh:HOST")]
    pub on: Option<Target>,
    /// Serial number of the test machine's disk that fs-mark overwrites, as scratch_disk in
    /// the file's table "test_machine": what is on that disk is lost
    #[arg(long, value_name = "SERIAL")]
    pub scratch_disk: Option<String>,
    /// Take only these of the file's workloads
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<Workload>,
    #[command(flatten)]
    pub(crate) design: DesignSettings,
    #[command(flatten)]
    pub(crate) guests: GuestSettings,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

impl FileArgs {
    /// Returns the experiment of the file, with the options of the command line
    /// applied.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be read or is invalid, or has no
    /// such variant.
    pub(super) fn experiment(&self) -> Result<Experiment, Error> {
        let args = &self.kernels;
        let mut experiment = Experiment::read(&self.file)?;
        if let Some(source) = &args.source {
            experiment.kernel.source = Some(typed::source(source));
        }
        if let Some(config) = &args.config {
            experiment.kernel.config = Some(typed::config(config));
        }
        experiment.keep_variants(&args.variant)?;
        Ok(experiment)
    }
}
