//! The command line. It is only parsed here: no work, no output.

use crate::arguments::Common;
use crate::commands;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use locklab_host::error::Error;
use locklab_lab::settings::{NewName, Renamed};
use std::ffi::OsString;
use std::io::IsTerminal as _;
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

/// Stands for an option that only some commands have.
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
    /// List every lock: space, fairness, NUMA, paper, how it was verified
    Locks(commands::locks::LocksArgs),
    /// Simulate published reports: our figures beside theirs
    Reproduce(Box<commands::reproduce::ReproduceArgs>),
    /// List modelled machines, or model this machine
    Machine(commands::machine::MachineArgs),
    /// Compare programs, builds, locks, environments or kernels by a file
    Compare(Box<commands::compare::CompareArgs>),
    /// Judge samples that other programs took: two files of benchmarks
    Judge(Box<commands::judge::JudgeArgs>),
    /// List, show, export, merge and prune the stored experiments
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
    /// Say what to do about a recorded program's locks, here and on other machines
    Advise(commands::advise::AdviseArgs),
    /// Say what this machine can and cannot measure, and what to do about it
    Doctor(commands::doctor::DoctorArgs),
    /// Rank workloads by what inlining could cost them
    Screen(commands::screen::ScreenArgs),
    /// Count what the modelled front end loses in a program: cycles by cause, L1i misses
    #[command(alias = "icache")]
    Frontend(commands::frontend::FrontendArgs),
    /// Build, boot and compare real kernels
    Kernel(Box<commands::kernel::KernelArgs>),
    /// Print the JSON schemas of experiment files and of results
    Schema(commands::schema::SchemaArgs),
    /// Ended with version 0.3
    #[command(hide = true)]
    Sweep {
        /// What it was given.
        #[arg(num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Programs that workloads run
    #[command(hide = true)]
    WorkloadProgram(commands::workload_program::WorkloadProgramArgs),
}

/// The outcome of parsing a command line that makes sense.
#[derive(Debug)]
pub enum Parsed {
    /// A command with its arguments.
    Command(Box<Cli>),
    /// The text of the help or of the version, which is a result like any other.
    Help(String),
}

/// Parses the command line of this process. Where clap has to say more than one
/// sentence, it says it and ends the process.
///
/// # Errors
/// [`Error::Usage`] with what is wrong.
pub fn parse() -> Result<Parsed, Error> {
    let parsed = command(Cli::command()).try_get_matches();
    let mut wrong = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => return Ok(Parsed::Command(Box::new(cli))),
        Err(wrong) => wrong,
    };
    if !wrong.use_stderr() {
        let text = wrong.render();
        return Ok(Parsed::Help(match std::io::stdout().is_terminal() {
            true => text.ansi().to_string(),
            false => text.to_string(),
        }));
    }
    forget_hidden(&mut wrong);
    match wrong_value(&wrong).or_else(|| file_in_place_of_a_lock(&wrong)) {
        Some(sentence) => Err(Error::Usage(sentence)),
        None => wrong.exit(),
    }
}

/// Returns the command line, in which a negative number is a value and not an option,
/// so that it is refused with a list of allowed values.
fn command(command: clap::Command) -> clap::Command {
    let with_value = |arg: clap::Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(with_value).mut_subcommands(self::command)
}

/// Returns the error message for a value that its option does not take, as one
/// sentence.
fn wrong_value(wrong: &clap::Error) -> Option<String> {
    let source = std::error::Error::source(wrong)?;
    let argument = wrong.get(ContextKind::InvalidArg)?.to_string();
    let value = wrong.get(ContextKind::InvalidValue)?.to_string();
    let kind = if source.is::<std::num::ParseIntError>() {
        "a whole number"
    } else if source.is::<std::num::ParseFloatError>() {
        "a number"
    } else {
        let option = argument.split_whitespace().next()?;
        let why = source.to_string();
        return Some(match why.contains(&value) {
            true => format!("{option}: {why}"),
            false => format!("invalid value '{value}' for {option}: {why}"),
        });
    };
    Some(format!("'{value}' is not {kind}, which {argument} takes"))
}

/// Returns the error message for the file of an experiment where one lock of two is
/// named: `locklab matrix FILE`.
fn file_in_place_of_a_lock(wrong: &clap::Error) -> Option<String> {
    let missing = wrong.get(ContextKind::InvalidArg)?.to_string();
    let file = std::env::args().find(|word| word.ends_with(".toml"))?;
    (missing == "<EXPERIMENT>").then(|| {
        format!("{file} is no lock; 'locklab compare {file}' runs the file of an experiment")
    })
}

/// Removes commands that the help does not show from suggestions.
fn forget_hidden(wrong: &mut clap::Error) {
    let kind = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::Strings(names)) = wrong.remove(kind) {
        let command = Cli::command();
        let shown = |name: &String| {
            let found = command.find_subcommand(name);
            found.is_some_and(|command| !command.is_hide_set())
        };
        let names: Vec<String> = names.into_iter().filter(shown).collect();
        if !names.is_empty() {
            wrong.insert(kind, ContextValue::Strings(names));
        }
    }
}
