//! The folders in which locks are compiled.
//!
//! A lock that a command has registered lives until the process ends, when
//! nothing is dropped any more, so the folders are kept in a list from which
//! the command removes them. It must never remove a folder that this process
//! did not make.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes a folder; `remove_folders` removes it, unless it is dropped before.
pub(crate) fn make(prefix: &str) -> std::io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.push(folder.path().to_owned());
    Ok(folder)
}

/// Removes every folder in which a lock was compiled: the last action of a
/// command. No lock of the user's own works after it.
pub fn remove_folders() {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in made.drain(..) {
        // Most were removed when they were dropped.
        let _ = std::fs::remove_dir_all(folder);
    }
}
