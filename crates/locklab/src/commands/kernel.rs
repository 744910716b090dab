//! `locklab kernel`: its arguments, and the way to what each of them does.

mod boot;
mod builds;
pub mod compare;

use crate::cli::Common;
use crate::comparing::ComparingArgs;
use clap::{Args, Subcommand};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_kernel::cache::Cache;
use locklab_kernel::kvm::Look;
use locklab_kernel::recipe::Experiment;
use locklab_kernel::workload::Workload;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

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
    Boot(boot::BootArgs),
    /// At which call sites a function was inlined, in each build of a file
    Inlined(builds::InlinedArgs),
    /// For `git bisect run`: 0 not worse, 1 worse, 125 cannot be tested
    Bisect(CompareArgs),
}

/// Where things are kept.
#[derive(Clone, Debug, Default, Args)]
pub struct CacheArgs {
    /// Folder of kernel sources and builds [default: the user's cache]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// A file of an experiment.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The experiment, as experiments/inline-unlock.toml
    pub file: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub kernels: KernelsArgs,
}

/// Which kernels of a file, and where they are kept.
#[derive(Clone, Debug, Default, Args)]
pub struct KernelsArgs {
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

/// How guests are run.
#[derive(Clone, Debug, Args)]
pub struct GuestArgs {
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

impl Default for GuestArgs {
    fn default() -> Self {
        Self {
            operations: None,
            vcpus: 1,
            time_limit: 900,
            tcg: false,
            probe: false,
        }
    }
}

impl GuestArgs {
    fn look(&self) -> Look {
        Look {
            tcg: self.tcg,
            again: self.probe,
        }
    }
}

/// How two kernels are compared.
#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub file: FileArgs,
    /// Only these of the file's workloads
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub workload: Vec<Workload>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub guests: GuestArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
}

/// Runs it.
///
/// # Errors
/// One sentence.
pub fn run(args: &KernelArgs, common: &Common) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let cache = |args: &CacheArgs| cache(args, common, &interrupt);
    match &args.command {
        KernelCommand::Compare(args) => {
            let cache = cache(&args.file.kernels.cache)?;
            compare::compare(args, common, &cache)
        }
        KernelCommand::Bisect(args) => {
            let cache = cache(&args.file.kernels.cache)?;
            compare::bisect(args, common, &cache)
        }
        KernelCommand::Build(args) => {
            builds::build_only(args, common, &cache(&args.kernels.cache)?)
        }
        KernelCommand::Inlined(args) => {
            let cache = cache(&args.file.kernels.cache)?;
            builds::inlined(args, common, &cache)
        }
        KernelCommand::Boot(args) => boot::boot(args, common, &cache(&args.cache)?),
    }
}

/// Runs an experiment file of kernels, with the settings of the file.
///
/// # Errors
/// One sentence.
pub fn file(path: &Path, comparing: &ComparingArgs, common: &Common) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let cache = cache(&CacheArgs::default(), common, &interrupt)?;
    let args = CompareArgs {
        file: FileArgs {
            file: path.to_owned(),
            kernels: KernelsArgs::default(),
        },
        workload: Vec::new(),
        guests: GuestArgs::default(),
        comparing: comparing.clone(),
    };
    compare::compare(&args, common, &cache)
}

/// The cache that the arguments name, or the default one.
///
/// # Errors
/// There is no home folder to keep one in.
pub fn cache<'a>(
    args: &CacheArgs,
    common: &Common,
    interrupt: &'a AtomicBool,
) -> Result<Cache<'a>, Error> {
    Ok(Cache {
        root: match &args.cache {
            Some(path) => std::path::absolute(path)
                .map_err(|e| Error::Usage(format!("{}: {e}", path.display())))?,
            None => Cache::default_root()?,
        },
        interrupt,
        quiet: common.quiet,
    })
}

/// The experiment of a file, with what the command line says otherwise.
fn experiment(file: &Path, args: &KernelsArgs) -> Result<Experiment, Error> {
    let mut experiment = Experiment::read(file)?;
    if let Some(source) = &args.source {
        experiment.kernel.source = Some(from_here(source));
    }
    if let Some(config) = &args.config {
        let ready = matches!(config.as_str(), "workloads" | "defconfig");
        experiment.kernel.config = Some(if ready {
            config.clone()
        } else {
            absolute(config)
        });
    }
    experiment.keep_variants(&args.variant)?;
    Ok(experiment)
}

/// A source as typed: paths in a file start at the file, those on a command
/// line where it was typed.
fn from_here(source: &str) -> String {
    if source.starts_with("debian:") {
        return source.into();
    }
    let git = source.strip_prefix("git:");
    match git.map(|rest| rest.rsplit_once('#')) {
        Some(Some((folder, revision))) => format!("git:{}#{revision}", absolute(folder)),
        Some(None) => source.into(),
        None => absolute(source),
    }
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.into(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_on_a_command_line_start_where_it_was_typed() {
        assert_eq!(from_here("debian:6.1"), "debian:6.1");
        assert_eq!(from_here("git:/a#v6"), "git:/a#v6");
        assert!(from_here("linux").starts_with('/'));
        assert!(from_here("git:linux#v6").starts_with("git:/"));
    }
}
