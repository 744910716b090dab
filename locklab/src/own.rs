//! Locks of the user's own, wherever a command takes the name of a lock:
//! a C or C++ file, or a kernel's lock.
//!
//! They are compiled before a command begins, so that a fault of a
//! file is reported first, and are then found by the name that the user gave.

use crate::arguments::{Common, UserLockArgs};
use crate::output::{FileFormat, check_writable};
use locklab_host::error::Error;
use locklab_native::subject;
use locklab_sim::current_name;
use locklab_user_lock::{OwnTest, UserLock, registered_candidate};
use locklab_verify::Candidate;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compiles and registers those of these locks that are not in the catalogue,
/// natively or for the simulator.
///
/// # Errors
/// [`Error::Usage`] if a file does not exist or has no ending of C or C++, or
/// there is none that `--cflags` could be for; [`Error::Failed`] if it does not
/// compile or contains what cannot be simulated.
pub(crate) fn register<'a>(
    names: impl IntoIterator<Item = &'a str>,
    args: &UserLockArgs,
    is_here: bool,
) -> Result<(), Error> {
    // A lock that is named twice is registered once.
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut own = 0;
    for name in names {
        if let Some(lock) = named(name, args, &[])? {
            own += 1;
            if is_here {
                lock.register_here(name)?;
            } else {
                lock.register(name)?;
            }
        }
    }
    refuse_for_ours("--cflags", args.cflags.is_some() && own == 0)
}

/// Refuses an option that was given although no lock needs a compiler.
pub(crate) fn refuse_for_ours(option: &str, given_for_ours: bool) -> Result<(), Error> {
    if given_for_ours {
        return Err(Error::Usage(format!(
            "{option} is for locks of your own, and all of these are built in; leave it out"
        )));
    }
    Ok(())
}

/// Returns the lock of the user's own that `name` denotes, compiled with the arguments
/// of `--cflags` and these flags; `None` if it is a name of the catalogue.
///
/// # Errors
/// The same errors as [`register`].
pub(crate) fn named(
    name: &str,
    args: &UserLockArgs,
    flags: &[&str],
) -> Result<Option<UserLock>, Error> {
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    let flags: Vec<String> = asked_flags(args)?.into_iter().chain(flags).collect();
    UserLock::named(name, &flags)
}

/// Returns the arguments of `--cflags`.
fn asked_flags(args: &UserLockArgs) -> Result<Vec<String>, Error> {
    let wrong = |text| Error::Usage(format!("--cflags '{text}' has a quote without an end"));
    match &args.cflags {
        None => Ok(Vec::new()),
        Some(text) => shlex::split(text).ok_or_else(|| wrong(text)),
    }
}

/// Returns the test of the user's own that `name` denotes: a file with `main`.
///
/// # Errors
/// The same errors as [`register`].
pub(crate) fn own_test(name: &str, args: &UserLockArgs) -> Result<Option<OwnTest>, Error> {
    OwnTest::named(name, &asked_flags(args)?)
}

/// Returns the lock that `name` denotes, as a subject of measurements.
///
/// # Errors
/// The same errors as [`register`], and if there is no such lock.
pub(crate) fn subject(name: &str, args: &UserLockArgs) -> Result<subject::Subject, Error> {
    match named(name, args, &[])? {
        Some(lock) => Ok(lock.subject(name)),
        None => Ok(subject::find(name)?),
    }
}

/// Names what is assumed of the memory orderings of some locks, by their names, beyond
/// what their source says.
pub(crate) type Assumptions = BTreeMap<String, &'static str>;

/// Returns the locks that a command line names for the checker (none: all of ours), and
/// the assumptions about some of them.
///
/// # Errors
/// A name is no lock's, is a peer's, or its file does not compile; or an option
/// is for locks that are compiled, and none of these is.
pub(crate) fn candidates(
    locks: &[String],
    c11: bool,
    dependencies: bool,
    own: &UserLockArgs,
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
    let mut ours = true;
    for name in &names {
        let name = current_name(name);
        if let Some(mut lock) = named(name, own, strict)? {
            ours = false;
            if dependencies {
                lock = lock.with_dependencies();
            }
            candidates.push(lock.candidate()?);
            if !lock.assumptions().is_empty() {
                assumptions.insert(lock.name().to_owned(), lock.assumptions());
            }
            continue;
        }
        if let Some(candidate) = registered_candidate(name) {
            candidates.push(candidate);
            continue;
        }
        if !known.contains(&name) {
            subject::find(name)?;
            return Err(Error::Usage(format!(
                "'{name}' cannot be verified: there is no model of it; 'locklab verify' takes \
                 the locks that have a v in the table of 'locklab locks', and files"
            )));
        }
        candidates.push(Candidate::named(name).map_err(|e| Error::Usage(e.to_string()))?);
    }
    refuse_for_ours("--cflags", ours && own.cflags.is_some())?;
    refuse_for_ours("--dependencies", ours && (c11 || dependencies))?;
    Ok((candidates, assumptions))
}

/// Runs `locklab locks -o FILE`: writes the template.
///
/// # Errors
/// [`Error::Usage`] if the file exists already or is no C or C++ file by its
/// name, [`Error::Failed`] if it cannot be written.
pub(crate) fn new_lock(file: &Path, common: &Common) -> Result<String, Error> {
    check_writable(file, FileFormat::Lock, false)?;
    if common.dry_run {
        locklab_user_lock::check_template(file)?;
        return Ok(format!("Would write {}.\n", file.display()));
    }
    locklab_user_lock::write_template(file)?;
    let shown = file.display();
    if common.json {
        let document = json!({ "schema": 1, "kind": "lock", "file": file });
        return Ok(format!("{document:#}\n"));
    }
    Ok(format!(
        "Wrote {shown}, a ticket lock to start from.\nTry: locklab matrix {shown} qspinlock --on \
         xeon-8380-2s\n"
    ))
}
