//! `locklab workload-program`: the hidden command that is the program of the
//! workloads `fstat` and `context-switch`.

use crate::output::print;
use clap::{Args, Subcommand};
use locklab_host::error::Error;
use locklab_programs::built_in;
use locklab_programs::workloads::{Between, By};
use std::process::ExitCode;
use std::time::Duration;

/// `locklab workload-program`.
#[derive(Debug, Args)]
pub struct WorkloadProgramArgs {
    /// The program to run
    #[command(subcommand)]
    pub program: Program,
}

/// The programs.
#[derive(Debug, Subcommand)]
pub enum Program {
    /// fstat(2) in a loop
    Fstat {
        /// Number of processes
        #[arg(long)]
        processes: usize,
        /// Time to run
        #[arg(long)]
        milliseconds: u64,
    },
    /// Two processes or threads that wake each other
    ContextSwitch {
        /// Processes or threads
        #[arg(long)]
        between: Between,
        /// By a futex or a pipe
        #[arg(long)]
        by: By,
        /// Switches in a mean
        #[arg(long)]
        switches: u64,
        /// Number of means
        #[arg(long)]
        means: u64,
    },
}

/// Runs a program.
///
/// # Errors
/// [`Error::Failed`] if a process cannot be started or fails, a system call
/// fails, or standard output cannot be written.
pub fn run(args: &WorkloadProgramArgs) -> Result<ExitCode, Error> {
    let text = match args.program {
        Program::Fstat {
            processes,
            milliseconds,
        } => built_in::fstat(processes, Duration::from_millis(milliseconds)),
        Program::ContextSwitch {
            between,
            by,
            switches,
            means,
        } => built_in::context_switch(between, by, switches, means),
    };
    print(&text.map_err(|e| Error::Failed(format!("the workload failed: {e}")))?)
}
