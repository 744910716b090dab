//! The command line. Parsing only: no work, no output.

use crate::list::{Lengths, Threads};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Which lock should this code use, how should it be inlined, and what does
/// that cost the rest of the program?
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// Say what would run, run nothing
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// No progress, no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// One JSON document on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Seed of every coin and every random choice
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// Store of samples (default: locklab.sqlite in the user's data folder)
    #[arg(long, global = true, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two locks: threads x critical x non-critical length
    Matrix(MatrixArgs),
}

/// `locklab matrix`.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// The lock that is the yardstick
    pub baseline: String,
    /// The lock that is judged against it
    pub experiment: String,
    /// Numbers of threads, as 1,2,4..64
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section, as 0,1,2,4..128
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Lengths>,
    /// Lengths of the non-critical section
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Lengths>,
}
