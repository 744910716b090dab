//! `locklab doctor`: what this machine can measure, and the remedy for the
//! rest.

use crate::cli::{Common, StoreArgs};
use crate::output::{print, store_path};
use clap::Args;
use locklab_doctor::{examine, json, text};
use locklab_host::environment::Environment;
use locklab_host::error::Error;
use std::process::ExitCode;

/// `locklab doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "its option has its own")]
    pub store: StoreArgs,
}

/// Examines the machine, and prints the findings.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &DoctorArgs, common: &Common) -> Result<ExitCode, Error> {
    if common.dry_run {
        return print(
            "would look at this machine's settings, try its counters, time its CPUs for a second \
             and look for programs; nothing would be changed\n",
        );
    }
    let machine = Environment::read().name();
    let checks = examine(store_path(&args.store).map_err(|why| why.to_string()));
    print(&if common.json {
        format!("{:#}\n", json(&checks, &machine))
    } else {
        text(&checks, &machine)
    })
}
