//! `locklab rank`: any number of locks in complete blocks, here or on a
//! modelled machine.

mod arguments;
mod locks;
mod native;
mod needs;
mod replayed;
mod simulated;

pub use arguments::{RankArgs, RankSettings};
pub(crate) use replayed::MOST_LOCKS;

use crate::cli::Common;
use crate::comparing::ComparingArgs;
use crate::own;
use locklab_host::error::Error;
use locklab_lab::file::{self, FileKind};
use locklab_lab::settings::{DesignSettings, over};
use std::path::Path;
use std::process::ExitCode;

/// The kind of experiment files of a ranking.
pub const FILE_KIND: FileKind = FileKind {
    word: locklab_lab::ranking::KIND,
    formerly: None,
    settings: &["candidates"],
};

/// Runs `locklab rank`.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or an option is wrong or does not
/// apply, or fewer than two locks are left, [`Error::Failed`] if the machine or
/// the store fails, [`Error::Interrupted`] after Ctrl-C. Samples that were
/// measured are stored.
pub fn run(args: &RankArgs, common: &Common) -> Result<ExitCode, Error> {
    run_settings(&args.settings, &args.comparing, common)
}

/// Runs an experiment file; the design of the command line takes precedence.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid; otherwise those of
/// [`run`].
pub fn file(
    path: &Path,
    design: &DesignSettings,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    let mut settings: RankSettings = file::settings(path)?;
    settings.design = over(design, &settings.design)?;
    run_settings(&settings, comparing, common)
}

fn run_settings(
    args: &RankSettings,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    if !comparing.fail_on.is_empty() && args.against.is_none() {
        return Err(Error::Usage(
            "--fail-on needs to know what is in use today; give --against LOCK".into(),
        ));
    }
    let machine = args.modelled.machine(&args.here)?;
    if args.trace.is_some() {
        replayed::check(args, machine)?;
    }
    let locks = args.locks.iter().chain(&args.against);
    own::register(locks.map(String::as_str), &args.own, machine.is_none())?;
    match machine {
        Some(machine) => simulated::run(args, comparing, common, machine),
        None => native::run(args, comparing, common),
    }
}
