//! What can be wrong with an input, each as one sentence: what, where, and
//! what to do next. Exists so that no other module words a message. Must
//! never carry a partial result: a comparison of half a file would mislead.

use std::path::{Path, PathBuf};

/// Names the reason why two inputs could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is at the path.
    #[error("{} does not exist; check the path.", path.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// The user may not read the path.
    #[error("{} may not be read by this user; change its permissions or run as its owner.", path.display())]
    Permission {
        /// The file or folder that refused.
        path: PathBuf,
    },
    /// The system failed to read the path.
    #[error("{} cannot be read: {source}; check the disk and try again.", path.display())]
    Read {
        /// The file or folder that failed.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The path is a device, pipe or socket.
    #[error("{} is neither a file nor a folder; give an ELF file, an archive, or a folder of them.", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{} is empty; build or copy it again.", path.display())]
    EmptyFile {
        /// The path as given, or below the folder that was given.
        path: PathBuf,
    },
    /// The folder holds nothing that can be compared.
    #[error("{} holds no ELF file and no archive of them; give the folder of the build.", path.display())]
    EmptyFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The archive has no ELF member.
    #[error("{} is an archive without an ELF member; give one made of object files.", path.display())]
    EmptyArchive {
        /// The path as given, or below the folder that was given.
        path: PathBuf,
    },
    /// The file is of another format.
    #[error("{} is {what}, not an ELF file or an archive of them; {remedy}.", path.display())]
    NotElf {
        /// The path as given, or below the folder that was given.
        path: PathBuf,
        /// Names the kind of file, as far as its first bytes tell.
        what: &'static str,
        /// Names the input to give instead.
        remedy: &'static str,
    },
    /// The file is ELF or an archive, but its tables do not fit it.
    #[error("{label} is truncated or damaged ({reason}); build or copy it again.")]
    Damaged {
        /// The file, with the member in brackets where it is an archive.
        label: String,
        /// Names the part that does not fit.
        reason: String,
    },
    /// One side is a file and the other a folder.
    #[error("{} is a folder and {} is a file; give two files or two folders.", folder.display(), file.display())]
    FolderAgainstFile {
        /// The side that is a folder.
        folder: PathBuf,
        /// The side that is a file.
        file: PathBuf,
    },
    /// Execution counts were given for something that is not one linked file.
    #[error(
        "{label} is not a linked executable or kernel image, so counts cannot be placed in it; give the file that was run."
    )]
    NotLinked {
        /// The file, archive or folder.
        label: String,
    },
    /// A line of a file of counts cannot be read.
    #[error(
        "line {line} of the counts ({text:?}) is not an address or symbol and a count; write for example 0x401000 12."
    )]
    Counts {
        /// The line, from 1.
        line: usize,
        /// Holds the text of the line.
        text: String,
    },
}

impl Error {
    /// Returns an I/O error, classified by what a user can do about it.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            std::io::ErrorKind::NotFound => Self::Missing { path },
            std::io::ErrorKind::PermissionDenied => Self::Permission { path },
            _ => Self::Read { path, source },
        }
    }

    pub(crate) fn damaged(label: &str, reason: impl ToString) -> Self {
        Self::Damaged {
            label: label.to_string(),
            reason: reason.to_string(),
        }
    }
}
