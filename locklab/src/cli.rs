//! The command line. It is only parsed here: no work, no output.

use crate::arguments::Common;
use crate::commands;
use clap::{Args, Parser, Subcommand};
use locklab_lab::settings::{NewName, Renamed};
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
    /// Options that are refused here.
    #[command(flatten)]
    pub misplaced: Misplaced,
}

/// Options that some commands have, before the name of the command.
#[derive(Clone, Debug, Args)]
pub struct Misplaced {
    /// Belongs to a command.
    #[arg(id = "misplaced-seed", long = "seed", hide = true)]
    pub seed: Option<Renamed<BehindTheCommand>>,
    /// Belongs to a command.
    #[arg(id = "misplaced-store", long = "store", hide = true)]
    pub store: Option<Renamed<BehindTheCommand>>,
    /// Belongs to a command.
    #[arg(
        id = "misplaced-cflags",
        long = "cflags",
        hide = true,
        allow_hyphen_values = true
    )]
    pub cflags: Option<Renamed<BehindTheCommand>>,
}

/// Where an option belongs that only some commands have.
#[derive(Clone, Copy, Debug)]
pub enum BehindTheCommand {}

impl NewName for BehindTheCommand {
    const SENTENCE: &'static str = "it is an option of some commands; write it behind the command";
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
    /// Rank any number of locks, and say which to use for what
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
    /// Every combination of machines, locks, cells and seeds, here or on a cluster
    Sweep(Box<commands::sweep::SweepArgs>),
    /// The store of experiments: list, show, export, merge, prune
    Results(commands::results::ResultsArgs),
    /// Model-check the locks: every promise, every memory ordering
    Verify(commands::verify::VerifyArgs),
    /// Compare two ELF files, symbol by symbol: bytes and inlined copies
    Footprint(commands::footprint::FootprintArgs),
    /// Run an unmodified program on another lock
    Run(commands::run::RunArgs),
    /// Record what an unmodified program does with its locks
    Record(commands::record::RecordArgs),
    /// Show a recording: threads, waiting, the hottest call sites
    Trace(commands::record::TraceArgs),
    /// What to do about a recorded program's locks, here and on other machines
    Advise(commands::advise::AdviseArgs),
    /// What this machine can and cannot measure, and the remedy
    Doctor(commands::doctor::DoctorArgs),
    /// Rank workloads by what inlining could cost them
    Screen(commands::screen::ScreenArgs),
    /// Count instructions and modelled L1i misses of a program
    Icache(commands::icache::IcacheArgs),
    /// Build, boot and compare real kernels
    Kernel(Box<commands::kernel::KernelArgs>),
    /// Print the JSON schemas of experiment files and of results
    Schema(commands::schema::SchemaArgs),
    /// Programs that workloads run
    #[command(hide = true)]
    WorkloadProgram(commands::workload_program::WorkloadProgramArgs),
}
