//! `locklab rank`: any number of locks in complete blocks, here or on a
//! modelled machine.

mod locks;
mod needs;
mod simulated;

pub use needs::Need;

use super::matrix::Threads;
use crate::cli::{Common, OwnLockArgs};
use crate::comparing::ComparingArgs;
use crate::own;
use clap::Args;
use locklab_host::error::Error;
use locklab_lab::list::Numbers;
use locklab_lab::settings::DesignSettings;
use std::process::ExitCode;

/// `locklab rank`
///
/// Without names it ranks every lock that does what is needed.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Locks: names, C or C++ files, locks of a kernel (kernel:qspinlock)
    #[arg(value_name = "LOCK")]
    pub locks: Vec<String>,
    /// What every lock must be able to do: try, timeout, fifo, recursive,
    /// shared-memory, no-context, bytes<=N
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub needs: Vec<Need>,
    /// The lock that is in use today: the report says whether to keep it
    #[arg(long, value_name = "LOCK")]
    pub against: Option<String>,
    /// Numbers of threads, such as 1,2,4..64 [default: as in a matrix]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section [default: 1]
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Numbers>,
    /// Lengths of the non-critical section [default: 32]
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Numbers>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub design: DesignSettings,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its option has its own")]
    pub own: OwnLockArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub comparing: ComparingArgs,
    /// Simulate on a modelled machine: a name of `locklab machine list`, or a
    /// file
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    /// Virtual CPUs of a simulated virtual machine
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses
    #[arg(long, value_name = "N")]
    pub physical: Option<usize>,
}

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
    let Some(machine) = args.on.as_deref().filter(|machine| *machine != "native") else {
        return Err(Error::Usage(
            "this version ranks on modelled machines; say which, with --on MACHINE".into(),
        ));
    };
    let locks = args.locks.iter().chain(&args.against);
    own::register(locks.map(String::as_str), &args.own, false)?;
    simulated::run(args, common, machine)
}
