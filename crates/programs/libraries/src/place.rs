//! Folders for the libraries, and how a library becomes a file in one.
//!
//! A file's name has the digest of its bytes, so that commands of several versions share a
//! folder. Must never change a file that a program may have mapped: a new one is written
//! beside and renamed.

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::Uid;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Returns the folders that may hold libraries, the preferred one first.
pub(crate) fn folders() -> Vec<PathBuf> {
    let user = Uid::effective();
    let mut folders = Vec::new();
    // A program that root starts may give up root's rights and then start others, which
    // cannot read below root's own home.
    if user.is_root() && std::env::var_os("XDG_CACHE_HOME").is_none() {
        folders.push(PathBuf::from("/var/cache/locklab/libraries"));
    }
    if let Some(own) = directories::ProjectDirs::from("", "", "locklab") {
        folders.push(own.cache_dir().join("libraries"));
    }
    folders.push(std::env::temp_dir().join(format!("locklab-libraries-{user}")));
    folders
}

/// Returns the name of the file of a library with these bytes.
pub(crate) fn file_name(stem: &str, bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let start: String = digest[..8].iter().map(|b| format!("{b:02x}")).collect();
    format!("{stem}-{start}.so")
}

/// Returns whether a list of libraries for the loader can have the path.
pub(crate) fn in_a_list(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .any(|b| b": ".contains(b))
}

/// Makes the file in the folder unless it is there. The error is a part of a sentence.
pub(crate) fn put(folder: &Path, file: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let failed = |why: &str| format!("the folder {} cannot hold it ({why})", folder.display());
    if !in_a_list(folder) {
        return Err(failed("the loader takes no path with a space or a colon"));
    }
    prepare(folder).map_err(|e| failed(&e.to_string()))?;
    // Others could put their code into the program by a folder that they may write to.
    let data = fs::symlink_metadata(folder).map_err(|e| failed(&e.to_string()))?;
    let owner = [0, Uid::effective().as_raw()].contains(&data.uid());
    if !data.is_dir() || !owner || data.mode() & 0o002 != 0 {
        return Err(failed("other users may write to it"));
    }
    if statvfs(folder).is_ok_and(|disk| disk.flags().contains(FsFlags::ST_NOEXEC)) {
        return Err(failed("its disk is mounted noexec"));
    }
    let path = folder.join(file);
    if fs::read(&path).is_ok_and(|present| present == bytes) {
        return Ok(path);
    }
    write(folder, &path, bytes).map_err(|e| failed(&e.to_string()))?;
    Ok(path)
}

/// Makes the folder, which others may read.
fn prepare(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Writes the file beside its place and moves it there, so that nobody sees a part of it.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file()
        .set_permissions(Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_and_mended_if_it_is_another() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("cache/libraries");
        let name = file_name("library", b"bytes");
        let path = put(&folder, &name, b"bytes").unwrap();
        let first = fs::metadata(&path).unwrap();
        assert_eq!(first.mode() & 0o777, 0o644);
        put(&folder, &name, b"bytes").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), first.ino());
        fs::write(&path, b"byt").unwrap();
        put(&folder, &name, b"bytes").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("open");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        let error = put(&folder, "library.so", b"bytes").unwrap_err();
        assert!(error.contains("other users"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}
