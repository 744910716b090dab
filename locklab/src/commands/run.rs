//! `locklab run`: an unmodified program on another lock.
//!
//! The program's streams and exit status are passed through; messages of
//! Locklab go to standard error.

use crate::arguments::Common;
use crate::output::{FileFormat, check_writable, print, write_file};
use clap::Args;
use locklab_host::error::Error;
use locklab_preload_run::{Program, Wait};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// `locklab run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A lock of 'locklab locks', 'pthread' (glibc's own), or a name of LiTL's
    #[arg(long, value_name = "NAME")]
    pub lock: String,
    /// The lock of rwlocks, or 'pthread' [default: NAME if it has readers, or
    /// else 'pthread']
    #[arg(long, value_name = "NAME")]
    pub rwlock: Option<String>,
    /// How a waiter waits [default: barging]
    ///
    /// With more threads than CPUs, first-come locks form convoys under
    /// spin-then-park, and almost stop under spin, because a waiter that only
    /// spins keeps a CPU from the holder.
    #[arg(long, value_enum)]
    pub wait: Option<Wait>,
    /// Time each acquisition, and print who waits and who holds, by place in the
    /// program (with '--lock pthread': for glibc's own mutexes)
    #[arg(long)]
    pub profile: bool,
    /// Also write the report as one HTML file
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub html: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// Runs `locklab run`.
///
/// # Errors
/// If there is no such lock, the interposer is not found, or the program does
/// not start.
pub fn run(args: &RunArgs, common: &Common) -> Result<ExitCode, Error> {
    let ready = Program {
        lock: args.lock.clone(),
        rwlock: args.rwlock.clone(),
        wait: args.wait,
        profile: args.profile,
        command: args.command.clone(),
    }
    .ready()?;
    if let Some(file) = &args.html {
        check_writable(file, FileFormat::Html, common.force)?;
    }
    if common.dry_run {
        return print(&format!("{}\n", ready.line()));
    }
    // Standard output is reserved for the JSON document.
    let ended = ready.run(common.json)?;
    if let Some((file, page)) = args.html.as_ref().zip(ended.html()) {
        write_file(file, &page)?;
    }
    if common.json {
        print(&format!("{:#}\n", ended.json()))?;
    } else {
        // A message that cannot be written is not a failure.
        let _ = std::io::stderr()
            .lock()
            .write_all(ended.text(common.quiet).as_bytes());
    }
    Ok(ExitCode::from(ended.status))
}
