//! `locklab kernel`: its subcommands, and what carries out each.

mod arguments;
mod bisect;
mod boot;
mod builds;
pub mod compare;

pub use arguments::{CacheArgs, CompareArgs, FileArgs, KernelsArgs};

use crate::arguments::{Common, ComparingArgs};
use crate::comparison::{Options, carry_out};
use clap::{Args, Subcommand};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_kernel::cache::Cache;
use locklab_kernel::settings::GuestSettings;
use locklab_lab::settings::DesignSettings;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// `locklab kernel`.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// The thing to do with kernels.
    #[command(subcommand)]
    pub command: KernelCommand,
}

/// The subcommands of `locklab kernel`.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Build both kernels of a file, boot them, and report what differs
    Compare(CompareArgs),
    /// Build the kernels of a file, and nothing else
    Build(FileArgs),
    /// Boot an existing kernel with one workload
    Boot(boot::BootArgs),
    /// List the call sites at which a function was inlined, in each build of a file
    Inlined(builds::InlinedArgs),
    /// For `git bisect run`: 0 not worse, 1 worse, 125 cannot be tested
    Bisect(CompareArgs),
}

/// Runs `locklab kernel`.
///
/// # Errors
/// The errors of the subcommand: [`Error::Usage`] for a wrong argument or file,
/// [`Error::Failed`] if a tool is missing or a build or boot fails,
/// [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &KernelArgs, common: &Common) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let cache = |args: &CacheArgs| cache(args, common, &interrupt);
    match &args.command {
        KernelCommand::Compare(args) => {
            let cache = cache(&args.file.kernels.cache)?;
            let options = Options::new(&args.comparing, common, &interrupt);
            carry_out(compare::planned(args, &cache, options)?, common)
        }
        KernelCommand::Bisect(args) => {
            let cache = cache(&args.file.kernels.cache)?;
            let options = Options::new(&args.comparing, common, &interrupt);
            bisect::bisect(args, &cache, options)
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

/// Runs an experiment file of kernels; the design of the command line takes
/// precedence.
///
/// # Errors
/// [`Error::Usage`] if the file or an option is wrong, [`Error::Failed`] if a
/// tool is missing or nothing could be built or booted, [`Error::Interrupted`]
/// after Ctrl-C.
pub fn file(
    path: &Path,
    design: &DesignSettings,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let cache = cache(&CacheArgs::default(), common, &interrupt)?;
    let args = CompareArgs {
        file: FileArgs {
            file: path.to_owned(),
            kernels: KernelsArgs::default(),
        },
        on: None,
        scratch_disk: None,
        workload: Vec::new(),
        design: design.clone(),
        guests: GuestSettings::default(),
        comparing: comparing.clone(),
    };
    let options = Options::new(comparing, common, &interrupt);
    carry_out(compare::planned(&args, &cache, options)?, common)
}

/// Returns the cache that the arguments name, or the default one.
///
/// # Errors
/// [`Error::Usage`] if there is no home folder for the default one.
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
