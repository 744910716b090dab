//! The `locklab` command.
//!
//! Data flows one way: subject and workload → backend → samples (store)
//! → judge → verdicts → report. A backend knows nothing of statistics, a
//! report nothing of how a figure was made.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

pub mod arguments;
pub mod bring;
pub mod cli;
pub mod commands;
pub mod comparison;
#[cfg(test)]
#[path = "../../crates/measure/harness/tests/common/golden.rs"]
mod golden;
mod kinds;
mod lock_table;
pub mod output;
mod own;

use cli::{Cli, Command, Parsed};
use commands::{matrix, rank};
use comparison::carry_out;
use locklab_host::error::Error;
use locklab_host::start;
use std::io::Write as _;
use std::process::ExitCode;

/// Runs the command line of this process, and returns its exit code. A failure is
/// one sentence on standard error.
pub fn main() -> ExitCode {
    start::explain_missing_threads();
    let done = start::check_stack().and_then(|()| parse_and_run());
    done.unwrap_or_else(|error| {
        // A closed standard error is no reason to panic.
        let _ = writeln!(std::io::stderr(), "locklab: {error}");
        error.exit_code()
    })
}

/// Parses the command line and runs it, in a function of its own so that the frame
/// of [`main`] fits into a stack that is too small.
#[inline(never)]
fn parse_and_run() -> Result<ExitCode, Error> {
    match cli::parse()? {
        Parsed::Command(cli) => {
            // With these two the output belongs to the program.
            if cli.common.json || !matches!(cli.command, Command::Run(_) | Command::Record(_)) {
                start::check_output()?;
            }
            run(*cli)
        }
        Parsed::Help(text) => {
            start::check_output()?;
            output::print(&text)
        }
    }
}

/// Runs one command line: a comparison is planned from its arguments, run, judged
/// and shown ([`carry_out`]); every other command has its own path.
///
/// # Errors
/// The error of the command: one sentence, with the exit code that belongs to
/// it.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    let common = &cli.common;
    let outcome = match &cli.command {
        Command::Matrix(args) => {
            matrix::asked(args, common).and_then(|comparison| carry_out(comparison, common))
        }
        Command::Rank(args) => {
            rank::asked(args, common).and_then(|comparison| carry_out(comparison, common))
        }
        Command::Compare(args) => commands::compare::run(args, common),
        Command::Kernel(args) => commands::kernel::run(args, common),
        Command::Reproduce(args) => commands::reproduce::run(args, common),
        Command::Sweep { .. } => Err(Error::Usage(locklab_harness::file::SWEEP.into())),
        Command::Results(args) => commands::results::run(args, common),
        Command::Locks(args) => commands::locks::run(args, common),
        Command::Verify(args) => commands::verify::run(args, common),
        Command::Doctor(args) => commands::doctor::run(args, common),
        Command::Machine(args) => commands::machine::run(args, common),
        Command::Run(args) => commands::run::run(args, common),
        Command::Record(args) => commands::record::record(args, common),
        Command::Advise(args) => commands::advise::run(args, common),
        Command::Judge(args) => commands::judge::run(args, common),
        Command::Footprint(args) => commands::footprint::run(args, common),
        Command::Frontend(args) => commands::frontend::run(args, common),
        Command::WorkloadProgram(args) => commands::workload_program::run(args),
    };
    locklab_user_lock::remove_folders();
    outcome
}
