//! Arguments of `locklab reproduce`.

use crate::arguments::ComparingArgs;
use crate::commands::kernel::CacheArgs;
use clap::Args;
use locklab_kernel::settings::GuestSettings;
use locklab_kernel::workload::Workload;
use locklab_lab::settings::DesignSettings;

/// `locklab reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Reports. Simulated: virt-backoff, mplock-anderson, qspinlock-xfs. With
    /// kernels that are built and booted: inline-unlock, finish-task-switch.
    /// Or the path of a reference file of your own: figures with their machine,
    /// rule and loop [default: the simulated reports]
    pub names: Vec<String>,
    /// Simulate every published experiment in reference/, and print their scores
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Simulate those on locks that sleep and on more threads than CPUs, and print their
    /// score
    #[arg(long, conflicts_with_all = ["names", "all"])]
    pub sleeping: bool,
    /// Variants of a kernel report to run [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub variant: Vec<String>,
    /// Workloads of a kernel report to run [default: all]
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<Workload>,
    #[command(flatten)]
    pub(crate) design: DesignSettings,
    #[command(flatten)]
    pub(crate) guests: GuestSettings,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}
