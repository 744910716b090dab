//! Small JSON files in the folder of a sweep, each replaced in one step, so that a
//! reader never sees a part of one.

use crate::tool;
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
