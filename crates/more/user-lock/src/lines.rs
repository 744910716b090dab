//! Finds the source line of an address in a compiled lock.
//!
//! Must never read debug information when it is asked: a modelled thread asks, and its
//! stack is too small for that.

use std::path::Path;

/// Holds the source lines of one library's code.
#[derive(Default)]
pub(crate) struct Lines {
    /// Holds the paths of its source files.
    paths: Vec<String>,
    /// Is sorted by address.
    rows: Vec<Row>,
}

/// Gives the line of some bytes of code.
struct Row {
    first: u64,
    bytes: u64,
    /// Is the place of its file in `paths`.
    path: usize,
    line: u32,
    /// Is 0 if it is not known.
    column: u32,
}

impl Lines {
    /// Reads the debug information of a library; it is empty if there is none.
    pub(crate) fn of(library: &Path) -> Self {
        let mut lines = Self::default();
        let Ok(loader) = addr2line::Loader::new(library) else {
            return lines;
        };
        let Ok(rows) = loader.find_location_range(0, u64::MAX) else {
            return lines;
        };
        for (first, bytes, location) in rows {
            let (Some(path), Some(line)) = (location.file, location.line) else {
                continue;
            };
            let known = lines.paths.iter().rposition(|known| known == path);
            let path = known.unwrap_or_else(|| {
                lines.paths.push(path.to_owned());
                lines.paths.len() - 1
            });
            let column = location.column.unwrap_or(0);
            lines.rows.push(Row {
                first,
                bytes,
                path,
                line,
                column,
            });
        }
        lines.rows.sort_by_key(|row| row.first);
        lines
    }

    /// Returns the line of the instruction before `offset`, the address that a call
    /// returns to: `mylock.c:12`.
    pub(crate) fn of_call(&self, offset: usize) -> Option<String> {
        self.at(offset.checked_sub(1)?)
    }

    /// Returns the line of the instruction at `offset`.
    pub(crate) fn at(&self, offset: usize) -> Option<String> {
        let (_, file, line, _) = self.position(offset)?;
        Some(format!("{file}:{line}"))
    }

    /// Returns path, short file name, line and column (0 if not known) of the
    /// instruction at `offset`.
    pub(crate) fn position(&self, offset: usize) -> Option<(String, String, u32, u32)> {
        let offset = offset as u64;
        let behind = self.rows.partition_point(|row| row.first <= offset);
        let row = &self.rows[behind.checked_sub(1)?];
        if offset - row.first >= row.bytes {
            return None;
        }
        let path = &self.paths[row.path];
        Some((path.clone(), short(path).to_owned(), row.line, row.column))
    }
}

/// Returns a short path: from the kernel's own folders, or the file's name.
fn short(path: &str) -> &str {
    for folder in ["/kernel/locking/", "/include/", "/arch/"] {
        if let Some(at) = path.rfind(folder) {
            return &path[at + 1..];
        }
    }
    path.rsplit('/').next().unwrap_or(path)
}
