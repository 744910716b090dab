//! The location of the libraries that Locklab loads into other programs.
//!
//! They are built apart from the command (`cargo build` of a command does
//! not build a library that nothing links), so a missing one is reported with
//! the line that builds it.

use crate::error::Error;
use std::path::PathBuf;

/// The interposer that puts a lock under pthread mutexes.
///
/// # Errors
/// If the library is not there, or its path has a space or a colon, which the
/// loader cannot handle.
pub fn preload_library() -> Result<PathBuf, Error> {
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
pub fn recorder_library() -> Result<PathBuf, Error> {
    loadable(library(
        "LOCKLAB_RECORDER",
        "liblocklab_recorder.so",
        "locklab-recorder",
    )?)
}

/// A library that the loader can be told to load first.
fn loadable(found: PathBuf) -> Result<PathBuf, Error> {
    let bytes = found.as_os_str().as_encoded_bytes();
    if bytes.iter().any(|b| b": ".contains(b)) {
        return Err(Error::Failed(format!(
            "the loader cannot load {}: its path has a space or a colon; move it",
            found.display()
        )));
    }
    Ok(found)
}

/// Returns the QEMU plugin with the i-cache model.
///
/// # Errors
/// If the plugin is not there.
pub fn qemu_plugin() -> Result<PathBuf, Error> {
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
) -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        return match std::path::absolute(&path) {
            Ok(absolute) if absolute.is_file() => Ok(absolute),
            _ => Err(Error::Failed(format!(
                "{variable} names {}, which is no file; cargo build --release -p {package} makes \
                 it",
                path.display()
            ))),
        };
    }
    let command = std::env::current_exe().map_err(|e| {
        Error::Failed(format!(
            "cannot tell where locklab itself is: {e}; name the library by {variable}"
        ))
    })?;
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
        .ok_or_else(|| {
            Error::Failed(format!(
                "{file} is not beside locklab; cargo build --release -p {package} makes it, or \
                 {variable} names another"
            ))
        })
}
