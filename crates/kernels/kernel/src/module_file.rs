//! A kernel module as a file, which distributions compress (Debian from Linux
//! 6.12 on): found under either name, and read as what the kernel loads. The
//! first program of a measured kernel loads plain modules only, so that any
//! kernel takes them. This must never change a module, which may be signed.

use crate::cache::find;
use locklab_host::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The endings of compressed modules, with the program that unpacks each and
/// the Debian package that has it.
const COMPRESSED: [(&str, &str, &str); 3] = [
    ("xz", "xz", "xz-utils"),
    ("zst", "zstd", "zstd"),
    ("gz", "gzip", "gzip"),
];

/// Returns the file of a module, given the path that it has if it is not compressed.
pub(crate) fn existing(plain: &Path) -> Option<PathBuf> {
    let compressed = COMPRESSED.iter().map(|(ending, ..)| {
        let mut path = plain.as_os_str().to_owned();
        path.push(".");
        path.push(ending);
        PathBuf::from(path)
    });
    std::iter::once(plain.to_owned())
        .chain(compressed)
        .find(|path| path.is_file())
}

/// Returns the name that the module in this file has when it is not compressed, with
/// its `.ko`; nothing if the file is no module.
pub fn plain_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, ending) = name.rsplit_once(".ko")?;
    let compression = ending.strip_prefix('.');
    let known = |ending| COMPRESSED.iter().any(|(known, ..)| *known == ending);
    (ending.is_empty() || compression.is_some_and(known)).then(|| format!("{stem}.ko"))
}

/// Returns the module in this file, not compressed.
///
/// # Errors
/// [`Error::Failed`] if it cannot be read or is damaged, or if the program that
/// unpacks it is missing, with the package that has it.
pub fn contents(path: &Path) -> Result<Vec<u8>, Error> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let Some((_, program, package)) = COMPRESSED.iter().find(|(known, ..)| Some(*known) == ending)
    else {
        return std::fs::read(path)
            .map_err(|e| Error::Failed(format!("cannot read {}: {e}", path.display())));
    };
    let output = Command::new(find(program, package)?.path)
        .arg("-dc")
        .arg(path)
        .output()
        .map_err(|e| Error::Failed(format!("cannot start {program}: {e}")))?;
    if !output.status.success() {
        return Err(Error::Failed(format!(
            "{program} cannot unpack the module {}: {}; install the kernel's package again",
            path.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_module_is_found_and_read_as_the_plain_one() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("virtio.ko");
        assert_eq!(existing(&plain), None);
        std::fs::write(&plain, "module").unwrap();
        assert_eq!(existing(&plain), Some(plain.clone()));
        let packed = Command::new("gzip").arg(&plain).status().unwrap();
        assert!(packed.success());
        let file = existing(&plain).unwrap();
        assert_eq!(file, folder.path().join("virtio.ko.gz"));
        assert_eq!(plain_name(&file).unwrap(), "virtio.ko");
        assert_eq!(contents(&file).unwrap(), b"module");
    }

    #[test]
    fn a_damaged_module_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("virtio.ko.gz");
        std::fs::write(&file, "no archive").unwrap();
        let error = contents(&file).unwrap_err().to_string();
        assert!(error.contains("virtio.ko.gz"), "{error}");
    }

    #[test]
    fn other_files_are_no_modules() {
        for name in ["modules.dep", "virtio.ko.sig", "virtio.kov"] {
            assert_eq!(plain_name(Path::new(name)), None, "{name}");
        }
    }
}
