//! What is wrong with a command line, in one sentence that says what to write instead:
//! names of former versions, and what people type who know other programs.
//!
//! It must never guess what was meant and run that.

use clap::error::{ContextKind, ErrorKind};
use locklab_harness::settings::WITHOUT_OPTION;
use locklab_host::shell;
use std::ffi::OsString;

/// The commands of former versions, each with what does the same today.
pub const COMMANDS: &[(&str, &str)] = &[
    ("icache", "locklab frontend"),
    ("kernel compare", "locklab compare FILE"),
    ("new-lock", "locklab locks -o FILE"),
    ("schema", "locklab results schema"),
    ("screen", "locklab frontend --workload LIST"),
    ("trace", "locklab results show FILE"),
];

/// Returns the options of former versions: the command that had one, the option, and what to
/// write today.
pub fn options() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = include_str!("former.tsv").lines();
    lines.filter_map(|line| line.split('\t').collect::<Vec<_>>().try_into().ok())
}

/// Returns the sentence for what clap found to be wrong, if this module knows more of it.
#[must_use]
pub fn sentence(wrong: &clap::Error, given: &[OsString]) -> Option<String> {
    let words: Vec<String> = given
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = words.iter().find(|word| !word.starts_with('-'));
    let command = command.map_or("", String::as_str);
    let context = |kind| wrong.get(kind).map(ToString::to_string);
    match wrong.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = context(ContextKind::InvalidSubcommand)?;
            let below = format!("{command} {typed}");
            let is_it = |(old, _): &&(&str, &str)| *old == typed || *old == below;
            let (old, today) = COMMANDS.iter().find(is_it)?;
            Some(format!("{old} has another name; write {today}"))
        }
        ErrorKind::UnknownArgument => {
            let typed = context(ContextKind::InvalidArg)?;
            let option = typed.split(['=', ' ']).next().unwrap_or(&typed);
            renamed(command, option)
                .or_else(|| before_the_command(&words, option))
                .or_else(|| misplaced(&words, &typed))
        }
        ErrorKind::TooManyValues if command == "compare" => {
            let typed = context(ContextKind::InvalidValue)?;
            misplaced(&words, &typed)
        }
        ErrorKind::InvalidUtf8 => {
            let word = given.iter().find(|word| word.to_str().is_none())?;
            Some(format!(
                "'{}' is not text in UTF-8, which everything but the name of a file must be",
                word.to_string_lossy()
            ))
        }
        _ => None,
    }
}

/// Returns the sentence for an option of a former version.
fn renamed(command: &str, option: &str) -> Option<String> {
    let mut former = options();
    if let Some([_, _, today]) = former.find(|[of, old, _]| *of == command && *old == option) {
        return Some(format!("{option} has another name; write {today}"));
    }
    let key = option.strip_prefix("--")?.replace('-', "_");
    let takes_settings = ["matrix", "rank", "compare", "kernel"].contains(&command);
    (takes_settings && WITHOUT_OPTION.contains(&key.as_str()))
        .then(|| format!("{option} is a key of experiment files; write --set {key}=VALUE"))
}

/// Returns the sentence for an option of a command that stands before it.
fn before_the_command(words: &[String], option: &str) -> Option<String> {
    let first = words.first().filter(|word| word.starts_with(option))?;
    let name = option.strip_prefix("--")?;
    let has = |command: &clap::Command| {
        let mut options = command.get_arguments();
        options.any(|argument| argument.get_long() == Some(name))
    };
    super::whole()
        .get_subcommands()
        .any(has)
        .then(|| format!("{first} is an option of some commands; write it behind the command"))
}

/// Returns the sentence for a word that a command does not take in its place.
fn misplaced(words: &[String], typed: &str) -> Option<String> {
    let command = words.iter().find(|word| !word.starts_with('-'))?;
    let at = words.iter().rposition(|word| word == typed)?;
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    // `--threads 1, 4`, and `--fail-on worse unclear`.
    let option = words[..at].iter().rev().find(|word| word.starts_with('-'));
    let is_list = |word: &str| word.ends_with(',') || word.parse::<u64>().is_ok();
    if let (Some(option), Some(before)) = (option, before)
        && !typed.starts_with('-')
        && (before.ends_with(',') || option == "--fail-on" || (is_list(before) && is_list(typed)))
    {
        let list = words[..=at].iter().rev().take_while(|word| *word != option);
        let mut list: Vec<&str> = list.map(|word| word.trim_end_matches(',')).collect();
        list.reverse();
        return Some(format!(
            "a list has no spaces between its items; write {option} {}",
            list.join(",")
        ));
    }
    match command.as_str() {
        "run" | "record" if !typed.starts_with('-') => Some(format!(
            "put -- before the program: locklab {} -- {}",
            shell::line(&words[..at]),
            shell::line(&words[at..])
        )),
        "matrix" if !typed.starts_with('-') => Some(format!(
            "matrix compares two locks, and '{typed}' is a third; locklab rank compares any number"
        )),
        "compare" if !typed.starts_with('-') => Some(format!(
            "compare takes two commands, each in quotes, and '{typed}' is a third; a command with \
             arguments is written as 'COMMAND ARGUMENT'"
        )),
        _ => None,
    }
}
