//! Small JSON files in the folder of a sweep, each replaced in one step, so that a
//! reader never sees a part of one.

use crate::tool;
use locklab_lab::store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::Write as _;
use std::path::Path;

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), String> {
    let new = path.with_extension("json.new");
    let text = serde_json::to_string(value).map_err(|e| e.to_string())?;
    let write = || {
        let mut file = fs::File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        drop(file);
        fs::rename(&new, path)
    };
    write().map_err(|e: std::io::Error| format!("cannot write {}: {e}", path.display()))
}

/// Whether a file has this text.
pub(crate) fn is_same(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|there| there == text)
}

/// The file that says what is fixed, in a folder of each kind of sweep.
const FIXED: [(&str, &str); 3] = [
    ("plan.json", "modelled machines"),
    ("fleet.json", "real machines"),
    ("kernels.json", "kernels"),
];

/// Checks that a folder has no sweep of another kind than that of the file
/// `mine`.
///
/// # Errors
/// It has one.
pub(crate) fn not_another(path: &Path, mine: &str) -> Result<(), String> {
    let other = |(file, _): &&(&str, &str)| *file != mine && path.join(file).exists();
    match FIXED.iter().find(other) {
        None => Ok(()),
        Some((_, kind)) => Err(format!(
            "{} has a sweep of {kind}; give --folder with a new one",
            path.display()
        )),
    }
}

/// A new store at `path`, in place of what a killed command left there.
///
/// # Errors
/// It cannot be written.
pub(crate) fn new_store(path: &Path) -> Result<Store, String> {
    for old in [path.to_owned(), path.with_extension("part-journal")] {
        if old.exists() {
            fs::remove_file(&old).map_err(|e| format!("cannot write {}: {e}", old.display()))?;
        }
    }
    Store::open_alone(path)
}

pub(crate) fn make_folders(path: &Path, parts: &[&str]) -> Result<(), String> {
    for part in parts {
        let part = path.join(part);
        fs::create_dir_all(&part)
            .map_err(|e| format!("cannot begin the sweep: {}: {e}", part.display()))?;
    }
    Ok(())
}

/// The error for a folder without a readable sweep.
pub(crate) fn no_sweep(path: &Path, e: &dyn std::fmt::Display) -> String {
    format!(
        "there is no sweep in {} that {} can read: {e}; if this is a node of a cluster, the \
         folder must lie where all nodes share it",
        path.display(),
        tool::node()
    )
}
