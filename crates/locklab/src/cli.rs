//! The command line. Parsing only: no work, no output.

use crate::list::{Lengths, Threads};
use clap::{Args, Parser, Subcommand, ValueEnum};
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

/// `locklab locks`
#[derive(Debug, Args)]
pub struct LocksArgs {
    /// Only these
    #[arg(value_name = "LOCK")]
    pub names: Vec<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two locks: threads x critical x non-critical length
    Matrix(MatrixArgs),
    /// Every lock: space, fairness, NUMA, paper, how it was verified
    Locks(LocksArgs),
    /// The published reports, simulated: ours beside theirs
    Reproduce(ReproduceArgs),
    /// Modelled machines: list them, or make one of this machine
    Machine(MachineArgs),
    /// What has been measured: the store
    Results(ResultsArgs),
    /// Compare programs, builds, locks or environments under real workloads
    Compare(Box<crate::compare::arguments::CompareArgs>),
    /// Model-check the locks: every promise, every memory ordering
    Verify(VerifyArgs),
    /// What two ELF files hold, symbol by symbol: bytes and inlined copies
    Footprint(FootprintArgs),
    /// Run an unmodified program on another lock
    Run(RunArgs),
    /// What this machine can and cannot measure, and the remedy
    Doctor,
    /// Rank workloads by what inlining could cost them
    Screen(crate::screen_command::ScreenArgs),
    /// Instructions and modelled L1i misses of a program
    Icache(crate::icache_command::IcacheArgs),
    /// Build, boot and compare real kernels
    Kernel(Box<crate::kernel::arguments::KernelArgs>),
    /// Programs that workloads run
    #[command(hide = true)]
    WorkloadProgram(crate::workloads::own::OwnArgs),
}

/// `locklab matrix`.
///
/// Without options it takes about two minutes.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// The lock that is the yardstick
    pub baseline: String,
    /// The lock that is judged against it; may be left out with --aa
    #[arg(required_unless_present = "aa")]
    pub experiment: Option<String>,
    /// Numbers of threads, as 1,2,4..64 [default: 1, half the CPUs, all, twice]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<Threads>,
    /// Lengths of the critical section [default: 0,1,2,4..128]
    #[arg(long, value_name = "LIST")]
    pub critical: Option<Lengths>,
    /// Lengths of the non-critical section [default: 1,32; with fstat 0]
    #[arg(long, value_name = "LIST")]
    pub non_critical: Option<Lengths>,
    /// What lengths count: n + 1 units of about 15 cycles, or nanoseconds
    #[arg(long, value_enum, default_value_t = UnitArg::Units)]
    pub unit: UnitArg,
    /// What the critical section is
    #[arg(long, value_enum, default_value_t = WorkArg::Units)]
    pub workload: WorkArg,
    /// Pairs of runs in each cell; a verdict takes 8 at least
    #[arg(long, value_name = "N", default_value_t = 14)]
    pub pairs: u32,
    /// Measured time of a run, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    pub run_ms: u32,
    /// Time before it that is left out, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10)]
    pub warmup_ms: u32,
    /// Stop after so many seconds and report what there is
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u32>,
    /// CPUs to pin to, in this order [default: cores, siblings, other nodes]
    #[arg(long, value_name = "LIST")]
    pub pin: Option<Lengths>,
    /// Processes that share memory, instead of threads
    #[arg(long)]
    pub processes: bool,
    /// Measure the latency of each acquisition too (costs two clock reads)
    #[arg(long)]
    pub latency: bool,
    /// Compare the baseline with itself, and store how far off this set-up is
    #[arg(long)]
    pub aa: bool,
    /// What counts as flat, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub delta: f64,
    /// Go on with the same matrix where it was interrupted
    #[arg(long)]
    pub resume: bool,
    /// Exit with 3 if a cell is worse
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Write the report as one HTML file too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Simulate on a modelled machine: a name of `locklab machine list`, or a
    /// file
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
    /// Virtual CPUs of a simulated virtual machine
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// Physical CPUs (hardware threads) that a simulated machine uses
    #[arg(long, value_name = "N")]
    pub physical: Option<usize>,
    /// How far a simulated ratio depends on the model's assumptions
    #[arg(long)]
    pub band: bool,
    /// Write a trace of a short simulated run, for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// `locklab reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// In simulation: virt-backoff, mplock-anderson, qspinlock-xfs, and
    /// those that --all adds. With kernels that are built and booted:
    /// inline-unlock, finish-task-switch [default: the first three]
    pub names: Vec<String>,
    /// Every published experiment that can be simulated, with one score for
    /// those that may inform the model and one for those that never do
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Only these of a kernel report's variants
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub variant: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub runs: crate::kernel::arguments::RunsArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its options have their own")]
    pub cache: crate::kernel::arguments::CacheArgs,
}

/// `locklab machine`.
#[derive(Debug, Args)]
pub struct MachineArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: MachineCommand,
}

/// What to do with machines.
#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// Every machine that comes with Locklab
    List,
    /// A machine's figures, each with its source or assumption
    Show {
        /// Its name, or a machine file
        machine: String,
    },
    /// Measure how far apart this machine's CPUs are, and write a machine file
    Fit {
        /// Where to
        file: PathBuf,
    },
}

/// `--unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitArg {
    /// n means n + 1 units of about 15 cycles
    Units,
    /// Nanoseconds, by a calibration at start
    Ns,
}

/// `--workload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkArg {
    /// Units of computation and copying, of the asked lengths
    Units,
    /// One fstat(2) on a file of the thread's own
    Fstat,
}

/// `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A regression
    Worse,
}

/// `locklab results`.
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ResultsCommand,
}

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub enum ResultsCommand {
    /// Every experiment, the latest first
    List,
    /// The report of one experiment again
    Show {
        /// Its number [default: the latest]
        id: Option<i64>,
        /// Write it as one HTML file too
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Every sample, to standard output
    Export {
        /// Of this experiment only
        id: Option<i64>,
        /// In which form
        #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
        format: ExportFormat,
    },
}

/// Forms of export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One line a sample, with a head
    Csv,
    /// JSON Lines: one object a sample
    Jsonl,
}

/// `locklab verify`.
///
/// Exit code 1 if a promise is broken or a mutant survives.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The locks, and 'spin-then-park' [default: all]
    #[arg(value_name = "LOCK")]
    pub locks: Vec<String>,
    /// Weaken each memory ordering in turn: each must break a promise
    #[arg(long)]
    pub mutants: bool,
    /// Sixty times the executions, fifty times the schedules: hours
    #[arg(long)]
    pub thorough: bool,
    /// Executions of a promise at most [default: 16000]
    ///
    /// What does not end with any number of preemptions is explored with as
    /// many as this allows; the table says how many.
    #[arg(long, value_name = "N", conflicts_with = "thorough",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,
    /// Random schedules of each lock [default: 1000]
    #[arg(long, value_name = "N", conflicts_with = "thorough",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub schedules: Option<u32>,
    /// Seconds for a promise at most [default: no limit]
    ///
    /// With it, what is found may depend on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Also write one line a lock to this file
    ///
    /// What 'locklab locks' says of how a lock is verified comes from such a
    /// file, crates/verify/verified.tsv.
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub record: Option<PathBuf>,
}

/// `locklab footprint`.
///
/// Executables, objects, archives, kernel images, or two folders of them.
#[derive(Debug, Args)]
pub struct FootprintArgs {
    /// The file or folder before
    pub old: PathBuf,
    /// The file or folder after
    pub new: PathBuf,
    /// List the call sites at which this function was inlined
    #[arg(long, value_name = "FUNCTION")]
    pub call_sites: Option<String>,
    /// Rows of each table of symbols; --json has all of them
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Executions of the old file, for its hot text: what icache --hot wrote,
    /// or lines of ADDRESS COUNT
    #[arg(long, value_name = "FILE", requires = "new_counts")]
    pub old_counts: Option<PathBuf>,
    /// Executions of the new file
    #[arg(long, value_name = "FILE", requires = "old_counts")]
    pub new_counts: Option<PathBuf>,
}

/// `locklab run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The lock: of 'locklab locks', 'pthread' (glibc's), or LiTL's name
    #[arg(long, value_name = "NAME")]
    pub lock: String,
    /// What a waiter does [default: spin-then-park]
    ///
    /// A waiter that only spins keeps a CPU from the holder where threads
    /// outnumber CPUs: fair locks then all but stop.
    #[arg(long, value_enum)]
    pub wait: Option<WaitArg>,
    /// Time each acquisition; print contention by place in the program
    #[arg(long)]
    pub profile: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// How a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaitArg {
    /// Until it has the lock
    Spin,
    /// For about as long as a sleep costs, then sleeps until woken
    SpinThenPark,
}

impl WaitArg {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::SpinThenPark => "spin-then-park",
        }
    }
}
