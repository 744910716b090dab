//! The libraries that Locklab loads into unmodified programs, as parts of its command.
//!
//! One binary is all that `run` and `record` take: the bytes of both libraries are in it, and
//! are written to a file when a program is first started with them, because a loader loads
//! files. Must never hand out a file whose bytes are not the command's own, and never one
//! that the loader could not load: a folder that does not serve is passed over for the next.

mod place;

use locklab_host::error::Error;
use locklab_host::libraries::{beside, named};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The bytes of a library, or why the command was built without it.
type Embedded = Result<&'static [u8], &'static str>;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// One of the two libraries.
struct Library {
    /// Holds what sentences call it.
    name: &'static str,
    /// The file's name up to its digest.
    stem: &'static str,
    bytes: Embedded,
    /// The environment variable that names another one.
    variable: &'static str,
    /// The package that it is made of.
    package: &'static str,
}

/// Returns the file of the interposer, which puts a lock under pthread mutexes.
///
/// # Errors
/// [`Error::Failed`] if `LOCKLAB_PRELOAD` names no file, no folder can hold the library, or
/// the command was built without it.
pub fn interposer() -> Result<PathBuf, Error> {
    static FILE: OnceLock<Result<PathBuf, Error>> = OnceLock::new();
    let library = Library {
        name: "interposer",
        stem: "liblocklab_preload",
        bytes: INTERPOSER,
        variable: "LOCKLAB_PRELOAD",
        package: "locklab-preload",
    };
    FILE.get_or_init(|| library.file()).clone()
}

/// Returns the file of the recorder, which records a program's own locks.
///
/// # Errors
/// As of [`interposer`], of `LOCKLAB_RECORDER`.
pub fn recorder() -> Result<PathBuf, Error> {
    static FILE: OnceLock<Result<PathBuf, Error>> = OnceLock::new();
    let library = Library {
        name: "recorder",
        stem: "liblocklab_recorder",
        bytes: RECORDER,
        variable: "LOCKLAB_RECORDER",
        package: "locklab-recorder",
    };
    FILE.get_or_init(|| library.file()).clone()
}

impl Library {
    fn file(&self) -> Result<PathBuf, Error> {
        if let Some(path) = named(self.variable, self.package)? {
            return loadable(path);
        }
        match self.bytes {
            Ok(bytes) => self.placed(bytes, &place::folders()),
            Err(why) => match beside(&format!("{}.so", self.stem))? {
                Some(path) => loadable(path),
                None => Err(Error::Failed(format!(
                    "this locklab was built without its {} ({why}); cargo build --release -p {} \
                     in Locklab's sources makes one, and {} names it",
                    self.name, self.package, self.variable
                ))),
            },
        }
    }

    /// Puts the library into the first folder that can hold it. Says on standard error which
    /// could not.
    fn placed(&self, bytes: &[u8], folders: &[PathBuf]) -> Result<PathBuf, Error> {
        let file = place::file_name(self.stem, bytes);
        let mut failures = Vec::new();
        for folder in folders {
            match place::put(folder, &file, bytes) {
                Ok(path) => {
                    if !failures.is_empty() {
                        eprintln!(
                            "locklab: {}, so the {} is {}",
                            failures.join("; "),
                            self.name,
                            path.display()
                        );
                    }
                    return Ok(path);
                }
                Err(why) => failures.push(why),
            }
        }
        Err(Error::Failed(format!(
            "the {} has to be a file, and no folder can hold it: {}; set XDG_CACHE_HOME or TMPDIR \
             to a folder that can",
            self.name,
            failures.join("; ")
        )))
    }
}

/// Refuses a path that the list of libraries for the loader cannot have.
fn loadable(path: PathBuf) -> Result<PathBuf, Error> {
    if place::in_a_list(&path) {
        return Ok(path);
    }
    Err(Error::Failed(format!(
        "the loader cannot load {}: its path has a space or a colon; move it",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two libraries stand in the command, whatever lies beside it.
    #[test]
    fn both_are_embedded() {
        for bytes in [INTERPOSER, RECORDER] {
            let bytes = bytes.expect("tests run where the libraries can be built");
            assert_eq!(&bytes[..4], b"\x7fELF");
        }
    }

    #[test]
    fn a_folder_that_does_not_serve_is_passed_over() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a-file");
        std::fs::write(&file, "").unwrap();
        let library = Library {
            name: "recorder",
            stem: "library",
            bytes: Ok(b"bytes"),
            variable: "NONE",
            package: "none",
        };
        let good = scratch.path().join("good");
        let bad = [file.join("below"), scratch.path().join("with space")];
        let folders = [&bad[..], std::slice::from_ref(&good)].concat();
        let path = library.placed(b"bytes", &folders).unwrap();
        assert!(path.starts_with(&good), "{path:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
        let error = library.placed(b"bytes", &bad).unwrap_err().to_string();
        assert!(error.contains("a-file/below"), "{error}");
        assert!(error.contains("with space"), "{error}");
        assert!(error.ends_with("to a folder that can"), "{error}");
    }
}
