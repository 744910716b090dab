//! Holds the scores of the model in results/simulator.md and docs/accuracy.md to what
//! the simulator gives today.
//!
//! `UPDATE_GOLDEN=1 cargo test --release -p locklab-published --test docs --
//! --ignored` renews them; read the diff, and the prose around it.

use locklab_document::render::{Colour, text};
use locklab_published::report::scores;
use locklab_published::{EXPERIMENTS, Question, Reproduction, Validation, reproduce};
use std::path::Path;
use std::sync::LazyLock;

const BEFORE: &str = "<!-- What `locklab reproduce --all` prints. -->\n```\n";
const AFTER: &str = "```\n";
/// The heading of the part that the page on accuracy shows.
const TRUSTED: &str = "What to trust, by the kind of question\n";

static REPORTS: LazyLock<Vec<Reproduction>> = LazyLock::new(|| {
    let reproduced = |(name, ..): &(&str, _, _)| reproduce(name, 1, 2, |_, _| {}).unwrap();
    EXPERIMENTS.iter().map(reproduced).collect()
});

#[test]
#[ignore = "simulates every published experiment: cargo xtask test --thorough"]
fn the_scores_in_the_docs_are_those_of_today() {
    let printed = text(&scores(&REPORTS), Colour::Plain);
    // What is listed after the scores changes with every figure.
    let (printed, _) = printed.split_once("\nMisses: ").unwrap();
    let (_, trusted) = printed.split_once(TRUSTED).unwrap();
    let trusted = format!("{TRUSTED}{trusted}");
    for (page, printed) in [
        ("results/simulator.md", printed),
        ("docs/accuracy.md", &trusted),
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let path = root.join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEFORE).unwrap();
        let (written, after) = rest.split_once(AFTER).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, [before, BEFORE, printed, AFTER, after].concat()).unwrap();
        } else {
            assert_eq!(written, printed, "{page}");
        }
    }
}

#[test]
#[ignore = "simulates every published experiment: cargo xtask test --thorough"]
fn the_counts_that_reports_quote_are_those_of_today() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../reference/validation.toml");
    let written = std::fs::read_to_string(&path).unwrap();
    let comment = written.lines().take_while(|line| line.starts_with('#'));
    let comment: String = comment.map(|line| format!("{line}\n")).collect();
    let counted: String = Question::ALL
        .iter()
        .map(|&question| {
            let Validation {
                printed,
                right,
                large,
                large_right,
            } = Validation::count(question, &REPORTS);
            format!(
                "{} = {{ printed = {printed}, right = {right}, large = {large}, \
                 large_right = {large_right} }}\n",
                question.key()
            )
        })
        .collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, comment + &counted).unwrap();
    } else {
        assert_eq!(written, comment + &counted);
    }
}

#[test]
#[ignore = "simulates every published experiment: cargo xtask test --thorough"]
fn whatever_is_missed_names_what_would_settle_it() {
    let silent = REPORTS
        .iter()
        .filter(|report| report.settled_by.is_none() && !report.misses().is_empty());
    let silent: Vec<_> = silent.map(|report| &report.name).collect();
    assert!(silent.is_empty(), "{silent:?} have no `settled_by`");
}
