//! Holds what belongs to one session with a test machine: a folder of its own, a
//! client's and a host's key, and tokens that name one start of one kernel.
//!
//! The keys are made anew for each session and lie in the initramfs, so that a
//! kernel of another session, or another machine, is never taken for one of
//! this. They must never be written anywhere else.

use crate::cache::{Cache, find, words};
use locklab_host::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A session's folder and keys.
#[derive(Debug)]
pub(crate) struct Session {
    folder: TempDir,
}

impl Session {
    /// Returns a new session, with keys of its own.
    ///
    /// # Errors
    /// [`Error::Failed`] if ssh-keygen or dropbear is missing, or the cache
    /// cannot be written.
    pub(crate) fn new(cache: &Cache<'_>) -> Result<Self, Error> {
        let keygen = find("ssh-keygen", "openssh-client")?;
        let host = find("dropbearkey", "dropbear-bin")?;
        find("dropbear", "dropbear-bin")?;
        let parent = cache.folder("sessions")?;
        let folder = tempfile::Builder::new()
            .prefix("test-machine-")
            .tempdir_in(&parent)
            .map_err(|e| cache.cannot_write(&parent, &e))?;
        let session = Self { folder };
        let limit = Duration::from_secs(120);
        let at = session.path();
        let arguments = words(&[
            "-q", "-t", "ed25519", "-N", "", "-C", "locklab", "-f", "key",
        ]);
        let made = cache.run(&keygen, &arguments, at, &at.join("keygen"), limit)?;
        if let Some(failure) = made.failure() {
            return Err(Error::Failed(format!("ssh-keygen: {failure}")));
        }
        let arguments = words(&["-t", "ed25519", "-f", "hostkey"]);
        let log = at.join("dropbearkey");
        let made = cache.run(&host, &arguments, at, &log, limit)?;
        let stdout = std::fs::read_to_string(log.with_extension("out")).unwrap_or_default();
        let public = stdout.lines().find(|line| line.starts_with("ssh-ed25519 "));
        let Some(public) = public.filter(|_| made.failure().is_none()) else {
            return Err(Error::Failed(
                "dropbearkey makes no ed25519 key; a dropbear of 2020.79 or later can".into(),
            ));
        };
        let known = at.join("known_hosts");
        std::fs::write(&known, format!("locklab {public}\n"))
            .map_err(|e| cache.cannot_write(&known, &e))?;
        Ok(session)
    }

    /// Returns a folder without keys, for tests and for looking at a machine.
    ///
    /// # Errors
    /// [`Error::Failed`] if there is no room for temporary files.
    pub(crate) fn without_keys() -> Result<Self, Error> {
        let folder = tempfile::tempdir()
            .map_err(|e| Error::Failed(format!("cannot make a temporary folder: {e}")))?;
        Ok(Self { folder })
    }

    /// Returns the folder of the session's keys and sockets.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Returns a name that no other start of a kernel has.
pub(crate) fn token() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid")
        .unwrap_or_default()
        .trim()
        .to_owned()
}
