//! The command line. It is only parsed here: no work, no output.

pub mod former;

use crate::arguments::Common;
use crate::commands;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use locklab_host::error::Error;
use std::ffi::OsString;
use std::io::IsTerminal as _;

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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two locks: threads x critical x non-critical length
    Matrix(Box<commands::matrix::MatrixArgs>),
    /// Rank any number of locks, and say which to use for what
    Rank(Box<commands::rank::RankArgs>),
    /// List every lock with its costs and promises, or write one of your own to start from
    Locks(commands::locks::LocksArgs),
    /// Simulate published reports: our figures beside theirs
    Reproduce(Box<commands::reproduce::ReproduceArgs>),
    /// List modelled machines, or model this machine
    Machine(commands::machine::MachineArgs),
    /// Compare two commands, builds, locks under a program, or kernels
    Compare(Box<commands::compare::CompareArgs>),
    /// Judge samples that other programs took: two files of benchmarks
    Judge(Box<commands::judge::JudgeArgs>),
    /// Show recordings and stored experiments; list, export, merge and prune the store
    Results(commands::results::ResultsArgs),
    /// Model-check the locks: every promise, every memory ordering
    Verify(commands::verify::VerifyArgs),
    /// Compare two ELF files, symbol by symbol: bytes and inlined copies
    Footprint(commands::footprint::FootprintArgs),
    /// Run an unmodified program on another lock
    Run(commands::run::RunArgs),
    /// Record what an unmodified program does with its locks
    Record(commands::record::RecordArgs),
    /// Say what to do about a recorded program's locks, here and on other machines
    Advise(commands::advise::AdviseArgs),
    /// Say what this machine can and cannot measure, and what to do about it
    Doctor(commands::doctor::DoctorArgs),
    /// Count what the modelled front end loses in a program, or rank workloads by it
    Frontend(commands::frontend::FrontendArgs),
    /// Build, boot, bisect and inspect real kernels
    Kernel(Box<commands::kernel::KernelArgs>),
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
    let parsed = command(whole()).try_get_matches();
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
    let given: Vec<OsString> = std::env::args_os().collect();
    let sentence = former::sentence(&wrong, &given)
        .or_else(|| wrong_value(&wrong))
        .or_else(|| file_in_place_of_a_lock(&wrong, &given));
    match sentence {
        Some(sentence) => Err(Error::Usage(sentence)),
        None => wrong.exit(),
    }
}

/// The defaults that are not the same for every command that has the option.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("matrix", "threads", "1, half the CPUs, all"),
    ("matrix", "critical", "0,1,2,4..128"),
    ("matrix", "non_critical", "1,32"),
    ("matrix", "time", "60"),
    ("rank", "threads", "1, half the CPUs, all"),
    ("rank", "critical", "1"),
    ("rank", "non_critical", "32"),
    ("rank", "time", "2 for each lock, from 10 to 60"),
    ("advise", "threads", "as recorded"),
    ("record", "time", "until the program ends; 5 with --pid"),
];

/// Returns the whole command line, with the defaults of each command in its help.
#[must_use]
pub fn whole() -> clap::Command {
    DEFAULTS
        .iter()
        .fold(Cli::command(), |all, (name, option, default)| {
            all.mut_subcommand(name, |command| {
                command.mut_arg(option, |arg| {
                    let help = arg.get_help().map(ToString::to_string);
                    arg.help(format!("{} [default: {default}]", help.unwrap_or_default()))
                })
            })
        })
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
fn file_in_place_of_a_lock(wrong: &clap::Error, given: &[OsString]) -> Option<String> {
    let missing = wrong.get(ContextKind::InvalidArg)?.to_string();
    let words = given.iter().filter_map(|word| word.to_str());
    let file = words.into_iter().find(|word| word.ends_with(".toml"))?;
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
