//! The parts behind the `locklab` command.
//!
//! Data flows one way: subject and workload → instrument → samples (store)
//! → judge → verdicts → report. An instrument knows nothing of statistics, a
//! report nothing of how a figure was made.

pub mod cli;
pub mod environment;
pub mod error;
pub mod list;
pub mod matrix;
pub mod native;
pub mod report;
pub mod verdicts;

use cli::{Cli, Command};
use error::Error;
use std::process::ExitCode;

/// Runs one command line.
///
/// # Errors
/// One sentence, and the exit code that goes with it.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    match cli.command {
        Command::Matrix(_) => Err(Error::Failed("not wired yet".into())),
    }
}
