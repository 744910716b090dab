//! Locks of the user's own in a sweep: C or C++ files, and kernels' locks.
//!
//! Each lock is compiled once, when the sweep begins, and its objects are kept in
//! the folder of the sweep. Every task runs these objects, so a node needs
//! neither the source file nor a compiler. A task must never compile a lock, nor
//! run an object that was changed.
//!
//! ```text
//! locks/0/instrumented.so   for the simulator
//! locks/0/native.so         for real machines
//! ```

use crate::file::SweepFile;
use crate::plan::LockPair;
use locklab_host::error::Error;
use locklab_own_lock::{OwnLock, Source};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A lock whose objects are in the folder of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptLock {
    /// Its name in the file of the sweep.
    pub name: String,
    /// Hash of the preprocessed source text.
    pub source: String,
    /// Hash of the compiled objects.
    pub objects: String,
}

/// The locks that this process has compiled or loaded, by name.
static KNOWN: Mutex<BTreeMap<String, OwnLock>> = Mutex::new(BTreeMap::new());

fn known<T>(work: impl FnOnce(&mut BTreeMap<String, OwnLock>) -> T) -> T {
    work(&mut KNOWN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the names in a file that are not in the catalogue, without duplicates.
///
/// # Errors
/// A name is a path and there is no such file.
fn names(file: &SweepFile) -> Result<Vec<&String>, Error> {
    let mut names = Vec::new();
    for name in file.baseline.names().iter().chain(file.experiment.names()) {
        let is_own = Source::parse(name).map_err(of_file)?.is_some();
        if is_own && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Compiles the locks of a file, and registers them with the simulator.
///
/// # Errors
/// A file is missing, does not compile, or does something that cannot be
/// simulated; or `cflags` has an unclosed quote.
pub(crate) fn compile(file: &SweepFile) -> Result<(), Error> {
    let flags = match &file.cflags {
        None => Vec::new(),
        Some(text) => shlex::split(text).ok_or_else(|| {
            Error::Usage(format!("cflags = \"{text}\" has a quote without an end"))
        })?,
    };
    for name in names(file)? {
        if known(|known| known.contains_key(name)) {
            continue;
        }
        if let Some(lock) = OwnLock::named(name, &flags).map_err(of_file)? {
            register(name, lock).map_err(of_file)?;
        }
    }
    Ok(())
}

fn register(name: &str, lock: OwnLock) -> Result<(), locklab_host::error::Error> {
    lock.register(name)?;
    known(|known| known.insert(name.to_owned(), lock));
    Ok(())
}

/// Returns whether `name` is a lock of the user's that this process has compiled or
/// loaded.
pub(crate) fn is_known(name: &str) -> bool {
    known(|known| known.contains_key(name))
}

/// Returns the hash of the source of a lock of the user's own; `None` for a lock of the
/// catalogue.
pub(crate) fn source(name: &str) -> Option<String> {
    known(|known| known.get(name).map(|lock| lock.source().to_owned()))
}

/// Returns the hashes of the sources of a pair's locks, by name; `None` if both locks are
/// in the catalogue.
pub(crate) fn sources(pair: &LockPair) -> Option<BTreeMap<String, String>> {
    let source = |name: &String| Some((name.clone(), source(name)?));
    let both = [&pair.baseline, &pair.experiment];
    let sources: BTreeMap<String, String> = both.into_iter().filter_map(source).collect();
    (!sources.is_empty()).then_some(sources)
}

/// Copies the objects of a file's locks, which [`compile`] made, into the folder
/// of a sweep.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn keep(file: &SweepFile, folder: &Path) -> Result<Vec<KeptLock>, Error> {
    let mut kept = Vec::new();
    for name in names(file)? {
        let Some(lock) = known(|known| known.get(name).cloned()) else {
            continue;
        };
        let place = place(folder, kept.len());
        lock.keep(&place).map_err(of_folder)?;
        kept.push(KeptLock {
            name: name.clone(),
            source: lock.source().to_owned(),
            objects: hash_of(&place)?,
        });
    }
    Ok(kept)
}

/// Loads the locks that are kept in a folder, and registers them with the
/// simulator.
///
/// # Errors
/// An object cannot be read, or was changed since it was kept.
pub(crate) fn load(folder: &Path, kept: &[KeptLock]) -> Result<(), Error> {
    for (number, lock) in kept.iter().enumerate() {
        let place = place(folder, number);
        if hash_of(&place)? != lock.objects {
            return Err(Error::Failed(format!(
                "{} in {} is not what was compiled when the sweep was begun; begin another with \
                 --folder",
                lock.name,
                place.display()
            )));
        }
        let loaded = OwnLock::kept(&lock.name, &lock.source, &place).map_err(of_folder)?;
        register(&lock.name, loaded).map_err(of_folder)?;
    }
    Ok(())
}

/// Registers the loaded locks with the native instrument.
///
/// # Errors
/// An object cannot be loaded into this process, or there are more than two.
pub(crate) fn register_native(kept: &[KeptLock]) -> Result<(), Error> {
    for lock in kept {
        let loaded = known(|known| known.get(&lock.name).cloned());
        if let Some(loaded) = loaded {
            loaded.register_here(&lock.name).map_err(of_folder)?;
        }
    }
    Ok(())
}

/// Checks that the locks that were just compiled have the source of those that a
/// folder keeps.
///
/// # Errors
/// The source of a lock was changed since the sweep began.
pub(crate) fn check(folder: &Path, kept: &[KeptLock]) -> Result<(), Error> {
    let changed = |lock: &&KeptLock| source(&lock.name).is_some_and(|now| now != lock.source);
    match kept.iter().find(changed) {
        None => Ok(()),
        Some(lock) => Err(Error::Failed(format!(
            "{} was changed since the sweep in {} was begun: figures of two locks are not one \
             sweep; put it back, or begin another with --folder",
            lock.name,
            folder.display()
        ))),
    }
}

/// Returns a fault of the file of a sweep, or of a lock that it names.
fn of_file(error: locklab_host::error::Error) -> Error {
    Error::Usage(error.to_string())
}

/// Returns a fault of a lock in the folder of a sweep.
fn of_folder(error: locklab_host::error::Error) -> Error {
    Error::Failed(error.to_string())
}

fn place(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("locks/{number}"))
}

/// Returns the hash of the contents of a folder's files, in the order of their names.
fn hash_of(folder: &Path) -> Result<String, Error> {
    let cannot = |e: std::io::Error| {
        Error::Failed(format!(
            "cannot read the compiled lock in {}: {e}; begin another sweep with --folder",
            folder.display()
        ))
    };
    let entries = fs::read_dir(folder).map_err(cannot)?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(fs::read(&file).map_err(cannot)?);
    }
    let digest = hash.finalize();
    Ok(digest.iter().take(8).map(|b| format!("{b:02x}")).collect())
}
