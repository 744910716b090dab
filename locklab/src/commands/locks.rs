//! `locklab locks`: every lock, its cost and promises, and how they were
//! verified.

use crate::arguments::{Common, UserLockArgs};
use crate::lock_table::{row, table};
use crate::output::{answer, print};
use crate::own;
use clap::Args;
use locklab_host::error::Error;
use locklab_native::subject::{self, Subject};
use locklab_user_lock::registered;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab locks`
#[derive(Debug, Args)]
pub struct LocksArgs {
    /// Show only these: names, C or C++ files, locks of a kernel
    /// (kernel:qspinlock)
    #[arg(value_name = "LOCK")]
    pub names: Vec<String>,
    /// The file to write: a lock of your own to start from, in C; it must not exist yet
    #[arg(long, short, value_name = "FILE", conflicts_with = "names")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) own: UserLockArgs,
}

/// Prints the table of locks.
///
/// # Errors
/// [`Error::Usage`] if there is no lock of that name, [`Error::Failed`] if
/// standard output cannot be written.
pub fn run(args: &LocksArgs, common: &Common) -> Result<ExitCode, Error> {
    if let Some(file) = &args.output {
        return own::new_lock(file, common).and_then(|text| print(&text));
    }
    let mut ours = true;
    let asked: Vec<Subject> = if args.names.is_empty() {
        subject::all().into_iter().chain(registered()).collect()
    } else {
        args.names
            .iter()
            .map(|name| match own::named(name, &args.own, &[])? {
                Some(lock) => {
                    ours = false;
                    Ok(lock.subject(name))
                }
                None => Ok(subject::find(name)?),
            })
            .collect::<Result<_, Error>>()?
    };
    own::refuse_for_ours("--cflags", ours && args.own.cflags.is_some())?;
    let rows = || asked.iter().map(row).collect::<Vec<Value>>();
    let json = || json!({ "schema": 1, "locks": rows() });
    answer(common.json, json, || table(&asked))
}
