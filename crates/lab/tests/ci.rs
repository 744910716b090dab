//! Verdicts for continuous integration: JUnit XML and SARIF.

mod common;

use common::{context, judged, programs, troubled, xml};
use locklab_document::Document;
use locklab_document::render::{junit, sarif};
use locklab_lab::experiment::Experiment;
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
            ("invalid", "error"),
            ("better", "none"),
            ("invalid", "error"),
            ("incomplete", "none")
        ]
    );
}
