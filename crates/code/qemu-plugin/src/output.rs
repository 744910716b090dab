// SPDX-License-Identifier: GPL-2.0-or-later
//! The files that a run leaves. It must never leave half a file: who reads one does not
//! know when QEMU ends.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, process};

/// Writes a file whole or not at all, so a reader never sees half a report.
///
/// # Errors
/// A message for the user, with the path, when the file beside it cannot be
/// written or renamed.
pub(crate) fn replace(path: &Path, content: &str) -> Result<(), String> {
    let mut beside = OsString::from(path);
    beside.push(format!(".{}", process::id()));
    fs::write(&beside, content)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|e| format!("cannot write the report {}: {e}", path.display()))
}
