//! Folders that locks are compiled in.
//!
//! A lock that a command has registered lives until the process ends, when
//! nothing is dropped any more, so the folders are on a list from which the
//! command removes them. Must never remove what this process did not make.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A new folder; `remove_folders` removes it, if nobody drops it before.
pub(crate) fn make(prefix: &str) -> std::io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.push(folder.path().to_owned());
    Ok(folder)
}

/// Removes every folder that a lock was compiled in: the last that a command
/// does. No lock of a user's own works after it.
pub fn remove_folders() {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in made.drain(..) {
        // Most were removed when they were dropped.
        let _ = std::fs::remove_dir_all(folder);
    }
}
