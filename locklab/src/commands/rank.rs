//! `locklab rank`: any number of locks in complete blocks, here or on a
//! modelled machine.

pub(crate) mod arguments;
mod locks;
mod native;
mod needs;
mod replayed;
mod simulated;

pub use arguments::RankArgs;

use crate::arguments::{Common, ComparingArgs};
use crate::comparison::Comparison;
use crate::own;
use arguments::RankSettings;
use locklab_harness::file;
use locklab_harness::settings::{DesignSettings, over};
use locklab_host::error::Error;
use std::path::Path;

/// Returns the settings of an experiment file; the design of the command line takes
/// precedence.
///
/// # Errors
/// [`Error::Usage`] if the file cannot be read or is invalid.
pub(super) fn settings(
    path: &Path,
    design: &DesignSettings,
    set: &[String],
) -> Result<RankSettings, Error> {
    let mut settings: RankSettings = file::settings(path, set)?;
    settings.locks.design = over(design, &settings.locks.design)?;
    Ok(settings)
}

/// Returns the comparison that the command line asks for.
///
/// # Errors
/// The errors of `comparison`.
pub fn asked<'a>(args: &'a RankArgs, common: &'a Common) -> Result<Comparison<'a>, Error> {
    comparison(args.settings()?, &args.comparing, common)
}

/// Returns the comparison of many locks, measured or simulated.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or an option is wrong or does not
/// apply, or fewer than two locks are left, [`Error::Failed`] if the machine
/// fails.
pub(super) fn comparison<'a>(
    mut settings: RankSettings,
    args: &'a ComparingArgs,
    common: &'a Common,
) -> Result<Comparison<'a>, Error> {
    args.check(common)?;
    let (wanted, locks) = (&settings.wanted, &settings.locks);
    if locks.workload.is_some() {
        return Err(Error::Usage(
            "a ranking has one workload, units; leave the workload out, or compare two locks by \
             locklab matrix"
                .into(),
        ));
    }
    settings.locks = locks.with_preset(wanted.replay.is_some())?;
    let (wanted, locks) = (&settings.wanted, &settings.locks);
    if !args.gate.fail_on.is_empty() && wanted.against.is_none() {
        return Err(Error::Usage(
            "--fail-on needs to know what is in use today; give --against LOCK".into(),
        ));
    }
    let machine = locks.modelled.machine(&locks.here)?;
    if wanted.replay.is_some() {
        replayed::check(&settings, machine)?;
    }
    let names = settings.names.iter().chain(&wanted.against);
    own::register(names.map(String::as_str), &locks.own, machine.is_none())?;
    match machine {
        Some(machine) => simulated::comparison(&settings, args, common, machine),
        None => native::comparison(&settings, args, common),
    }
}
