//! A wheel for `pip install`: the command, without Python code.
//!
//! It is written here because a wheel is a zip file with three short texts in it. It must
//! never claim a platform on which the command does not run, or on which the libraries
//! that it has for other programs do not load.

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

/// Writes the wheel of a command into `folder`, and returns its path.
///
/// # Errors
/// If a file cannot be read, or the wheel cannot be written.
pub(crate) fn write(folder: &Path, command: &Path) -> io::Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let mut files = vec![(
        format!("locklab-{version}.data/scripts/locklab"),
        std::fs::read(command)?,
        0o755,
    )];
    let tag = format!(
        "py3-none-manylinux_2_{}_{}",
        OLDEST_GLIBC.max(needed_glibc(&files[0].1)),
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
        // A static command with the libraries in it.
        let bytes = b"..GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.2.5\0";
        let command = folder.path().join("locklab");
        std::fs::write(&command, bytes).unwrap();
        let path = write(folder.path(), &command).unwrap();
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
        let (record, _) = text(&format!("locklab-{version}.dist-info/RECORD"));
        // What `sha256sum` says of the bytes above.
        let digest = "sha256=C4fy8JZnNl8j8A2etWZDg9IkRRo6TazwwFPP9IDWwDY,35";
        assert!(record.lines().next().unwrap().ends_with(digest), "{record}");
        assert_eq!(record.lines().count(), 6);
        assert!(record.ends_with("RECORD,,\n"));
    }

    #[test]
    fn a_file_without_glibc_runs_with_any() {
        assert_eq!(needed_glibc(b"musl"), 0);
        assert_eq!(needed_glibc(b"GLIBC_2.36"), 36);
    }
}
