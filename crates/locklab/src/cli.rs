//! The command line. It is only parsed here: no work, no output.

use crate::commands;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Which lock should this code use, how should it be inlined, and what does
/// that cost the rest of the program?
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Say what would run, run nothing
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Show no progress and no notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Seed of every random choice
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// Store of samples (default: locklab.sqlite in the user's data folder)
    #[arg(long, global = true, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Compiler arguments for a lock of your own, such as '-DSLOTS=64
    /// -Iinclude'
    #[arg(long, global = true, value_name = "FLAGS", allow_hyphen_values = true)]
    pub cflags: Option<String>,
}

/// `locklab new-lock`.
#[derive(Debug, Args)]
pub struct NewLockArgs {
    /// The file, which must not exist yet
    pub file: PathBuf,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two locks: threads x critical x non-critical length
    Matrix(Box<commands::matrix::MatrixArgs>),
    /// Rank any number of locks: which to take, and what for
    Rank(Box<commands::rank::RankArgs>),
    /// Write a lock of your own to start from: a C file
    NewLock(NewLockArgs),
    /// Every lock: space, fairness, NUMA, paper, how it was verified
    Locks(commands::locks::LocksArgs),
    /// The published reports, simulated: ours beside theirs
    Reproduce(Box<commands::reproduce::ReproduceArgs>),
    /// Modelled machines: list them, or model this machine
    Machine(commands::machine::MachineArgs),
    /// Compare programs, builds, locks, environments or kernels by a file
    Compare(Box<commands::compare::CompareArgs>),
    /// A product of machines, locks, cells and seeds; here or on a cluster
    Sweep(Box<commands::sweep::SweepArgs>),
    /// The store of experiments: list, show, export, merge, prune
    Results(commands::results::ResultsArgs),
    /// Model-check the locks: every promise, every memory ordering
    Verify(commands::verify::VerifyArgs),
    /// Compare two ELF files, symbol by symbol: bytes and inlined copies
    Footprint(commands::footprint::FootprintArgs),
    /// Run an unmodified program on another lock
    Run(commands::run::RunArgs),
    /// What this machine can and cannot measure, and the remedy
    Doctor,
    /// Rank workloads by what inlining could cost them
    Screen(commands::screen::ScreenArgs),
    /// Instructions and modelled L1i misses of a program
    Icache(commands::icache::IcacheArgs),
    /// Build, boot and compare real kernels
    Kernel(Box<commands::kernel::KernelArgs>),
    /// JSON schemas of experiment files and of results
    Schema(commands::schema::SchemaArgs),
    /// Programs that workloads run
    #[command(hide = true)]
    WorkloadProgram(commands::workload_program::WorkloadProgramArgs),
}

/// Parses a word of an experiment file, as the option of the same name does.
///
/// # Errors
/// If it is none of the option's words; the message lists them.
pub(crate) fn named<T: clap::ValueEnum>(word: &str) -> Result<T, String> {
    T::from_str(word, false).map_err(|_| {
        let words: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|v| Some(v.to_possible_value()?.get_name().to_owned()))
            .collect();
        format!("'{word}' is none of {}", words.join(", "))
    })
}
