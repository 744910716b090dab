//! Holds the book to a length that a person reads, and its contents to its pages.
//!
//! The prose pages are those of `docs/`. Reports of what was measured and simulated
//! belong into `results/`, which has no limit.

use crate::budget::find;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most words that all pages of the book may have together.
const MOST_WORDS: usize = 45_000;

/// Returns every Markdown file of a folder of the project, with its text.
fn pages(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(folder);
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn the_book_is_short_enough_to_be_read() {
    let mut pages: Vec<(usize, String)> = pages("docs")
        .iter()
        .map(|(path, text)| (text.split_whitespace().count(), name(path)))
        .collect();
    pages.sort_unstable_by(|a, b| b.cmp(a));
    let words: usize = pages.iter().map(|(words, _)| words).sum();
    assert!(pages.len() > 20, "{} pages", pages.len());
    assert!(
        words <= MOST_WORDS,
        "the book has {words} words, {MOST_WORDS} at most; the longest pages: {:?}",
        &pages[..5]
    );
}

/// mdBook leaves out a page that the table of contents does not name, and refuses one that it
/// names twice.
#[test]
fn the_contents_name_every_page_once() {
    for folder in ["docs", "results"] {
        let pages = pages(folder);
        let contents = |(path, _): &&(PathBuf, String)| name(path) == "SUMMARY.md";
        let (_, contents) = pages.iter().find(contents).unwrap();
        for (path, _) in &pages {
            let name = name(path);
            let named = contents.matches(&format!("]({name})")).count();
            assert!(
                named == 1 || name == "SUMMARY.md",
                "{folder}/SUMMARY.md names {name} {named} times"
            );
        }
    }
}

/// A reader who knows a command finds its page: `](X.md)` where the contents say `X`.
#[test]
fn the_page_of_a_command_has_its_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let contents = std::fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    let mut commands = 0;
    for line in contents.lines().filter(|line| line.starts_with("- [`")) {
        let command = line.split('`').nth(1).unwrap();
        // A page of a part of a command has a name of its own.
        if command.contains(' ') {
            continue;
        }
        assert!(line.ends_with(&format!("]({command}.md)")), "{line}");
        commands += 1;
    }
    assert!(commands > 10, "{commands} commands have a page");
}

/// A finding that names a test names one that is there.
#[test]
fn the_test_of_a_finding_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("results/tests.md")).unwrap();
    let rows = text.split("| finding |").nth(1).unwrap().lines().skip(2);
    // A cell has names of tests, or the reason why there is none.
    let cells = rows.filter_map(|row| row.rsplit(" | ").next());
    let cells = cells.map(|cell| cell.trim_end_matches(" |"));
    let names: BTreeSet<&str> = cells
        .filter(|cell| cell.starts_with('`') && !cell.contains(' ') || cell.contains("`, `"))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(names.len() > 40, "{names:?}");
    let mut files = Vec::new();
    let is_source = |path: &Path| path.extension().is_some_and(|end| end == "rs");
    for folder in ["crates", "locklab", "xtask"] {
        find(&root.join(folder), is_source, &mut files);
    }
    let texts = files
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap());
    let sources: String = texts.collect();
    for name in names {
        let test = format!("fn {name}() ");
        assert!(sources.contains(&test), "results/tests.md names {name}");
    }
}
