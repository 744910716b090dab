//! Holds the book to a length that a person reads.
//!
//! The prose pages are those of `docs/`. Reports of what was measured and simulated
//! belong into `results/`, which has no limit.

use std::path::Path;

/// The most words that all pages of the book may have together.
const MOST_WORDS: usize = 45_000;

#[test]
fn the_book_is_short_enough_to_be_read() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut pages: Vec<(usize, String)> = std::fs::read_dir(docs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| {
            let words = std::fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (words.split_whitespace().count(), name)
        })
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
