//! The parts behind the `locklab` command.
//!
//! Data flows one way: subject and workload → instrument → samples (store)
//! → judge → verdicts → report. An instrument knows nothing of statistics, a
//! report nothing of how a figure was made.

pub mod cli;
pub mod compare;
pub mod counters;
pub mod doctor;
mod footprint_command;
pub mod icache;
pub mod icache_command;
pub mod kernel;
pub mod list;
mod locks_command;
mod machine_command;
pub mod matrix;
mod matrix_command;
pub mod matrix_run;
pub mod native;
pub mod plan;
mod progress;
pub mod report;
mod reproduce;
mod results_command;
mod run_under;
pub mod screen_command;
mod simulated;
pub mod store;
pub mod verdicts;
mod verify;
pub mod workloads;

use cli::{Cli, Command};
use locklab_host::error::Error;
use std::process::ExitCode;

/// Runs one command line.
///
/// # Errors
/// One sentence, and the exit code that goes with it.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    match &cli.command {
        Command::Matrix(args) => matrix_command::run(args, &cli.common),
        Command::Doctor => matrix_command::print(&doctor::run(&cli.common)),
        Command::Reproduce(args) => reproduce::run(args, &cli.common),
        Command::Machine(args) => machine_command::run(args, &cli.common),
        Command::Kernel(args) => kernel::command::run(args, &cli.common),
        Command::Locks(args) => locks_command::run(args, &cli.common),
        Command::Results(args) => results_command::run(args, &cli.common),
        Command::Compare(args) => compare::command::run(args, &cli.common),
        Command::Icache(args) => icache_command::run(args, &cli.common),
        Command::Screen(args) => screen_command::run(args, &cli.common),
        Command::WorkloadProgram(args) => workloads::own::run(args),
        Command::Verify(args) => verify::run(args, &cli.common),
        Command::Footprint(args) => footprint_command::run(args, &cli.common),
        Command::Run(args) => run_under::run(args, &cli.common),
    }
}
