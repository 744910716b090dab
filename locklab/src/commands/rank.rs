//! `locklab rank`: any number of locks in complete blocks, here or on a
//! modelled machine.

pub(crate) mod arguments;
mod locks;
mod native;
mod needs;
mod preset;
mod replayed;
mod simulated;

pub use arguments::RankArgs;

use crate::arguments::{Common, ComparingArgs};
use crate::comparison::Comparison;
use crate::own;
use arguments::RankSettings;
use locklab_host::error::Error;
use locklab_lab::file;
use locklab_lab::settings::{DesignSettings, over};
use std::path::Path;

/// Returns the settings of an experiment file; the design of the command line takes
/// precedence.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid.
pub(super) fn settings(path: &Path, design: &DesignSettings) -> Result<RankSettings, Error> {
    let mut settings: RankSettings = file::settings(path)?;
    settings.design = over(design, &settings.design)?;
    Ok(settings)
}

/// Returns the comparison of many locks, measured or simulated.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or an option is wrong or does not
/// apply, or fewer than two locks are left, [`Error::Failed`] if the machine
/// fails.
pub fn comparison<'a>(
    settings: &RankSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    args.check()?;
    let settings = &settings.with_preset()?;
    if !args.fail_on.is_empty() && settings.against.is_none() {
        return Err(Error::Usage(
            "--fail-on needs to know what is in use today; give --against LOCK".into(),
        ));
    }
    let machine = settings.modelled.machine(&settings.here)?;
    if settings.trace.is_some() {
        replayed::check(settings, machine)?;
    }
    let locks = settings.locks.iter().chain(&settings.against);
    own::register(locks.map(String::as_str), &settings.own, machine.is_none())?;
    match machine {
        Some(machine) => simulated::comparison(settings, args, common, machine),
        None => native::comparison(settings, args, common),
    }
}
