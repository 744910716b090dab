//! The folders of a build, and what its logs say when it fails.

use crate::cache::Cache;
use crate::source::{self, Tree};
use locklab_host::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of a build.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The build's folder in the cache, for logs and layouts.
    pub(crate) folder: PathBuf,
    /// The tree of sources that make reads.
    pub(crate) source: PathBuf,
    /// The folder of make's output.
    pub(crate) objects: PathBuf,
}

impl Place {
    /// Makes the place. A tree of the cache is linked into the build's folder, with the
    /// objects inside: then make names every file relative to the objects,
    /// nothing of the cache's path gets into the kernel, and ccache recognises
    /// a file in another tree. A tree of the user's stays where it is.
    pub(crate) fn new(cache: &Cache<'_>, name: &str, tree: &Tree) -> Result<Self, Error> {
        let folder = cache.folder(&format!("builds/{name}"))?;
        let ours = tree.path.starts_with(&cache.root);
        let source = if ours {
            folder.join("linux")
        } else {
            tree.path.clone()
        };
        if ours && !source.is_dir() {
            let fresh = folder.join("linux.new");
            source::copy(cache, &tree.path, &fresh)?;
            std::fs::rename(&fresh, &source).map_err(|e| cache.cannot_write(&source, &e))?;
        }
        let objects = if ours { &source } else { &folder }.join("objects");
        std::fs::create_dir_all(&objects).map_err(|e| cache.cannot_write(&objects, &e))?;
        Ok(Self {
            folder,
            source,
            objects,
        })
    }

    /// Returns the arguments of every call of make for this build.
    pub(crate) fn arguments(&self, variables: &[String]) -> Vec<OsString> {
        let mut list: Vec<OsString> = vec!["-C".into(), self.source.clone().into()];
        let mut output = OsString::from("O=");
        output.push(&self.objects);
        list.push(output);
        list.extend(variables.iter().map(OsString::from));
        list
    }
}

/// Returns the error of a build: the first that its log has, else `failure`.
pub(crate) fn build_error(cache: &Cache<'_>, log: &Path, what: &str, failure: &str) -> Error {
    let read = |end: &str| std::fs::read_to_string(log.with_extension(end)).unwrap_or_default();
    let output = read("err") + &read("out");
    if output.contains("No space left on device") {
        return cache.full();
    }
    Error::Failed(format!(
        "the {what} failed: {}; log: {}",
        first_error(&output).unwrap_or(failure),
        log.with_extension("err").display()
    ))
}

/// Returns the first line that is an error of a compiler or linker, else make's own.
fn first_error(output: &str) -> Option<&str> {
    let find = |needle: &str| output.lines().find(|line| line.contains(needle));
    find(": error:")
        .or_else(|| find("error: "))
        .or_else(|| find("fatal error"))
        .or_else(|| find("undefined reference"))
        .or_else(|| find("*** "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_the_compilers() {
        let output =
            "make[3]: *** [x.o] Error 1\n../kernel/fork.c:3:1: error: expected ';'\nmore\n";
        assert_eq!(
            first_error(output),
            Some("../kernel/fork.c:3:1: error: expected ';'")
        );
        assert_eq!(first_error("  CC x\n"), None);
    }
}
