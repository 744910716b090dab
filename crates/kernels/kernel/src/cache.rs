//! The cache folder of sources and builds, and the programs that
//! fill it.

use locklab_host::error::Error;
use locklab_host::message;
use locklab_host::process::{Ended, Launch, Trouble};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The state that every step needs: the cache folder, and whether to stop.
pub struct Cache<'a> {
    /// Folder of sources and builds.
    pub root: PathBuf,
    /// Set by Ctrl-C.
    pub interrupt: &'a AtomicBool,
    /// Says whether progress and notes are suppressed.
    pub quiet: bool,
}

impl Cache<'_> {
    /// Returns the default cache: `kernel` in the user's cache folder.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no home folder.
    pub fn default_root() -> Result<PathBuf, Error> {
        directories::ProjectDirs::from("", "", "locklab")
            .map(|dirs| dirs.cache_dir().join("kernel"))
            .ok_or_else(|| {
                Error::Usage("there is no home folder to keep kernels in; give --cache DIR".into())
            })
    }

    /// Returns a folder in the cache, made if necessary.
    ///
    /// # Errors
    /// [`Error::Failed`] if it cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).map_err(|e| self.cannot_write(&path, &e))?;
        Ok(path)
    }

    /// Waits until no other command works in a folder of the cache, and
    /// excludes others while the returned lock lives.
    ///
    /// # Errors
    /// If the folder cannot be written, or after Ctrl-C.
    pub fn hold(&self, folder: &Path, what: &str) -> Result<Flock<File>, Error> {
        let path = folder.join("lock");
        let mut file = File::create(&path).map_err(|e| self.cannot_write(&path, &e))?;
        let mut told = false;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(held) => return Ok(held),
                Err((back, Errno::EWOULDBLOCK | Errno::EINTR)) => file = back,
                Err((_, e)) => return Err(self.cannot_write(&path, &e.into())),
            }
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(stopped("make", Trouble::Interrupted));
            }
            if !told {
                self.note(&format!("another command {what}; waiting for it"));
                told = true;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Returns the error of a file in the cache that cannot be written.
    #[must_use]
    pub fn cannot_write(&self, path: &Path, e: &std::io::Error) -> Error {
        if e.raw_os_error() == Some(libc::ENOSPC) {
            return self.full();
        }
        Error::Failed(format!(
            "cannot write {}: {e}; give another cache with --cache DIR",
            path.display()
        ))
    }

    /// Returns the error of a full disk.
    #[must_use]
    pub fn full(&self) -> Error {
        Error::Failed(format!(
            "the disk of the cache {} is full; remove builds from it, or give another with \
             --cache DIR",
            self.root.display()
        ))
    }

    /// Prints a note for the user, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            message::print(format_args!("locklab: {text}"));
        }
    }

    /// Runs a program to its end; its output is in `log` with `.out` and
    /// `.err`.
    ///
    /// # Errors
    /// If it did not start or took too long, or after Ctrl-C.
    pub fn run(
        &self,
        tool: &Tool,
        arguments: &[OsString],
        folder: &Path,
        log: &Path,
        limit: Duration,
    ) -> Result<Ended, Error> {
        Launch {
            program: tool.path.clone(),
            arguments: arguments.to_vec(),
            environment: tool.environment.clone(),
            folder: folder.to_owned(),
            cpus: Vec::new(),
            fixed: false,
        }
        .run(log, limit, self.interrupt)
        .map_err(|trouble| stopped(tool.name, trouble))
    }
}

/// Returns the error of a program that did not end by itself.
#[must_use]
pub fn stopped(name: &str, trouble: Trouble) -> Error {
    match trouble {
        Trouble::Interrupted => Error::Interrupted(
            "interrupted; what was built is kept, and the same command continues from there".into(),
        ),
        Trouble::NotStarted(why) => Error::Failed(why),
        Trouble::TooLong(limit) => Error::Failed(format!(
            "{name} ran longer than {} s and was stopped",
            limit.as_secs()
        )),
    }
}

/// A program that was found.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The name of the program.
    pub name: &'static str,
    /// The path of the program.
    pub path: PathBuf,
    /// Environment variables for it.
    pub environment: Vec<(OsString, OsString)>,
}

/// Finds a program.
///
/// # Errors
/// [`Error::Failed`] if it is missing; the message names the Debian package.
pub fn find(name: &'static str, package: &str) -> Result<Tool, Error> {
    locklab_host::process::find(name, &[])
        .map(|path| Tool {
            name,
            path,
            environment: Vec::new(),
        })
        .ok_or_else(|| {
            Error::Failed(format!(
                "{name} is missing; install it (apt-get install {package})"
            ))
        })
}

/// Returns the first line of a program's output with this argument, for versions.
///
/// # Errors
/// [`Error::Failed`] if it does not start.
pub fn first_line(program: &Path, argument: &str) -> Result<String, Error> {
    let output = std::process::Command::new(program)
        .arg(argument)
        .output()
        .map_err(|e| Error::Failed(format!("cannot start {}: {e}", program.display())))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Returns a name for content: 16 hexadecimal digits of its SHA-256.
#[must_use]
pub fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Converts words to arguments.
#[must_use]
pub fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_where_a_part_ends() {
        let split = |parts: &[&[u8]]| key(parts.iter().copied());
        assert_ne!(split(&[b"ab", b"c"]), split(&[b"a", b"bc"]));
        assert_eq!(split(&[b"ab"]).len(), 16);
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let error = find("no-such-program", "some-package").unwrap_err();
        assert!(error.to_string().contains("apt-get install some-package"));
    }
}
