//! `locklab matrix`: its arguments, and the choice of this machine or a
//! modelled one.

mod native;
pub(crate) mod settings;
mod simulated;

use crate::arguments::locks::check_shared;
use crate::arguments::{Common, ComparingArgs};
use crate::comparison::Comparison;
use crate::own;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::file;
use locklab_lab::settings::{DesignSettings, over};
use settings::MatrixSettings;
use std::path::Path;

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

/// Returns the settings of an experiment file; the design of the command line takes
/// precedence.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid.
pub(super) fn settings(
    path: &Path,
    design: &DesignSettings,
    aa: bool,
) -> Result<MatrixSettings, Error> {
    let mut settings: MatrixSettings = file::settings(path)?;
    settings.design = over(design, &settings.design)?;
    if settings.experiment.is_none() && !aa {
        return Err(Error::Usage(format!(
            "{} has no experiment, the lock that is compared with {}; name one, or give --aa",
            path.display(),
            settings.baseline
        )));
    }
    Ok(settings)
}

/// Returns the comparison of two locks, measured or simulated.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or a setting is wrong or does not
/// apply, [`Error::Failed`] if the machine fails.
pub fn comparison<'a>(
    settings: &MatrixSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    args.check()?;
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
        Some(machine) => simulated::comparison(settings, args, common, machine),
        None => native::comparison(settings, args, common),
    }
}
