//! Locks of the user's own in a sweep: C or C++ files, and kernels' locks.
//!
//! Each is compiled once, where the sweep is begun, and the objects lie in its
//! folder: every task runs these, whatever its node has of files and
//! compilers. Must never compile in a task, nor run an object that was changed.
//!
//! ```text
//! locks/0/instrumented.so   for the simulator
//! locks/0/native.so         for real machines
//! ```

use crate::file::SweepFile;
use crate::plan::LockPair;
use locklab_own_lock::{OwnLock, Source};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A lock whose objects are in the folder of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLock {
    /// As the sweep's file names it.
    pub name: String,
    /// Hash of the text that it was compiled from, with all that it includes.
    pub source: String,
    /// Hash of its objects.
    pub objects: String,
}

/// By their names, those that this process has compiled or loaded.
static KNOWN: Mutex<BTreeMap<String, OwnLock>> = Mutex::new(BTreeMap::new());

fn known<T>(work: impl FnOnce(&mut BTreeMap<String, OwnLock>) -> T) -> T {
    work(&mut KNOWN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Names of a file that are none of the catalogue's, each once.
///
/// # Errors
/// One sentence: no such file.
fn names(file: &SweepFile) -> Result<Vec<&String>, String> {
    let mut names = Vec::new();
    for name in file.baseline.names().iter().chain(file.experiment.names()) {
        let is_own = Source::parse(name).map_err(|e| e.to_string())?.is_some();
        if is_own && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Compiles the locks of a file, and has the simulator find them.
///
/// # Errors
/// One sentence: not there, it does not compile, or cannot be simulated.
pub(crate) fn compile(file: &SweepFile) -> Result<(), String> {
    let flags = match &file.cflags {
        None => Vec::new(),
        Some(text) => shlex::split(text)
            .ok_or_else(|| format!("cflags = \"{text}\" has a quote without an end"))?,
    };
    for name in names(file)? {
        if known(|known| known.contains_key(name)) {
            continue;
        }
        if let Some(lock) = OwnLock::named(name, &flags).map_err(|e| e.to_string())? {
            register(name, lock);
        }
    }
    Ok(())
}

fn register(name: &str, lock: OwnLock) {
    lock.register(name);
    known(|known| known.insert(name.to_owned(), lock));
}

/// Whether it is a lock of the user's that was compiled or loaded.
pub(crate) fn is_known(name: &str) -> bool {
    known(|known| known.contains_key(name))
}

/// What a lock of the user's own was compiled from; none of the catalogue's.
pub(crate) fn source(name: &str) -> Option<String> {
    known(|known| known.get(name).map(|lock| lock.source().to_owned()))
}

/// The same of both locks of a pair, by their names; none if both are the
/// catalogue's.
pub(crate) fn sources(pair: &LockPair) -> Option<BTreeMap<String, String>> {
    let source = |name: &String| Some((name.clone(), source(name)?));
    let both = [&pair.baseline, &pair.experiment];
    let sources: BTreeMap<String, String> = both.into_iter().filter_map(source).collect();
    (!sources.is_empty()).then_some(sources)
}

/// Puts the objects of a file's locks, which were compiled, into the folder of
/// a sweep.
///
/// # Errors
/// One sentence: the folder cannot be written.
pub(crate) fn keep(file: &SweepFile, folder: &Path) -> Result<Vec<KeptLock>, String> {
    let mut kept = Vec::new();
    for name in names(file)? {
        let Some(lock) = known(|known| known.get(name).cloned()) else {
            continue;
        };
        let place = place(folder, kept.len());
        lock.keep(&place).map_err(|e| e.to_string())?;
        kept.push(KeptLock {
            name: name.clone(),
            source: lock.source().to_owned(),
            objects: hash_of(&place)?,
        });
    }
    Ok(kept)
}

/// Loads the locks that are kept in a folder.
///
/// # Errors
/// One sentence: an object is not the one that was kept.
pub(crate) fn load(folder: &Path, kept: &[KeptLock]) -> Result<(), String> {
    for (number, lock) in kept.iter().enumerate() {
        let place = place(folder, number);
        if hash_of(&place)? != lock.objects {
            return Err(format!(
                "{} in {} is not what was compiled when the sweep was begun; begin another with \
                 --folder",
                lock.name,
                place.display()
            ));
        }
        let loaded = OwnLock::kept(&lock.name, &lock.source, &place).map_err(|e| e.to_string())?;
        register(&lock.name, loaded);
    }
    Ok(())
}

/// Has this machine's own CPUs run the locks that were loaded.
///
/// # Errors
/// One sentence: an object cannot be loaded, or is a third one.
pub(crate) fn register_native(kept: &[KeptLock]) -> Result<(), String> {
    for lock in kept {
        let loaded = known(|known| known.get(&lock.name).cloned());
        if let Some(loaded) = loaded {
            loaded
                .register_here(&lock.name)
                .map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Whether the locks that were just compiled are those that a folder keeps.
///
/// # Errors
/// One sentence: which was changed since.
pub(crate) fn check(folder: &Path, kept: &[KeptLock]) -> Result<(), String> {
    let changed = |lock: &&KeptLock| source(&lock.name).is_some_and(|now| now != lock.source);
    match kept.iter().find(changed) {
        None => Ok(()),
        Some(lock) => Err(format!(
            "{} was changed since the sweep in {} was begun: figures of two locks are not one \
             sweep; put it back, or begin another with --folder",
            lock.name,
            folder.display()
        )),
    }
}

fn place(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("locks/{number}"))
}

/// Of all files of a folder, by their names.
fn hash_of(folder: &Path) -> Result<String, String> {
    let cannot = |e: std::io::Error| {
        format!(
            "cannot read the compiled lock in {}: {e}; begin another sweep with --folder",
            folder.display()
        )
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
