//! Holds the project to a number of code lines and of packages, as `docs.rs` holds the book
//! to a number of words. Both constants may only shrink: a change that takes code away lowers
//! them, and a change that adds code takes as much away elsewhere.
//!
//! A code line is a line of a Rust file of this repository that is not blank, is no comment,
//! belongs to no `use` item and to no declaration `mod name;`, and is not for tests alone.
//! For tests alone are the folders `tests`, files `tests.rs`, and every item with
//! `#[cfg(test)]`. Benchmarks, examples, build scripts and this project's own tools count.
//! Lines are told apart by their text, which is reliable because `cargo fmt` laid them out:
//! an item ends with the first line of its own indentation that closes it.

use std::path::{Path, PathBuf};

/// The most code lines that all packages may have together. It began at 121,872; what was cut
/// since is less than what came: the checker on execution graphs with locks and tests in C, the
/// formats of `judge`, the account of a recording, the check of a model. The goal is 105,000.
const MOST_CODE_LINES: usize = 124_800;

/// The most packages that there may be, with those of examples. It began at 46.
const MOST_PACKAGES: usize = 39;

/// What a line of code may be part of.
enum Within {
    /// A `use` item that goes over several lines.
    Import,
    /// An item for tests, which has this indentation.
    Test(usize),
}

/// Returns how many code lines the text of a file has.
fn code_lines(text: &str) -> usize {
    let mut within = None;
    let mut lines = 0;
    for line in text.lines() {
        let content = line.trim();
        let indentation = line.len() - line.trim_start().len();
        match within {
            Some(Within::Import) => {
                if content.ends_with(';') {
                    within = None;
                }
            }
            Some(Within::Test(item)) => {
                let ends = content.ends_with([';', '}']) || content.starts_with('}');
                if indentation == item && ends {
                    within = None;
                }
            }
            None if content.is_empty() || content.starts_with("//") => {}
            None if content == "#[cfg(test)]" => within = Some(Within::Test(indentation)),
            None => {
                let item = match content.strip_prefix("pub") {
                    Some(rest) if rest.starts_with('(') => {
                        rest.split_once(") ").map_or(rest, |(_, item)| item)
                    }
                    Some(rest) => rest.trim_start(),
                    None => content,
                };
                let declares = item.starts_with("mod ") && item.ends_with(';');
                let imports = item.starts_with("use ");
                if imports && !item.ends_with(';') {
                    within = Some(Within::Import);
                }
                lines += usize::from(!imports && !declares);
            }
        }
    }
    lines
}

/// Adds the files below a folder that satisfy `wanted`, without links, hidden folders and
/// what cargo builds.
pub(crate) fn find(folder: &Path, wanted: fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = entry.file_name().into_string().unwrap_or_default();
        if kind.is_dir() && name != "target" && !name.starts_with('.') {
            find(&path, wanted, found);
        } else if kind.is_file() && wanted(&path) {
            found.push(path);
        }
    }
}

/// Returns the files of the project that satisfy `wanted`.
fn files(wanted: fn(&Path) -> bool) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    find(root, wanted, &mut found);
    found
        .into_iter()
        .map(|path| path.strip_prefix(root).unwrap().to_owned())
        .collect()
}

/// Returns whether a file is Rust and not for tests alone.
fn is_code(path: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let within = path.strip_prefix(root).unwrap();
    path.extension().is_some_and(|ending| ending == "rs")
        && !path.ends_with("tests.rs")
        && !within.iter().any(|folder| folder == "tests")
}

#[test]
fn the_code_is_no_longer_than_its_budget() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders = std::collections::BTreeMap::<String, usize>::new();
    for path in files(is_code) {
        let depth = if path.starts_with("crates") { 3 } else { 1 };
        let folder: PathBuf = path.iter().take(depth).collect();
        let text = std::fs::read_to_string(root.join(&path)).unwrap();
        *folders.entry(folder.display().to_string()).or_default() += code_lines(&text);
    }
    let lines: usize = folders.values().sum();
    let mut longest: Vec<_> = folders.into_iter().collect();
    longest.sort_unstable_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    assert!(
        longest.len() > 10,
        "only {} folders have code",
        longest.len()
    );
    longest.truncate(8);
    println!("{lines} code lines; most of them: {longest:?}");
    assert!(
        lines <= MOST_CODE_LINES,
        "{lines} code lines, {MOST_CODE_LINES} at most; take as many away as were added. \
         Most of them: {longest:?}"
    );
}

#[test]
fn the_packages_are_no_more_than_their_budget() {
    let packages = files(|path| path.ends_with("Cargo.toml"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let is_package = |path: &&PathBuf| {
        let manifest = std::fs::read_to_string(root.join(path)).unwrap();
        manifest.contains("[package]\n")
    };
    let packages = packages.iter().filter(is_package).count();
    println!("{packages} packages");
    assert!(packages > 10, "only {packages} packages were found");
    assert!(
        packages <= MOST_PACKAGES,
        "{packages} packages, {MOST_PACKAGES} at most; make the new one a module of another"
    );
}

#[test]
fn code_is_counted_without_tests_comments_blanks_and_imports() {
    let text = "\
//! About this file.

mod parts;
pub(crate) mod more;
use std::{
    fmt,
    io,
};
pub use parts::Part;

/// A function.
pub(crate) fn f() {
    // A remark.
    g(); // counted
}

#[cfg(test)]
const T: u8 = 1;

#[cfg(test)]
mod tests {
    #[test]
    fn t() {
        f();
    }
}

mod inner {
    fn g() {}

    #[cfg(test)]
    fn h() {
        g();
    }
}
";
    // `f` has three lines, `inner` three.
    assert_eq!(code_lines(text), 6);
}
