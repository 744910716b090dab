//! Files of `tests/golden`: what a report or a command prints, to the letter.
//! The tests of lab and of the command share it.
//!
//! `UPDATE_GOLDEN=1 cargo test` renews them; read the diff.

use std::path::Path;

/// Compares with a golden file, or renews it.
pub(crate) fn golden(name: &str, found: &str) {
    // The version changes with every release and means nothing here.
    let found = &found.replace(locklab_harness::VERSION, "locklab VERSION");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if golden != *found {
        let line = golden
            .lines()
            .zip(found.lines())
            .take_while(|(a, b)| a == b)
            .count();
        panic!(
            "{name} differs from line {}:\n golden: {:?}\n found:  {:?}\n\
             UPDATE_GOLDEN=1 renews it",
            line + 1,
            golden.lines().nth(line),
            found.lines().nth(line)
        );
    }
}
