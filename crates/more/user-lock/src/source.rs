//! The meaning of a lock's name on the command line: a file, or a lock of a
//! kernel.
//!
//! It must not open or compile anything, but may check whether a file exists.

use locklab_host::error::Error;
use std::path::{Path, PathBuf};

/// The origin of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of the user's.
    File(PathBuf),
    /// A lock of a kernel's source.
    Kernel(KernelLock),
}

/// A lock in a kernel's own, unmodified source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLock {
    /// The name of the lock, such as `qspinlock`.
    pub lock: String,
    /// The source tree; `None` for Debian's source package.
    pub tree: Option<PathBuf>,
    /// Patches to apply, in order.
    pub patches: Vec<PathBuf>,
}

/// The file name endings that can be compiled, and whether they mean C++.
const ENDINGS: [(&str, bool); 5] = [
    ("c", false),
    ("cc", true),
    ("cpp", true),
    ("cxx", true),
    ("C", true),
];

/// Returns whether a file's ending means C++; `None` if it means neither C nor C++.
pub(crate) fn is_cpp(path: &Path) -> Option<bool> {
    let ending = path.extension()?.to_str()?;
    ENDINGS
        .iter()
        .find(|(known, _)| *known == ending)
        .map(|(_, cpp)| *cpp)
}

/// Returns the error for a file whose ending is neither that of C nor of C++.
pub(crate) fn no_language(path: &Path) -> Error {
    Error::Usage(format!(
        "{} is no C or C++ file by its name; a lock of your own ends in .c, .cc, .cpp or .cxx",
        path.display()
    ))
}

impl Source {
    /// Parses `name`, or returns `None` if it is the name of a lock of Locklab:
    /// a path has a slash or the ending of a C or C++ file, a kernel's lock is
    /// `kernel:LOCK[=TREE]`, followed by any number of `--patch FILE`.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such file, its ending names no language,
    /// or a word after `kernel:` is not understood; the message says which.
    pub fn parse(name: &str) -> Result<Option<Self>, Error> {
        if let Some(rest) = name.strip_prefix("kernel:") {
            return KernelLock::parse(rest).map(|lock| Some(Self::Kernel(lock)));
        }
        let path = Path::new(name);
        if !name.contains('/') && is_cpp(path).is_none() {
            return Ok(None);
        }
        if is_cpp(path).is_none() {
            return Err(match name.ends_with(".toml") {
                true => Error::Usage(format!(
                    "{name} is no lock; 'locklab compare {name}' runs the file of an experiment"
                )),
                false => no_language(path),
            });
        }
        match std::fs::metadata(path) {
            Ok(facts) if facts.is_file() => Ok(Some(Self::File(path.to_path_buf()))),
            Ok(_) => Err(Error::Usage(format!("{name} is no file"))),
            Err(e) => Err(Error::Usage(format!(
                "cannot read {name}: {e}; `locklab new-lock {name}` writes a template"
            ))),
        }
    }

    /// Returns the name in tables.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            ),
            Self::Kernel(kernel) => kernel.name(),
        }
    }
}

impl KernelLock {
    fn parse(text: &str) -> Result<Self, Error> {
        let mut words = shlex::split(text)
            .ok_or_else(|| Error::Usage(format!("kernel:{text} has a quote without an end")))?
            .into_iter();
        let first = words.next().unwrap_or_default();
        let (lock, tree) = match first.split_once('=') {
            Some((lock, tree)) => (lock.to_owned(), Some(PathBuf::from(tree))),
            None => (first, None),
        };
        let mut patches = Vec::new();
        while let Some(word) = words.next() {
            match (word.as_str(), words.next()) {
                ("--patch", Some(file)) => patches.push(PathBuf::from(file)),
                _ => {
                    return Err(Error::Usage(format!(
                        "kernel:{text} is not understood at '{word}'; write \
                         'kernel:{lock}[=TREE] [--patch FILE]'"
                    )));
                }
            }
        }
        Ok(Self {
            lock,
            tree,
            patches,
        })
    }

    /// Returns the name in tables.
    pub fn name(&self) -> String {
        let file = |path: &Path| {
            path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            )
        };
        let mut name = format!("kernel:{}", self.lock);
        if let Some(tree) = &self.tree {
            name.push_str(&format!("={}", file(tree)));
        }
        for patch in &self.patches {
            name.push_str(&format!("+{}", file(patch)));
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_files_and_kernels_are_told_apart() {
        assert_eq!(Source::parse("qspinlock"), Ok(None));
        assert_eq!(Source::parse("mcs-k42"), Ok(None));
        let missing = Source::parse("./no-such.c").unwrap_err().to_string();
        assert!(missing.contains("new-lock ./no-such.c"), "{missing}");
        let odd = Source::parse("locks/mine.rs").unwrap_err().to_string();
        assert!(odd.contains("ends in .c"), "{odd}");
        let kernel =
            Source::parse("kernel:qspinlock=/usr/src/linux --patch a.patch --patch b/c.patch");
        let Ok(Some(Source::Kernel(kernel))) = kernel else {
            panic!("{kernel:?}");
        };
        assert_eq!(kernel.tree.as_deref(), Some(Path::new("/usr/src/linux")));
        assert_eq!(kernel.name(), "kernel:qspinlock=linux+a.patch+c.patch");
        let odd = Source::parse("kernel:mcs --fast").unwrap_err().to_string();
        assert!(odd.contains("--fast"), "{odd}");
    }
}
