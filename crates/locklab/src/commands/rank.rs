//! `locklab rank`: any number of locks in complete blocks, here or on a
//! modelled machine.

mod arguments;
mod locks;
mod native;
mod needs;
mod simulated;

pub use arguments::RankArgs;

use crate::cli::Common;
use crate::own;
use locklab_host::error::Error;
use locklab_lab::settings::refuse;
use std::process::ExitCode;

/// Runs `locklab rank`.
///
/// # Errors
/// [`Error::Usage`] if a lock, a machine or an option is wrong or does not
/// apply, or fewer than two locks are left, [`Error::Failed`] if the machine or
/// the store fails, [`Error::Interrupted`] after Ctrl-C. Samples that were
/// measured are stored.
pub fn run(args: &RankArgs, common: &Common) -> Result<ExitCode, Error> {
    if !args.comparing.fail_on.is_empty() && args.against.is_none() {
        return Err(Error::Usage(
            "--fail-on needs to know what is in use today; give --against LOCK".into(),
        ));
    }
    let machine = args.on.as_deref().filter(|machine| *machine != "native");
    match machine {
        Some(_) => refuse(&args.here, "is for this machine; leave it out with --on"),
        None => refuse(
            &args.modelled,
            "is for simulated machines; say which, with --on MACHINE",
        ),
    }
    .map_err(Error::Usage)?;
    let locks = args.locks.iter().chain(&args.against);
    own::register(locks.map(String::as_str), &args.own, machine.is_none())?;
    match machine {
        Some(machine) => simulated::run(args, common, machine),
        None => native::run(args, common),
    }
}
