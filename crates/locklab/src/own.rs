//! Locks of the user's own, wherever a command asks for the name of a lock:
//! a C or C++ file, or a kernel's lock.
//!
//! They are compiled before a command begins, so that what is wrong with a
//! file is said first, and are then found by the name that the user wrote.

use crate::cli::{Cli, Command, Common};
use locklab_host::error::Error;
use locklab_locks::catalogue::Visitor;
use locklab_locks::{Fairness, Info, NativePlatform, RawLock};
use locklab_native::LockCode;
use locklab_native::subject::{self, Subject};
use locklab_own_lock::{Error as OwnError, OwnLock, TEMPLATE};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Compiles and registers every lock of a command line that is none of ours.
///
/// # Errors
/// One sentence: nothing there, it does not compile, or cannot be simulated.
pub(crate) fn register(cli: &Cli) -> Result<(), Error> {
    let Command::Matrix(args) = &cli.command else {
        return Ok(());
    };
    let is_here = args.on.as_ref().is_none_or(|machine| machine == "native");
    let mut names = vec![&args.baseline];
    // The same twice is one.
    names.extend(
        args.experiment
            .as_ref()
            .filter(|name| **name != args.baseline),
    );
    for name in names {
        if let Some(lock) = named(name, &cli.common, &[])? {
            if is_here {
                register_here(name, &lock).map_err(said)?;
            } else {
                lock.register(name);
            }
        }
    }
    Ok(())
}

/// The lock of the user's own that `name` says, compiled with what `--cflags`
/// says and these flags beside; none if it is a name of ours.
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

/// What is known of a lock without running it, under this name.
pub(crate) fn subject_of(name: &str, lock: &OwnLock) -> Subject {
    let facts = lock.facts();
    Subject {
        info: Info {
            // As long as the process, which names few.
            name: name.to_owned().leak(),
            summary: "your own",
            fairness: if facts.fifo {
                Fairness::Fifo
            } else {
                Fairness::Unfair
            },
            try_lock: facts.try_lock,
            max_cpus: facts.max_cpus.unwrap_or(locklab_locks::MAX_CPUS),
            bytes_per_waiter: if facts.ctx_bytes > 1 {
                facts.ctx_bytes
            } else {
                0
            },
            ..Info::BASE
        },
        bytes: facts.lock_bytes,
        context_free: facts.ctx_bytes <= 1,
        peer: false,
    }
}

/// Has a lock found by this name on this machine's own CPUs.
fn register_here(name: &str, lock: &OwnLock) -> Result<(), OwnError> {
    struct Code;
    impl Visitor<NativePlatform> for Code {
        type Output = LockCode;
        fn visit<L: RawLock<NativePlatform>>(self) -> LockCode {
            LockCode::of::<L>()
        }
    }
    subject::register(subject_of(name, lock), lock.load_native()?.visit(Code)?);
    Ok(())
}

/// Our own error for one of a lock's.
pub(crate) fn said(error: OwnError) -> Error {
    match error {
        OwnError::Usage(text) => Error::Usage(text),
        other => Error::Failed(other.to_string()),
    }
}

/// `locklab new-lock FILE`: writes the template.
///
/// # Errors
/// The file is there already, or cannot be written.
pub(crate) fn new_lock(file: &Path) -> Result<String, Error> {
    let shown = file.display();
    let text = TEMPLATE.replace(" FILE ", &format!(" {shown} "));
    File::create_new(file)
        .and_then(|mut new| new.write_all(text.as_bytes()))
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::Usage(format!("{shown} is there already; name another file"))
            }
            _ => Error::Failed(format!("cannot write {shown}: {e}")),
        })?;
    Ok(format!(
        "Wrote {shown}, a ticket lock to start from.\nTry: locklab matrix {shown} qspinlock --on \
         xeon-8380-2s\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.c");
        assert!(new_lock(&file).unwrap().contains("mine.c qspinlock --on"));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("LOCKLAB_LOCK") && !text.contains(" FILE "));
        assert!(new_lock(&file).unwrap_err().to_string().contains("already"));
        let nowhere = folder.path().join("no/folder/mine.c");
        assert!(
            new_lock(&nowhere)
                .unwrap_err()
                .to_string()
                .contains("cannot write")
        );
    }
}
