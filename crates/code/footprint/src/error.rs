//! The sentences about an input that several modules give: what is wrong,
//! where, and what to do next. An error never carries a partial result: a
//! comparison of half a file would mislead.

use locklab_host::error::Error;
use std::path::Path;

/// Returns an I/O error, classified by what a user can do about it.
pub(crate) fn io(path: &Path, source: &std::io::Error) -> Error {
    let path = path.display();
    Error::Failed(match source.kind() {
        std::io::ErrorKind::NotFound => format!("{path} does not exist; check the path."),
        std::io::ErrorKind::PermissionDenied => format!(
            "{path} may not be read by this user; change its permissions or run as its owner."
        ),
        _ => format!("{path} cannot be read: {source}; check the disk and try again."),
    })
}

/// Reports a file that is ELF or an archive, with tables that do not fit it. `label`
/// is the file, with the member in brackets where it is an archive.
pub(crate) fn damaged(label: &str, reason: impl std::fmt::Display) -> Error {
    Error::Failed(format!(
        "{label} is truncated or damaged ({reason}); build or copy it again."
    ))
}

/// Reports a folder without anything that can be compared.
pub(crate) fn empty_folder(path: &Path) -> Error {
    Error::Failed(format!(
        "{} holds no ELF file and no archive of them; give the folder of the build.",
        path.display()
    ))
}

/// Reports execution counts of something that is not one linked file.
pub(crate) fn not_linked(label: impl std::fmt::Display) -> Error {
    Error::Failed(format!(
        "{label} is not a linked executable or kernel image, so counts cannot be placed in it; \
         give the file that was run."
    ))
}
