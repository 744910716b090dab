//! `locklab kernel ...`: what it takes.

use super::kvm::Look;
use super::workload::Workload;
use crate::cli::FailOn;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `locklab kernel`.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: KernelCommand,
}

/// What to do with kernels.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Build both kernels of a file, boot them, and say what differs
    Compare(CompareArgs),
    /// Build the kernels of a file, and nothing else
    Build(FileArgs),
    /// Boot a kernel that exists, with one workload
    Boot(BootArgs),
    /// At which call sites a function was inlined, in each build of a file
    Inlined(InlinedArgs),
    /// For `git bisect run`: 0 not worse, 1 worse, 125 cannot be tested
    Bisect(CompareArgs),
}

/// Where things are kept.
#[derive(Debug, Args)]
pub struct CacheArgs {
    /// Folder of sources, builds and samples [default: the user's cache]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// A file of an experiment.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The experiment, as experiments/inline-unlock.toml
    pub file: PathBuf,
    /// Source of both kernels instead of the file's: debian:6.1, a folder, or
    /// git:FOLDER#REVISION
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Configuration instead of the file's: workloads, defconfig, or a file
    #[arg(long, value_name = "CONFIG")]
    pub config: Option<String>,
    /// Only the variants of these names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub variant: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub cache: CacheArgs,
}

/// How two kernels are run.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Only these of a kernel report's workloads
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<Workload>,
    /// Link orders, each with a seed of its own; a verdict takes 8 at least
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub layouts: u64,
    /// Units of work in the measured part [default: the file's]
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// CPUs of a guest; more than one take KVM
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub vcpus: u64,
    /// Longest boot of a kernel, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub time_limit: u64,
    /// Do not look for KVM; counts by the model
    #[arg(long)]
    pub tcg: bool,
    /// Probe KVM again, whatever was found since the machine was started
    #[arg(long, conflicts_with = "tcg")]
    pub probe: bool,
}

impl RunsArgs {
    pub(crate) fn look(&self) -> Look {
        Look {
            tcg: self.tcg,
            again: self.probe,
        }
    }
}

/// `locklab kernel compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub file: FileArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub runs: RunsArgs,
    /// Exit with 3 if a workload is worse
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
}

/// `locklab kernel boot`.
#[derive(Debug, Args)]
pub struct BootArgs {
    /// bzImage, or vmlinux with a PVH entry
    pub image: PathBuf,
    /// Its modules, as /lib/modules/VERSION
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
    /// What runs inside
    #[arg(long, value_enum, default_value_t = Workload::Fstat)]
    pub workload: Workload,
    /// Units of work in the measured part
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// Processes, where the workload has several
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub processes: u64,
    /// CPUs of the guest; more than one take KVM
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub vcpus: u64,
    /// Added to the kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub cmdline: String,
    /// Longest boot, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub time_limit: u64,
    /// Do not look for KVM; counts by the model
    #[arg(long)]
    pub tcg: bool,
    /// Probe KVM again, whatever was found since the machine was started
    #[arg(long, conflicts_with = "tcg")]
    pub probe: bool,
    /// Boot without the plugin too, and say how much it slows down
    #[arg(long)]
    pub slowdown: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub cache: CacheArgs,
}

/// `locklab kernel inlined`.
#[derive(Debug, Args)]
pub struct InlinedArgs {
    /// The function, as finish_task_switch
    pub function: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub file: FileArgs,
}
