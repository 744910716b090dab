//! Verdicts for continuous integration: JUnit XML and SARIF.

use crate::common::{context, judged, kernels, matrix, programs, troubled, xml};
use clap::ValueEnum;
use locklab_document::Document;
use locklab_document::render::{junit, sarif};
use locklab_host::error::Error;
use locklab_judge::Family;
use locklab_lab::experiment::Experiment;
use locklab_lab::gate::{FailOn, fails, not_complete, too_few_pairs};
use locklab_lab::report::{Context, document};

fn report(experiment: &Experiment) -> Document {
    let context = Context {
        file: Some("experiments/unlock.toml".into()),
        ..context()
    };
    document(experiment, &judged(experiment), &context)
}

#[test]
fn junit_fails_what_the_gate_fails_and_passes_nothing_that_was_not_shown() {
    let text = junit(&report(&programs()), &["worse"]);
    assert!(text.starts_with("<?xml"));
    let found = xml(&text);
    let suite = found.descendants().find(|n| n.has_tag_name("testsuite"));
    let suite = suite.unwrap();
    let number = |name| suite.attribute(name).unwrap();
    // Worse fails; unclear and what was not run are skipped; flat passes.
    assert_eq!(
        (number("tests"), number("failures"), number("skipped")),
        ("4", "1", "2")
    );
    let case = |name: &str| {
        let is = |n: &roxmltree::Node| n.attribute("name") == Some(name);
        let case = found.descendants().find(is).unwrap();
        let child = case.first_element_child().unwrap();
        (
            child.tag_name().name().to_owned(),
            child.attribute("message").map(str::to_owned),
        )
    };
    let (outcome, message) = case("nginx-churn");
    assert_eq!(outcome, "failure");
    assert!(message.unwrap().contains("is worse by a factor of 0.99"));
    assert_eq!(case("fs-mark").0, "skipped");
    assert_eq!(case("kernel-build").0, "system-out");

    let strict = junit(
        &report(&programs()),
        &["worse", "unclear", "invalid", "incomplete"],
    );
    assert!(strict.contains("failures=\"3\" skipped=\"0\""));
}

#[test]
fn sarif_has_a_result_a_verdict() {
    let found = sarif(&report(&troubled()), &["worse", "invalid"]);
    assert_eq!(found["version"], "2.1.0");
    let run = &found["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(place, "experiments/unlock.toml");
    }
    let verdicts: Vec<(&str, &str)> = results
        .iter()
        .map(|r| (r["ruleId"].as_str().unwrap(), r["level"].as_str().unwrap()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("better", "none"),
            ("better", "none"),
            ("invalid", "error"),
            ("incomplete", "none")
        ]
    );
}

fn gate(experiment: &Experiment) -> Vec<Result<bool, Error>> {
    let verdicts = judged(experiment);
    FailOn::value_variants()
        .iter()
        .map(|fail_on| fails(&[*fail_on], experiment, &verdicts))
        .collect()
}

#[test]
fn a_gate_fails_on_what_it_names() {
    let flat = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 1.0);
    assert_eq!(gate(&flat), [false; 4].map(Ok));
    let worse = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 0.9);
    assert_eq!(gate(&worse), [true, false, false, false].map(Ok));
    let better = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 1.1);
    assert_eq!(gate(&better), [false; 4].map(Ok));
    // Within noise of 20 %, a difference of 1 % is not decided.
    let unclear = matrix(&[1], &[0], &[1], 16, 0.2, |_, _| 1.01);
    assert_eq!(gate(&unclear), [false, true, false, false].map(Ok));
    let mut short = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 1.0);
    short.cells[0].pairs.truncate(12);
    assert_eq!(gate(&short), [false, false, false, true].map(Ok));
    // One cell of two was not measured.
    let mut half = matrix(&[1, 2], &[0], &[1], 16, 0.0, |_, _| 1.0);
    half.cells[1].pairs.clear();
    half.cells[1].stopped = Some("no such program".into());
    assert_eq!(gate(&half), [false, false, true, true].map(Ok));
    assert!(not_complete(&half).unwrap().starts_with("not complete: "));
    assert_eq!(not_complete(&flat), None);
}

/// It would be green where nothing was measured.
#[test]
fn a_gate_that_judged_nothing_fails_whatever_it_names() {
    let mut nothing = matrix(&[1, 2], &[0], &[1], 16, 0.0, |_, _| 0.5);
    for cell in &mut nothing.cells {
        cell.pairs.clear();
    }
    let too_few = matrix(&[1], &[0], &[1], 4, 0.0, |_, _| 0.5);
    for experiment in [nothing, too_few] {
        for failed in gate(&experiment) {
            let sentence = failed.unwrap_err().to_string();
            assert!(sentence.contains("no cell has a verdict"), "{sentence}");
        }
        let verdicts = judged(&experiment);
        assert_eq!(fails(&[], &experiment, &verdicts), Ok(false));
    }
}

#[test]
fn the_words_of_a_gate_are_found() {
    for fail_on in FailOn::value_variants() {
        assert_eq!(FailOn::from_str(fail_on.word(), false), Ok(*fail_on));
    }
    assert!(FailOn::from_str("better", false).is_err());
}

#[test]
fn too_few_pairs_are_reported_before_they_are_run() {
    let warning = |cells: usize, pairs, family| {
        let critical: Vec<u64> = (0..cells as u64).collect();
        let mut experiment = matrix(&[1], &critical, &[1], 0, 0.0, |_, _| 1.0);
        experiment.design.pairs = pairs;
        experiment.design.family = family;
        too_few_pairs(&experiment)
    };
    // Six would be significant, and eight are what the judge reads at all.
    for pairs in 1..8 {
        for family in [Family::Holm, Family::FalseDiscovery] {
            let text = warning(1, pairs, family).unwrap();
            assert!(text.ends_with("give --pairs 8 or more."), "{text}");
        }
    }
    assert_eq!(warning(1, 8, Family::Holm), None);
    let text = warning(126, 8, Family::Holm).unwrap();
    assert!(
        text.starts_with("Too few: 8 pairs can call none of 126 comparisons better or worse;"),
        "{text}"
    );
    assert_eq!(
        warning(126, 8, Family::FalseDiscovery).unwrap(),
        "Few: with 8 pairs none of 126 comparisons can be called alone, 20 must agree; --pairs 13 \
         lets each be called."
    );
    assert_eq!(warning(126, 13, Family::FalseDiscovery), None);
}

/// As they are judged: the matrix that a run gives is no part of the family of
/// the others.
#[test]
fn a_matrix_inside_a_cell_needs_the_pairs_of_its_own_family() {
    let mut experiment = kernels();
    experiment.design.pairs = 7;
    let text = too_few_pairs(&experiment).unwrap();
    assert_eq!(
        text,
        "Too few: 7 pairs can call none of 1 comparison better or worse; give --pairs 8 or more."
    );
    experiment.design.pairs = 8;
    let text = too_few_pairs(&experiment);
    assert_eq!(text, None);
    experiment.cells[0].metrics.extend_from_within(..);
    assert_eq!(
        too_few_pairs(&experiment).unwrap(),
        "Few: with 8 pairs none of 12 comparisons can be called alone, 2 must agree; --pairs 9 \
         lets each be called."
    );
}
