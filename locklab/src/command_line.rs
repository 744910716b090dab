//! From a command line to an exit code: parse, run, and print one sentence for
//! a failure.

use crate::cli::{Cli, Command};
use crate::output::print;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _};
use locklab_host::error::Error;
use locklab_host::start;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    start::explain_missing_threads();
    let done = start::check_stack().and_then(|()| run());
    done.unwrap_or_else(|error| {
        // A closed standard error is no reason to panic.
        let _ = writeln!(std::io::stderr(), "locklab: {error}");
        error.exit_code()
    })
}

/// Runs the command line, in a function of its own so that the frame of
/// [`main`] fits into a stack that is too small.
#[inline(never)]
fn run() -> Result<ExitCode, Error> {
    let parsed = command(Cli::command()).try_get_matches();
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            // With these the output belongs to the program.
            if cli.common.json || !matches!(cli.command, Command::Run(_) | Command::Record(_)) {
                start::check_output()?;
            }
            crate::run(cli)
        }
        // Help and the version are a result like any other.
        Err(help) if !help.use_stderr() => {
            start::check_output()?;
            let text = help.render();
            if std::io::stdout().is_terminal() {
                print(&text.ansi().to_string())
            } else {
                print(&text.to_string())
            }
        }
        Err(mut wrong) => {
            forget_hidden(&mut wrong);
            let sentence = wrong_value(&wrong).or_else(|| file_in_place_of_a_lock(&wrong));
            match sentence {
                Some(sentence) => Err(Error::Usage(sentence)),
                None => wrong.exit(),
            }
        }
    }
}

/// The command line, in which a negative number is a value and not an option,
/// so that it is refused with a list of allowed values.
fn command(command: clap::Command) -> clap::Command {
    let with_value = |arg: clap::Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(with_value).mut_subcommands(self::command)
}

/// The error message for a value that its option does not take, as one
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

/// The error message for the file of an experiment where one lock of two is
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
