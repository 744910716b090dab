//! A wheel for `pip install locklab`: the command and the libraries that it loads into
//! other programs, without Python code.
//!
//! It is written here because a wheel is a zip file with three short texts in it, and
//! the libraries have to lie where the command looks for them: `bin/locklab` beside
//! `lib/locklab/*.so`. It must never claim a platform on which its files do not run.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The least glibc that a manylinux tag can name.
const OLDEST_GLIBC: u32 = 17;

/// Texts that every wheel carries along, with the folder of each.
const LICENCES: [(&str, &str); 2] = [
    ("LICENSE-MIT", include_str!("../LICENSE-MIT")),
    ("LICENSE-APACHE", include_str!("../LICENSE-APACHE")),
];

/// Writes the wheel of a command and its libraries into `folder`, and returns its path.
///
/// # Errors
/// If a file cannot be read, or the wheel cannot be written.
pub(crate) fn write(folder: &Path, command: &Path, libraries: &[PathBuf]) -> io::Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let mut files = vec![(
        format!("locklab-{version}.data/scripts/locklab"),
        std::fs::read(command)?,
        0o755,
    )];
    for library in libraries {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        files.push((
            format!("locklab-{version}.data/data/lib/locklab/{name}"),
            std::fs::read(library)?,
            0o644,
        ));
    }
    let tag = format!(
        "py3-none-manylinux_2_{}_{}",
        files
            .iter()
            .map(|(_, bytes, _)| needed_glibc(bytes))
            .fold(OLDEST_GLIBC, u32::max),
        std::env::consts::ARCH
    );
    let info = format!("locklab-{version}.dist-info");
    for (name, text) in LICENCES {
        files.push((format!("{info}/licenses/{name}"), text.into(), 0o644));
    }
    files.push((format!("{info}/METADATA"), metadata(version).into(), 0o644));
    files.push((format!("{info}/WHEEL"), wheel(&tag).into(), 0o644));
    let record = format!("{info}/RECORD");
    files.push((record.clone(), list(&files, &record).into(), 0o644));

    let path = folder.join(format!("locklab-{version}-{tag}.whl"));
    let mut zip = ZipWriter::new(File::create(&path)?);
    for (name, bytes, mode) in &files {
        // Without times, so that equal files make an equal wheel.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(*mode);
        zip.start_file(name.as_str(), options)?;
        zip.write_all(bytes)?;
    }
    zip.finish()?;
    Ok(path)
}

/// Returns the second number of the newest glibc 2.x that a file names. A name that is
/// only looked up at run time counts as well, so the answer may be too new, never too old.
fn needed_glibc(bytes: &[u8]) -> u32 {
    const NAME: &[u8] = b"GLIBC_2.";
    let found = bytes.windows(NAME.len()).enumerate();
    let versions = found.filter(|(_, window)| *window == NAME).map(|(at, _)| {
        let digits = bytes[at + NAME.len()..].iter();
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).take(4);
        digits.fold(0, |number, byte| 10 * number + u32::from(byte - b'0'))
    });
    versions.max().unwrap_or(0)
}

fn metadata(version: &str) -> String {
    let licences: String = LICENCES
        .iter()
        .map(|(name, _)| format!("License-File: {name}\n"))
        .collect();
    format!(
        "Metadata-Version: 2.4\n\
         Name: locklab\n\
         Version: {version}\n\
         Summary: Which lock should this code use, how should it be inlined, and what does that \
         cost the rest of the program?\n\
         License-Expression: MIT OR Apache-2.0\n\
         {licences}\
         Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{}",
        include_str!("wheel.md")
    )
}

fn wheel(tag: &str) -> String {
    format!(
        "Wheel-Version: 1.0\nGenerator: locklab-packaging\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
}

/// Returns the list of all files with their digests, in which it stands itself without one.
fn list(files: &[(String, Vec<u8>, u32)], own: &str) -> String {
    let lines = files.iter().map(|(name, bytes, _)| {
        let digest = BASE64URL_NOPAD.encode(&Sha256::digest(bytes));
        format!("{name},sha256={digest},{}\n", bytes.len())
    });
    lines.chain([format!("{own},,\n")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_wheel_lists_its_files_and_names_the_glibc_that_they_need() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let command = file("locklab", b"static");
        let library = file(
            "liblocklab_preload.so",
            b"..GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.2.5\0",
        );
        let path = write(folder.path(), &command, &[library]).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.contains("-py3-none-manylinux_2_34_"), "{name}");

        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let mut text = |name: &str| {
            let mut entry = zip.by_name(name).unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (text, entry.unix_mode().unwrap() & 0o777)
        };
        let (_, mode) = text(&format!("locklab-{version}.data/scripts/locklab"));
        assert_eq!(mode, 0o755);
        let (_, mode) = text(&format!(
            "locklab-{version}.data/data/lib/locklab/liblocklab_preload.so"
        ));
        assert_eq!(mode, 0o644);
        let (record, _) = text(&format!("locklab-{version}.dist-info/RECORD"));
        // What `sha256sum` says of the six bytes above.
        let digest = "sha256=IFPbv27HE1xOmU00ZMR4229I08ohBSyPRJFe3JbgLDk,6";
        assert!(record.lines().next().unwrap().ends_with(digest), "{record}");
        assert_eq!(record.lines().count(), 7);
        assert!(record.ends_with("RECORD,,\n"));
    }

    #[test]
    fn a_file_without_glibc_runs_with_any() {
        assert_eq!(needed_glibc(b"musl"), 0);
        assert_eq!(needed_glibc(b"GLIBC_2.36"), 36);
    }
}
