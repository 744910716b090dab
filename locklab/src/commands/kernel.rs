//! `locklab kernel`: its subcommands, and what carries out each.

mod arguments;
mod bisect;
mod boot;
mod builds;
mod compare;

pub use arguments::{BisectArgs, CacheArgs, FileArgs, KernelOptions, KernelRequest, KernelsArgs};

use crate::arguments::{Common, ComparingArgs};
use crate::comparison::{Options, carry_out};
use clap::{Args, Subcommand};
use locklab_host::error::Error;
use locklab_host::interrupt;
use locklab_kernel::cache::Cache;
use locklab_kernel::reports;
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
    /// Build the kernels of a file, and nothing else
    Build(FileArgs),
    /// Boot an existing kernel with one workload
    Boot(boot::BootArgs),
    /// List the call sites at which a function was inlined, in each build of a file
    Inlined(builds::InlinedArgs),
    /// For `git bisect run`: 0 not worse, 1 worse, 125 cannot be tested
    Bisect(BisectArgs),
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
        KernelCommand::Bisect(args) => {
            let cache = cache(&args.kernels.kernels.cache)?;
            let options = Options::new(&args.comparing, common, &interrupt);
            let asked = KernelRequest {
                file: &args.file,
                workload: &args.workload,
                design: &args.design,
                kernels: &args.kernels,
                set: &args.comparing.set,
            };
            bisect::bisect(&asked, &cache, options)
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

/// Compares the kernels of a file, or of a report that ships with Locklab.
///
/// # Errors
/// [`Error::Usage`] if the file or an option is wrong, [`Error::Failed`] if a
/// tool is missing or nothing could be built or booted, [`Error::Interrupted`]
/// after Ctrl-C.
pub fn compare(
    asked: &KernelRequest<'_>,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    let interrupt = interrupt::listen()?;
    let cache = cache(&asked.kernels.kernels.cache, common, &interrupt)?;
    let report = asked.file.to_str().filter(|name| is_report(name));
    let unpacked = report
        .map(|name| reports::unpack(&cache, name))
        .transpose()?;
    let asked = KernelRequest {
        file: unpacked.as_deref().unwrap_or(asked.file),
        ..*asked
    };
    let options = Options::new(comparing, common, &interrupt);
    carry_out(compare::planned(&asked, &cache, options)?, common)
}

/// Returns whether a report about kernels that ships with Locklab has this name.
pub fn is_report(name: &str) -> bool {
    reports::names().any(|report| report == name)
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
