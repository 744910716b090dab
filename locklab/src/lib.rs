//! The parts behind the `locklab` command.
//!
//! Data flows one way: subject and workload → instrument → samples (store)
//! → judge → verdicts → report. An instrument knows nothing of statistics, a
//! report nothing of how a figure was made.

// A message is printed by `locklab_host::message`, which cannot panic.
#![cfg_attr(not(test), warn(clippy::print_stderr))]

pub mod bring;
pub mod cli;
pub mod command_line;
pub mod commands;
pub mod comparing;
mod lock_table;
pub mod output;
mod own;

use cli::{Cli, Command};
use locklab_host::error::Error;
use std::process::ExitCode;

/// Runs one command line.
///
/// # Errors
/// The error of the command: one sentence, with the exit code that belongs to
/// it.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    let outcome = dispatch(&cli);
    locklab_own_lock::remove_folders();
    outcome
}

fn dispatch(cli: &Cli) -> Result<ExitCode, Error> {
    match &cli.command {
        Command::NewLock(args) => output::print(&own::new_lock(&args.file, &cli.common)?),
        Command::Matrix(args) => commands::matrix::run(args, &cli.common),
        Command::Rank(args) => commands::rank::run(args, &cli.common),
        Command::Doctor(args) => commands::doctor::run(args, &cli.common),
        Command::Reproduce(args) => commands::reproduce::run(args, &cli.common),
        Command::Machine(args) => commands::machine::run(args, &cli.common),
        Command::Kernel(args) => commands::kernel::run(args, &cli.common),
        Command::Locks(args) => commands::locks::run(args, &cli.common),
        Command::Results(args) => commands::results::run(args, &cli.common),
        Command::Compare(args) => commands::compare::run(args, &cli.common),
        Command::Icache(args) => commands::icache::run(args, &cli.common),
        Command::Screen(args) => commands::screen::run(args, &cli.common),
        Command::Sweep(args) => commands::sweep::run(args, &cli.common),
        Command::Schema(args) => commands::schema::run(args),
        Command::WorkloadProgram(args) => commands::workload_program::run(args),
        Command::Verify(args) => commands::verify::run(args, &cli.common),
        Command::Footprint(args) => commands::footprint::run(args, &cli.common),
        Command::Run(args) => commands::run::run(args, &cli.common),
        Command::Record(args) => commands::record::record(args, &cli.common),
        Command::Advise(args) => commands::advise::run(args, &cli.common),
        Command::Trace(args) => commands::record::trace(args, &cli.common),
    }
}
