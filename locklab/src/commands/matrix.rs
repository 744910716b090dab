//! `locklab matrix`: its arguments, and the choice of this machine or a
//! modelled one.

mod native;
mod settings;
mod simulated;

pub(super) use settings::{
    MatrixSettings, ModelledSettings, NativeSettings, Threads, check_shared, distinct,
};
pub(super) use simulated::workers;

use crate::cli::Common;
use crate::comparing::ComparingArgs;
use crate::own;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::file::{self, FileKind};
use locklab_lab::settings::{DesignSettings, over};
use std::path::Path;
use std::process::ExitCode;

/// The kind of experiment files of a matrix.
pub const FILE_KIND: FileKind = FileKind {
    word: locklab_lab::matrix::KIND,
    formerly: None,
    settings: &["threads"],
};

/// `locklab matrix`.
///
/// Without options it takes about a minute.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub settings: MatrixSettings,
    #[command(flatten)]
    pub(crate) comparing: ComparingArgs,
}

/// Runs `locklab matrix`.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or an option is wrong, [`Error::Failed`]
/// if the machine or the store fails, [`Error::Interrupted`] after Ctrl-C.
pub fn run(args: &MatrixArgs, common: &Common) -> Result<ExitCode, Error> {
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
    let mut settings: MatrixSettings = file::settings(path)?;
    settings.design = over(design, &settings.design)?;
    if settings.experiment.is_none() && !comparing.aa {
        return Err(Error::Usage(format!(
            "{} has no experiment, the lock that is compared with {}; name one, or give --aa",
            path.display(),
            settings.baseline
        )));
    }
    run_settings(&settings, comparing, common)
}

/// Measures or simulates a matrix.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or a setting is wrong or does not
/// apply, [`Error::Failed`] if the machine or the store fails,
/// [`Error::Interrupted`] after Ctrl-C. Samples that were measured are stored.
fn run_settings(
    settings: &MatrixSettings,
    comparing: &ComparingArgs,
    common: &Common,
) -> Result<ExitCode, Error> {
    comparing.check_resume()?;
    let machine = settings.machine()?;
    let locks = [&settings.baseline]
        .into_iter()
        .chain(&settings.experiment)
        .map(String::as_str);
    own::register(locks.clone(), &settings.own, machine.is_none())?;
    let mix = settings.turns.mix();
    if mix.reads > 0 {
        let subjects = locks.map(|name| own::subject(name, &settings.own));
        let subjects: Vec<_> = subjects.collect::<Result<_, _>>()?;
        check_shared(&mix, subjects.iter())?;
    }
    match machine {
        Some(machine) => simulated::run(settings, comparing, common, machine),
        None => native::run(settings, comparing, common),
    }
}
