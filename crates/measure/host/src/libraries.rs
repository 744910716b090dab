//! The location of the libraries that Locklab loads into other programs.
//!
//! They are built apart from the command (`cargo build` of a command does
//! not build a library that nothing links), so a missing one is reported with
//! the line that builds it.

use std::path::PathBuf;

/// Names the reason why a library cannot be loaded into another program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The loader splits its list at some characters, and has no way to quote
    /// them.
    #[error("the loader cannot load {0}: its path has a space or a colon; move it")]
    NotLoadable(PathBuf),
    /// The environment variable names a path without a file.
    #[error(
        "{variable} names {path}, which is no file; cargo build --release -p {package} makes it"
    )]
    NoFile {
        /// The environment variable that names the path.
        variable: &'static str,
        /// The path that it names.
        path: PathBuf,
        /// The package of the library.
        package: &'static str,
    },
    /// It is in none of the usual folders.
    #[error(
        "{file} is not beside locklab; cargo build --release -p {package} makes it, or {variable} \
         names another"
    )]
    Missing {
        /// The library's file.
        file: &'static str,
        /// The package that the library is built from.
        package: &'static str,
        /// The environment variable that may name another.
        variable: &'static str,
    },
    /// The path of the command itself, beside which it is looked for, is
    /// unknown.
    #[error("cannot tell where locklab itself is: {0}; name the library by {1}")]
    NoCommand(String, &'static str),
}

/// Returns the interposer that puts a lock under pthread mutexes.
///
/// # Errors
/// If the library is not there, or its path has a space or a colon, which the
/// loader cannot handle.
pub fn preload_library() -> Result<PathBuf, LibraryError> {
    loadable(library(
        "LOCKLAB_PRELOAD",
        "liblocklab_preload.so",
        "locklab-preload",
    )?)
}

/// Returns the library that records a program's own locks.
///
/// # Errors
/// As of [`preload_library`].
pub fn recorder_library() -> Result<PathBuf, LibraryError> {
    loadable(library(
        "LOCKLAB_RECORDER",
        "liblocklab_recorder.so",
        "locklab-recorder",
    )?)
}

/// Returns a library that the loader can be told to load first.
fn loadable(found: PathBuf) -> Result<PathBuf, LibraryError> {
    let bytes = found.as_os_str().as_encoded_bytes();
    if bytes.iter().any(|b| b": ".contains(b)) {
        return Err(LibraryError::NotLoadable(found));
    }
    Ok(found)
}

/// Returns the QEMU plugin with the i-cache model.
///
/// # Errors
/// If the plugin is not there.
pub fn qemu_plugin() -> Result<PathBuf, LibraryError> {
    library(
        "LOCKLAB_QEMU_PLUGIN",
        "liblocklab_qemu_plugin.so",
        "locklab-qemu-plugin",
    )
}

/// Finds a library beside the command, in the release folder beside the
/// command's own, or where the environment variable says.
fn library(
    variable: &'static str,
    file: &'static str,
    package: &'static str,
) -> Result<PathBuf, LibraryError> {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        return match std::path::absolute(&path) {
            Ok(absolute) if absolute.is_file() => Ok(absolute),
            _ => Err(LibraryError::NoFile {
                variable,
                path,
                package,
            }),
        };
    }
    let command =
        std::env::current_exe().map_err(|e| LibraryError::NoCommand(e.to_string(), variable))?;
    let here = command.parent().unwrap_or(&command);
    // A test's executable lies one folder deeper.
    let folders = [
        Some(here.to_path_buf()),
        here.parent().map(|p| p.join("release")),
        here.parent()
            .and_then(|p| p.parent())
            .map(|p| p.join("release")),
        here.parent().map(|p| p.join("lib")),
        here.parent().map(|p| p.join("lib/locklab")),
    ];
    folders
        .into_iter()
        .flatten()
        .map(|folder| folder.join(file))
        .find(|path| path.is_file())
        .ok_or(LibraryError::Missing {
            file,
            package,
            variable,
        })
}
