//! Verdicts for continuous integration: JUnit XML and SARIF.

use crate::common::{context, judged, kernels, matrix, programs, troubled, xml};
use clap::ValueEnum;
use locklab_document::Document;
use locklab_document::render::{junit, sarif};
use locklab_harness::experiment::Experiment;
use locklab_harness::gate::{FailOn, fails, not_complete, too_few_pairs};
use locklab_harness::report::{Context, document};
use locklab_host::error::Error;
use locklab_judge::Family;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

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
    let passed = |n: &roxmltree::Node| n.attribute("name") == Some("kernel-build");
    let passed = found.descendants().find(passed).unwrap();
    assert_eq!(passed.first_element_child(), None);
    let output = found.descendants().find(|n| n.has_tag_name("system-out"));
    let output = output.unwrap().text().unwrap();
    assert!(output.contains("\nflat: kernel-build: "), "{output}");

    let strict = junit(
        &report(&programs()),
        &["worse", "unclear", "invalid", "incomplete"],
    );
    assert!(strict.contains("failures=\"3\" errors=\"0\" skipped=\"0\""));
    // Only what the gate names fails, each test is of its file, and no time is made up.
    assert!(junit(&report(&programs()), &[]).contains("failures=\"0\""));
    assert_eq!(
        passed.attribute("classname"),
        Some("experiments/unlock.toml")
    );
    let mut timeless = report(&programs());
    timeless.started = None;
    let text = junit(&timeless, &[]);
    assert!(
        !text.contains("timestamp") && !text.contains("1970"),
        "{text}"
    );
}

/// The schemas are in the folder of that name, with their sources.
#[test]
fn junit_is_valid_for_jenkins_ant_and_azure() {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let folder = tempfile::tempdir().unwrap();
    let mut odd = report(&troubled());
    odd.title = " \u{1}<title>  & \n ".into();
    odd.head.push(("".into(), "\u{fffe}".into()));
    odd.findings[0].name = String::new();
    odd.findings[0].seconds = Some(f64::NAN);
    let mut nothing = odd.clone();
    nothing.findings.clear();
    let reports = [
        report(&programs()),
        report(&troubled()),
        report(&kernels()),
        odd,
        nothing,
    ];
    for schema in ["jenkins.xsd", "ant.xsd"] {
        let refused = |text: &str| {
            let file = folder.path().join("junit.xml");
            std::fs::write(&file, text).unwrap();
            let checked = Command::new("xmllint")
                .args(["--noout", "--schema"])
                .args([&schemas.join(schema), &file])
                .output()
                .expect("xmllint is installed: apt-get install libxml2-utils");
            (!checked.status.success()).then(|| String::from_utf8(checked.stderr).unwrap())
        };
        for document in &reports {
            for failing in [
                &["worse"][..],
                &["worse", "unclear", "invalid", "incomplete"],
            ] {
                let text = junit(document, failing);
                assert_eq!(refused(&text), None, "{schema}: {text}");
            }
        }
        // What version 0.2 wrote, and what the schema is for.
        let text = junit(&reports[0], &["worse"]);
        let without = text.replace(" errors=\"0\"", "");
        assert!(refused(&without).unwrap().contains("errors"));
        let unknown = text.replace("<testsuites>", "<testsuites skipped=\"0\">");
        assert!(refused(&unknown).unwrap().contains("skipped"));
    }
}

/// Returns what GitHub says of the files that it takes ("SARIF support for code
/// scanning"): nothing where it takes this one.
fn refused_by_github(sarif: &Value) -> Vec<String> {
    let mut list = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            list.push(what);
        }
    };
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    must(sarif["version"] == "2.1.0", "version".into());
    must(text(&sarif["$schema"]), "$schema".into());
    let run = &sarif["runs"][0];
    let driver = &run["tool"]["driver"];
    must(text(&driver["name"]), "name".into());
    let rules = driver["rules"].as_array().unwrap();
    for rule in rules {
        let id = &rule["id"];
        must(text(id), "rule id".into());
        for part in ["shortDescription", "fullDescription", "help"] {
            must(text(&rule[part]["text"]), format!("{id}: {part}"));
        }
    }
    let results = run["results"].as_array().unwrap();
    must(results.len() <= 25_000, "more than 25,000 results".into());
    for result in results {
        must(text(&result["message"]["text"]), "message".into());
        let level = result["level"].as_str().unwrap_or_default();
        must(
            ["error", "warning", "note"].contains(&level),
            format!("level {level}"),
        );
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        must(rules[index]["id"] == result["ruleId"], "ruleIndex".into());
        let locations = result["locations"].as_array().unwrap();
        must(!locations.is_empty(), "no location".into());
        for location in locations {
            let place = &location["physicalLocation"];
            must(place.is_object(), "expected a physical location".into());
            let uri = place["artifactLocation"]["uri"]
                .as_str()
                .unwrap_or_default();
            let plain = uri
                .bytes()
                .all(|b| b.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&b));
            must(!uri.is_empty() && plain, format!("uri {uri}"));
            must(
                !uri.starts_with('/') && !uri.trim_start_matches("file:").contains(':'),
                format!("not relative: {uri}"),
            );
            must(
                place["region"]["startLine"].as_u64() > Some(0),
                "startLine".into(),
            );
        }
        let prints = result["partialFingerprints"].as_object();
        must(
            prints.is_some_and(|p| p.values().all(text)),
            "fingerprints".into(),
        );
    }
    list
}

#[test]
fn sarif_has_a_result_for_what_is_a_problem_and_github_takes_it() {
    let all = ["worse", "unclear", "invalid", "incomplete"];
    let verdicts = |experiment: &Experiment, failing: &[&str]| -> Vec<String> {
        let document = report(experiment);
        let mut nameless = document.clone();
        for finding in &mut nameless.findings {
            finding.file = None;
        }
        assert_eq!(refused_by_github(&sarif(&nameless, failing)), [""; 0]);
        let found = sarif(&document, failing);
        assert_eq!(refused_by_github(&found), [""; 0]);
        let results = found["runs"][0]["results"].as_array().unwrap();
        let shown = |result: &Value| {
            let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            assert_eq!(place, "experiments/unlock.toml");
            let [rule, level] = ["ruleId", "level"].map(|name| result[name].as_str().unwrap());
            format!("{rule} {level}")
        };
        results.iter().map(shown).collect()
    };
    // Better and flat are no problem, and unclear is one where it was named.
    assert_eq!(verdicts(&programs(), &["worse"]), ["worse error"]);
    assert_eq!(verdicts(&programs(), &["invalid"]), ["worse warning"]);
    assert_eq!(
        verdicts(&programs(), &all),
        ["unclear error", "worse error", "incomplete error"]
    );
    assert_eq!(verdicts(&troubled(), &["worse"]), [""; 0]);
    assert_eq!(
        verdicts(&troubled(), &["worse", "invalid"]),
        ["invalid error"]
    );
    // What version 0.2 wrote was refused as a whole.
    let mut logical = sarif(&report(&programs()), &["worse"]);
    let location = &mut logical["runs"][0]["results"][0]["locations"][0];
    location.as_object_mut().unwrap().remove("physicalLocation");
    assert!(refused_by_github(&logical).contains(&"expected a physical location".into()));
}

/// Returns the exit code of a gate on each word, by itself.
fn gate(experiment: &Experiment) -> Vec<Result<u8, Error>> {
    let verdicts = judged(experiment);
    FailOn::value_variants()
        .iter()
        .map(|word| fails(&[*word], experiment, &verdicts))
        .map(|failed| failed.map(|word| word.map_or(0, FailOn::exit_code)))
        .collect()
}

#[test]
fn a_gate_fails_on_what_it_names() {
    let flat = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 1.0);
    assert_eq!(gate(&flat), [0; 4].map(Ok));
    let worse = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 0.9);
    assert_eq!(gate(&worse), [3, 0, 0, 0].map(Ok));
    let better = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 1.1);
    assert_eq!(gate(&better), [0; 4].map(Ok));
    // Within noise of 20 %, a difference of 1 % is not decided.
    let unclear = matrix(&[1], &[0], &[1], 16, 0.2, |_, _| 1.01);
    assert_eq!(gate(&unclear), [0, 4, 0, 0].map(Ok));
    let mut short = matrix(&[1], &[0], &[1], 16, 0.0, |_, _| 1.0);
    short.cells[0].pairs.truncate(12);
    assert_eq!(gate(&short), [0, 0, 0, 6].map(Ok));
    // One cell of two was not measured.
    let mut half = matrix(&[1, 2], &[0], &[1], 16, 0.0, |_, _| 1.0);
    half.cells[1].pairs.clear();
    half.cells[1].stopped = Some("no such program".into());
    assert_eq!(gate(&half), [0, 0, 5, 6].map(Ok));
    // What was shown weighs most.
    let verdicts = judged(&half);
    let all = FailOn::value_variants();
    assert_eq!(fails(all, &half, &verdicts), Ok(Some(FailOn::Invalid)));
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
        assert_eq!(fails(&[], &experiment, &verdicts), Ok(None));
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
        text.starts_with(
            "Too few: with 8 pairs no verdict on 126 comparisons can be better or worse;"
        ),
        "{text}"
    );
    assert_eq!(
        warning(126, 8, Family::FalseDiscovery).unwrap(),
        "Few: with 8 pairs one of 126 comparisons alone cannot be called, 20 must agree; --pairs 13 \
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
        "Too few: with 7 pairs no verdict on 1 comparison can be better or worse; give --pairs 8 or more."
    );
    experiment.design.pairs = 8;
    let text = too_few_pairs(&experiment);
    assert_eq!(text, None);
    experiment.cells[0].metrics.extend_from_within(..);
    assert_eq!(
        too_few_pairs(&experiment).unwrap(),
        "Few: with 8 pairs one of 12 comparisons alone cannot be called, 2 must agree; --pairs 9 \
         lets each be called."
    );
}
