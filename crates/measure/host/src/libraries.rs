//! The location of shared libraries that are built apart from the command.
//!
//! Cargo's build of a command does not build a library that nothing links, so a missing one
//! is reported with the line that builds it. (The libraries of `run` and `record` are part of
//! the command: `locklab-preload-run`.)

use crate::error::Error;
use std::path::PathBuf;

/// Returns the QEMU plugin with the i-cache model. Its licence is another one than the
/// command's, so it is a file of its own.
///
/// # Errors
/// If the plugin is not there.
pub fn qemu_plugin() -> Result<PathBuf, Error> {
    let (variable, package) = ("LOCKLAB_QEMU_PLUGIN", "locklab-qemu-plugin");
    let file = "liblocklab_qemu_plugin.so";
    if let Some(path) = named(variable, package)? {
        return Ok(path);
    }
    beside(file)?.ok_or_else(|| {
        Error::Failed(format!(
            "{file} is not beside locklab; cargo build --release -p {package} makes it, or \
             {variable} names another"
        ))
    })
}

/// Returns the library that an environment variable names, if it is set.
///
/// # Errors
/// If it names no file; the sentence says that the package makes one.
pub fn named(variable: &str, package: &str) -> Result<Option<PathBuf>, Error> {
    let Some(path) = std::env::var_os(variable) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    match std::path::absolute(&path) {
        Ok(absolute) if absolute.is_file() => Ok(Some(absolute)),
        _ => Err(Error::Failed(format!(
            "{variable} names {}, which is no file; cargo build --release -p {package} makes it",
            path.display()
        ))),
    }
}

/// Finds a library beside the command, in the release folder beside the command's own, or
/// where packages install it.
///
/// # Errors
/// If the command's own place cannot be told.
pub fn beside(file: &str) -> Result<Option<PathBuf>, Error> {
    let command = std::env::current_exe()
        .map_err(|e| Error::Failed(format!("cannot tell where locklab itself is: {e}")))?;
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
    let files = folders.into_iter().flatten().map(|f| f.join(file));
    Ok(files.into_iter().find(|path| path.is_file()))
}
