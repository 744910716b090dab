//! Locks of the user's own, wherever a command takes the name of a lock:
//! a C or C++ file, or a kernel's lock.
//!
//! They are compiled before a command begins, so that a fault of a
//! file is reported first, and are then found by the name that the user gave.

use crate::cli::{Cli, Command, Common};
use locklab_host::error::Error;
use locklab_native::subject;
use locklab_own_lock::{Error as OwnError, OwnLock, brought_to_checker};
use locklab_verify::Candidate;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compiles and registers every lock of a command line that is not in the
/// catalogue.
///
/// # Errors
/// [`Error::Usage`] if a file does not exist or has no ending of C or C++,
/// [`Error::Failed`] if it does not compile or contains what cannot be
/// simulated.
pub(crate) fn register(cli: &Cli) -> Result<(), Error> {
    let (on, names) = match (&cli.command, &cli.common.cflags) {
        (Command::Matrix(args), _) => {
            let experiment = args.experiment.iter();
            (
                &args.on,
                std::iter::once(&args.baseline).chain(experiment).collect(),
            )
        }
        (Command::Rank(args), _) => (
            &args.on,
            args.locks.iter().chain(&args.against).collect::<Vec<_>>(),
        ),
        (Command::Sweep(_), Some(text)) => {
            return Err(Error::Usage(format!(
                "the file of a sweep says what is compiled: write cflags = \"{text}\" there, and \
                 leave out --cflags"
            )));
        }
        _ => return Ok(()),
    };
    let is_here = on.as_ref().is_none_or(|machine| machine == "native");
    // A lock that is named twice is registered once.
    let names: BTreeSet<&String> = names.into_iter().collect();
    for name in names {
        if let Some(lock) = named(name, &cli.common, &[])? {
            if is_here {
                lock.register_here(name).map_err(said)?;
            } else {
                lock.register(name);
            }
        }
    }
    Ok(())
}

/// The lock of the user's own that `name` denotes, compiled with the arguments
/// of `--cflags` and these flags; `None` if it is a name of the catalogue.
///
/// # Errors
/// The same errors as [`register`].
pub(crate) fn named(name: &str, common: &Common, flags: &[&str]) -> Result<Option<OwnLock>, Error> {
    let asked = match &common.cflags {
        None => Vec::new(),
        Some(text) => shlex::split(text)
            .ok_or_else(|| Error::Usage(format!("--cflags '{text}' has a quote without an end")))?,
    };
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    let flags: Vec<String> = asked.into_iter().chain(flags).collect();
    OwnLock::named(name, &flags).map_err(said)
}

/// What is assumed of the memory orderings of some locks, by their names,
/// beyond what their source says.
pub(crate) type Assumptions = BTreeMap<String, &'static str>;

/// The locks that a command line names for the checker (none: all of ours), and
/// the assumptions about some of them.
///
/// # Errors
/// A name is no lock's, is a peer's, or its file does not compile.
pub(crate) fn candidates(
    locks: &[String],
    c11: bool,
    common: &Common,
) -> Result<(Vec<Candidate>, Assumptions), Error> {
    let mut assumptions = Assumptions::new();
    let known = locklab_verify::names();
    let all = || known.iter().map(|name| (*name).to_owned()).collect();
    let names: Vec<String> = if locks.is_empty() {
        all()
    } else {
        locks.to_vec()
    };
    let strict: &[&str] = if c11 { &["-DLOCKLAB_STRICT"] } else { &[] };
    let mut candidates = Vec::new();
    for name in &names {
        if let Some(lock) = named(name, common, strict)? {
            candidates.push(lock.candidate().map_err(said)?);
            if !lock.assumptions().is_empty() {
                assumptions.insert(lock.name().to_owned(), lock.assumptions());
            }
            continue;
        }
        if let Some(candidate) = brought_to_checker(name) {
            candidates.push(candidate);
            continue;
        }
        if !known.contains(&name.as_str()) {
            subject::find(name).map_err(Error::Usage)?;
            return Err(Error::Usage(format!(
                "'{name}' is not ours to verify: it is a peer's lock; 'locklab verify' takes \
                 those that 'locklab locks' lists with a paper, and files"
            )));
        }
        candidates.push(Candidate::named(name).map_err(|e| Error::Usage(e.to_string()))?);
    }
    Ok((candidates, assumptions))
}

/// Converts an error about a lock.
pub(crate) fn said(error: OwnError) -> Error {
    match error {
        OwnError::Usage(text) => Error::Usage(text),
        other => Error::Failed(other.to_string()),
    }
}

/// `locklab new-lock FILE`: writes the template.
///
/// # Errors
/// [`Error::Usage`] if the file exists already, [`Error::Failed`] if it cannot
/// be written.
pub(crate) fn new_lock(file: &Path) -> Result<String, Error> {
    locklab_own_lock::write_template(file).map_err(said)?;
    let shown = file.display();
    Ok(format!(
        "Wrote {shown}, a ticket lock to start from.\nTry: locklab matrix {shown} qspinlock --on \
         xeon-8380-2s\n"
    ))
}
