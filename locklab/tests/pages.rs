//! Holds the book to the command: a page for each command, and no message that the
//! command does not print.

use clap::CommandFactory;
use locklab::cli::Cli;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[test]
fn every_command_has_a_page() {
    let contents = page("SUMMARY.md");
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    let mut pages = 0;
    for name in shown.map(|command| command.get_name()) {
        let named = |line: &&str| line.contains(&format!("`{name}`"));
        let line = contents.lines().find(named);
        assert!(line.is_some(), "docs/SUMMARY.md has no page of `{name}`");
        pages += 1;
    }
    assert!(pages > 15, "{pages} commands");
}

/// Adds every Rust source below a folder that is not a test.
fn sources(folder: &Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            if !["tests", "target", "benches"]
                .iter()
                .any(|name| path.ends_with(name))
            {
                sources(&path, all);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// A heading of the page on messages has, between quotes, words that some source prints.
#[test]
fn every_message_that_is_explained_is_printed() {
    let mut all = String::new();
    for folder in ["crates", "locklab"] {
        sources(&root().join(folder), &mut all);
    }
    // A string may go on in the next line.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = words(&all.replace("\\\n", ""));
    let text = page("messages.md");
    let headings = text.lines().filter_map(|line| line.strip_prefix("### "));
    let mut checked = 0;
    for heading in headings {
        let quoted = heading.split('"').skip(1).step_by(2);
        for message in quoted {
            assert!(all.contains(message), "no source prints: {message}");
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} messages");
}
