//! From an address in a compiled lock to its source line.

use std::path::Path;

/// The debug information of one library.
pub(crate) struct Lines {
    loader: Option<addr2line::Loader>,
}

impl Lines {
    /// Reads the debug information of a library; it is empty if there is none.
    pub(crate) fn of(library: &Path) -> Self {
        Self {
            loader: addr2line::Loader::new(library).ok(),
        }
    }

    /// The line of the instruction before `offset`, the address that a call
    /// returns to: `mylock.c:12`.
    pub(crate) fn of_call(&self, offset: usize) -> Option<String> {
        self.at(offset.checked_sub(1)?)
    }

    /// The line of the instruction at `offset`.
    pub(crate) fn at(&self, offset: usize) -> Option<String> {
        let (_, file, line, _) = self.position(offset)?;
        Some(format!("{file}:{line}"))
    }

    /// Path, short file name, line and column (0 if not known) of the
    /// instruction at `offset`.
    pub(crate) fn position(&self, offset: usize) -> Option<(String, String, u32, u32)> {
        let location = self.loader.as_ref()?.find_location(offset as u64).ok()??;
        let path = location.file?;
        Some((
            path.to_owned(),
            short(path).to_owned(),
            location.line?,
            location.column.unwrap_or(0),
        ))
    }
}

/// A short path: from the kernel's own folders, or the file's name.
fn short(path: &str) -> &str {
    for folder in ["/kernel/locking/", "/include/", "/arch/"] {
        if let Some(at) = path.rfind(folder) {
            return &path[at + 1..];
        }
    }
    path.rsplit('/').next().unwrap_or(path)
}
