//! Reports of every kind against golden files, and against random inputs.

use crate::common::golden::golden;
use crate::common::{context, judged, kernels, matrix, mixed, programs, troubled, xml};
use locklab_document::COLUMNS;
use locklab_document::render::{Colour, html, json, markdown, svg, text};
use locklab_document::{Document, Section};
use locklab_harness::experiment::{Experiment, Invalid, Pair, Source};
use locklab_harness::matrix::metrics;
use locklab_harness::report::document;
use locklab_harness::report::results::schema;
use locklab_workload::Waits;
use proptest::prelude::*;
use std::path::Path;

fn report(experiment: &Experiment) -> Document {
    document(experiment, &judged(experiment), &context())
}

fn as_text(experiment: &Experiment) -> String {
    text(&report(experiment), Colour::Plain)
}

fn as_json(experiment: &Experiment) -> String {
    format!("{:#}\n", json(&report(experiment)))
}

#[test]
fn text_of_a_matrix_with_every_verdict() {
    golden("matrix.txt", &as_text(&mixed()));
}

#[test]
fn cells_that_got_more_pairs_than_planned_are_counted() {
    let mut experiment = mixed();
    let planned = experiment.design.pairs;
    let pairs = &mut experiment.cells[0].pairs;
    let last = pairs.last().unwrap().clone();
    pairs.extend((planned..planned + 3).map(|index| Pair {
        index,
        ..last.clone()
    }));
    let found = as_text(&experiment);
    let said = format!("{planned} to {} for each cell", planned + 3);
    assert!(found.contains(&said), "no '{said}' in {found}");
}

#[test]
fn text_of_a_matrix_in_trouble() {
    golden("matrix-troubled.txt", &as_text(&troubled()));
}

#[test]
fn readers_and_writers_have_rows_of_their_own() {
    let mut experiment = matrix(&[8], &[0], &[1], 10, 0.01, |_, _| 1.0);
    let cell = &mut experiment.cells[0];
    cell.metrics = metrics(8, Waits::ByUse, Source::Simulation);
    for pair in &mut cell.pairs {
        for (sample, p999, starved) in [
            (&mut pair.baseline, 26_700.0, 0.038),
            (&mut pair.experiment, 5_970.0, 0.0),
        ] {
            for (name, value) in [
                ("read_latency_p999", 4_000.0),
                ("read_starved", 0.0),
                ("write_latency_p999", p999),
                ("write_starved", starved),
            ] {
                sample.values.insert(name.into(), value);
            }
        }
    }
    let text = as_text(&experiment);
    for row in [
        "      8        0         1 writers base       -       -   26.7k   0.038",
        "      8        0         1  writers exp       -       -   5.97k   0.000",
        "      8        0         1 readers base       -       -   4.00k   0.000",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
    let json = as_json(&experiment);
    assert!(json.contains("write_latency_p999") && json.contains("write_starved"));
}

#[test]
fn json_of_a_matrix_in_trouble() {
    golden("matrix-troubled.json", &as_json(&troubled()));
}

#[test]
fn text_of_programs_has_the_shape_of_the_mail() {
    let found = as_text(&programs());
    let mut at = 0;
    for part in [
        "Setup",
        "Environment",
        "rocksdb-deleteseq",
        "Metric                         Baseline    Experiment     Delta  Sig",
        "It is unclear",
        "kernel-build",
        "is equal within",
        "nginx-churn",
        "), which is worse.",
        "Conclusion",
        "Sources",
    ] {
        let place = found[at..].find(part);
        at += place.unwrap_or_else(|| panic!("no {part} in its place in {found}"));
    }
    golden("compare.txt", &found);
}

#[test]
fn json_of_programs() {
    golden("compare.json", &as_json(&programs()));
}

#[test]
fn text_and_json_of_kernels_with_a_matrix_inside_a_run() {
    golden("kernels.txt", &as_text(&kernels()));
    golden("kernels.json", &as_json(&kernels()));
    let page = html(&report(&kernels()));
    let found = xml(&page);
    let heat_maps = found
        .descendants()
        .filter(|n| n.attribute("aria-label") == Some("heat map"));
    assert_eq!(heat_maps.count(), 2);
}

#[test]
fn markdown_of_a_matrix_and_of_programs() {
    golden("matrix-troubled.md", &markdown(&report(&troubled())));
    golden("compare.md", &markdown(&report(&programs())));
}

#[test]
fn json_of_a_matrix_has_the_documented_fields() {
    let found = json(&report(&mixed()));
    assert_eq!(found["schema"], 1);
    assert_eq!(found["kind"], "matrix");
    assert_eq!(found["provenance"]["source"], "hardware");
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6 * 9 * 2);
    for cell in cells {
        for field in [
            "threads",
            "critical",
            "non_critical",
            "ratio",
            "ratio_low",
            "ratio_high",
            "p",
            "p_adjusted",
            "pairs",
        ] {
            assert!(cell[field].is_number(), "{field}: {cell}");
        }
        for side in ["baseline", "experiment"] {
            for field in ["ops_per_s", "ops_low", "ops_high", "jain"] {
                assert!(cell[side][field].is_number(), "{field}: {cell}");
            }
        }
        let verdict = cell["verdict"].as_str().unwrap();
        assert!(["better", "worse", "flat", "unclear"].contains(&verdict));
    }
}

#[test]
fn json_of_programs_has_the_documented_fields() {
    let found = json(&report(&programs()));
    assert_eq!(found["schema"], 1);
    assert_eq!(found["provenance"]["name"], "Example 9000, 16 CPUs");
    for workload in found["workloads"].as_array().unwrap() {
        assert!(workload["name"].is_string());
        for metric in workload["metrics"].as_array().unwrap() {
            for field in [
                "name",
                "unit",
                "baseline",
                "experiment",
                "delta_percent",
                "low",
                "high",
                "verdict",
                "primary",
                "source",
            ] {
                assert!(metric.get(field).is_some(), "{field}");
            }
        }
    }
    let nginx = &found["workloads"][2];
    assert_eq!(nginx["metrics"][0]["verdict"], "worse");
    assert_eq!(nginx["pairs_set_aside"][0]["pair"], 5);
    assert_eq!(nginx["not_judged"][0], "major-faults");
    let stopped = found["workloads"][3]["stopped"].as_str().unwrap();
    assert!(stopped.contains("apt-get"));
}

/// Returns what is written is what the schema says, for every kind; and the schema says
/// enough to refuse what is not.
#[test]
fn json_is_held_to_its_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for experiment in [mixed(), troubled(), programs(), kernels()] {
        let mut found = json(&report(&experiment));
        let errors: Vec<String> = validator
            .iter_errors(&found)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{:?}: {errors:?}", experiment.kind);
        // A backend may add fields.
        found["footprint"] = 7.into();
        assert!(validator.is_valid(&found));
        found["schema"] = "poem".into();
        assert!(!validator.is_valid(&found));
    }
    let mut found = json(&report(&mixed()));
    found["cells"][3]["verdict"] = "equal".into();
    assert!(!validator.is_valid(&found));
    let mut found = json(&report(&programs()));
    let metric = found["workloads"][0]["metrics"][0].as_object_mut().unwrap();
    metric.remove("delta_percent");
    assert!(!validator.is_valid(&found));
}

/// Colour is never the only signal: without it the text is the same.
#[test]
fn colours_only_add() {
    let plain = as_text(&mixed());
    let coloured = text(&report(&mixed()), Colour::Ansi);
    assert_ne!(plain, coloured);
    // A coloured cell keeps its padding at the end of a line.
    let stripped: String = anstream::adapter::strip_str(&coloured)
        .to_string()
        .lines()
        .map(|l| l.trim_end().to_owned() + "\n")
        .collect();
    assert_eq!(stripped, plain);
}

#[test]
fn an_aa_matrix_says_whether_it_passed() {
    for (effect, sentence) in [
        (1.0, "A/A passed: of 12 cells, 0 called"),
        (1.1, "A/A FAILED: of 12 cells, 12 called"),
    ] {
        let mut experiment = matrix(&[2, 4, 8], &[0, 1, 2, 4], &[1], 12, 0.01, |_, _| effect);
        experiment.design.aa = true;
        assert!(as_text(&experiment).contains(sentence), "{sentence}");
    }
}

/// A row whose cells differ both ways has a mean that is none of them.
#[test]
fn the_answer_over_all_lengths_says_what_cells_show_against_it() {
    let mixed = |_, critical| if critical < 2 { 0.9 } else { 1.1 };
    let text = as_text(&matrix(&[2], &[0, 1, 2, 4], &[1], 40, 0.002, mixed));
    let answer = text.split("\n\n").nth(1).unwrap().replace('\n', " ");
    assert!(answer.starts_with("With 2 threads "), "{answer}");
    for part in [
        "except in 2 of 4 cells (critical length 2 to 4), where virt-spin-backoff is faster by 10 %",
        "and in 2 (critical length 0 to 1), where virt-spin-backoff is slower by 10 %",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let alike = as_text(&matrix(&[2], &[0, 1, 2, 4], &[1], 40, 0.002, |_, _| 1.1));
    assert!(!alike.contains(" except "), "{alike}");
}

/// A cell that was measured in two placements, on which its ratio depends, is
/// judged in each and never across them.
#[test]
fn placements_that_matter_are_judged_apart() {
    let mut experiment = matrix(&[2], &[0], &[1], 20, 0.005, |_, _| 1.0);
    for pair in &mut experiment.cells[0].pairs[..9] {
        *pair.experiment.values.get_mut("ops_per_s").unwrap() *= 1.5;
        for sample in pair.samples_mut() {
            sample.placement.as_mut().unwrap().typical = Some(320.0);
        }
    }
    let verdicts = judged(&experiment);
    let [near, far] = verdicts.cells.as_slice() else {
        panic!("{} cells", verdicts.cells.len());
    };
    assert_eq!((near.differences.len(), far.differences.len()), (11, 9));
    assert_eq!(far.class.as_deref(), Some("far"));
    assert_eq!(far.verdict().unwrap().word(), "better");
    assert_ne!(near.verdict().unwrap().word(), "better");
    let text = as_text(&experiment).replace("\n  ", " ");
    assert!(text.contains("must not be compared"), "{text}");
}

/// Handoffs are some of the operations, so no report may have more of them.
#[test]
fn figures_of_one_row_have_one_estimator() {
    let mut experiment = matrix(&[2], &[0], &[1], 8, 0.0, |_, _| 1.0);
    // Of a skewed sample the median and other locations lie far apart.
    for (i, pair) in experiment.cells[0].pairs.iter_mut().enumerate() {
        for sample in pair.samples_mut() {
            let ops = if i < 4 { 1e6 } else { 2e6 + 1e5 * i as f64 };
            sample.values.insert("ops_per_s".into(), ops);
            sample.values.insert("handoffs_per_s".into(), ops * 0.999);
        }
    }
    let verdicts = judged(&experiment);
    let figures = &verdicts.cells[0].baseline;
    let (ops, handoffs) = (figures.get("ops_per_s"), figures.get("handoffs_per_s"));
    assert!((handoffs.unwrap() / ops.unwrap() - 0.999).abs() < 1e-9);
}

/// Also where a run had no handoff, which has no logarithm.
#[test]
fn a_run_without_handoffs_leaves_their_rate_below_that_of_operations() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..500 {
        let mut experiment = matrix(&[2], &[0], &[1], 6, 0.0, |_, _| 1.0);
        for pair in &mut experiment.cells[0].pairs {
            for sample in pair.samples_mut() {
                let ops = (1 + random(1_000)) as f64 * 1e3;
                let all_handed_over = random(3) > 0;
                let handoffs = if all_handed_over { ops } else { 0.0 };
                sample.values.insert("ops_per_s".into(), ops);
                sample.values.insert("handoffs_per_s".into(), handoffs);
            }
        }
        let verdicts = judged(&experiment);
        for figures in [&verdicts.cells[0].baseline, &verdicts.cells[0].experiment] {
            let (ops, handoffs) = (figures.get("ops_per_s"), figures.get("handoffs_per_s"));
            assert!(
                handoffs.unwrap() <= ops.unwrap() * (1.0 + 1e-9),
                "{handoffs:?} of {ops:?}"
            );
        }
    }
}

#[test]
fn what_is_missing_is_said_once_and_counted_in_words() {
    let text = as_text(&troubled());
    assert!(text.contains("- Not complete: interrupted.\n- 1 cell not measured;"));
    assert!(!text.contains("1 cells") && !text.contains("Interrupted: "));
}

fn charts(page: &str, label: &str) -> usize {
    let found = xml(page);
    let is = |n: &roxmltree::Node| n.attribute("aria-label") == Some(label);
    found.descendants().filter(is).count()
}

#[test]
fn html_is_one_file_that_needs_nothing() {
    let page = html(&report(&mixed()));
    let picture = svg(&report(&mixed())).unwrap();
    // For developers who change the report and want to look at it.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("matrix.html"), &page).unwrap();
    std::fs::write(folder.join("matrix.svg"), &picture).unwrap();
    for (name, experiment) in [
        ("troubled", troubled()),
        ("programs", programs()),
        ("kernels", kernels()),
    ] {
        let page = html(&report(&experiment));
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
    }

    let found = xml(&page);
    let elements = |name: &str| found.descendants().filter(|n| n.has_tag_name(name)).count();
    assert_eq!(elements("img") + elements("iframe"), 0);
    // One script, within the file.
    assert_eq!(elements("script"), 1);
    for node in found.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("//"), "{value}");
            let loads = ["href", "src"].contains(&attribute.name());
            assert!(!loads || value.starts_with("data:") || value.starts_with('#'));
        }
    }
    for (i, _) in page.match_indices("url(") {
        assert!(
            page[i..].starts_with("url(#"),
            "a style that loads something"
        );
    }
    assert!(!page.contains("@import"));
    // One drawn cell for each measured one, with its mark as text.
    let marked = |class: &str| {
        let is =
            |n: &roxmltree::Node| n.has_tag_name("rect") && n.attribute("class") == Some(class);
        found.descendants().filter(is).count()
    };
    let legend = 1;
    let cells: usize = [
        "b1", "b2", "b3", "b4", "b5", "w1", "w2", "w3", "w4", "w5", "f", "u",
    ]
    .map(|class| marked(class) - legend)
    .iter()
    .sum();
    assert_eq!(cells, 6 * 9 * 2);
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(page.contains("Figures: <b>hardware: measured on Example 9000, 16 CPUs</b>"));
    // Two lines a critical length and block.
    assert_eq!(elements("polyline"), 2 * 9 * 2);
    assert_eq!(charts(&page, "intervals"), 1);
    assert_eq!(
        charts(&page, "Cache-line round trip between the CPUs in use, ns"),
        1
    );

    let found = xml(&picture);
    let titles = found
        .descendants()
        .filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "title")));
    // One for each cell, and for the mark of each lock over threads.
    assert_eq!(titles.count(), 3 * 6 * 9 * 2);
    assert!(picture.contains("prefers-color-scheme: dark"));
}

#[test]
fn html_of_programs_has_the_pairs_and_the_runs() {
    let page = html(&report(&programs()));
    assert_eq!(charts(&page, "intervals"), 3);
    assert_eq!(charts(&page, "requests [req/s]"), 1);
    assert!(page.contains("<td class=\"worse\">worse</td>"));
}

#[test]
fn a_backend_appends_what_only_it_knows() {
    let mut found = report(&programs());
    found.push(Section::new("Footprint").preformatted(format!("short\n{}", "x".repeat(100))));
    found.data.insert("footprint".into(), 7.into());
    let printed = text(&found, Colour::Plain);
    assert!(printed.ends_with(&format!(
        "Footprint\nshort\n{}\\\n{}\n\n",
        "x".repeat(71),
        "x".repeat(29)
    )));
    assert_eq!(json(&found)["footprint"], 7);
    let heading = "<h2 id=\"footprint\"><a href=\"#footprint\">Footprint</a></h2>";
    assert!(html(&found).contains(heading));
    assert!(markdown(&found).contains("### Footprint"));
}

fn any_figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        5 => 1e-9..1e12_f64,
        1 => proptest::num::f64::ANY,
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
    ]
}

/// Checks that there is no panic and no line over 72 columns, and that JSON and XML are valid.
fn bears(experiment: &Experiment) -> Result<(), TestCaseError> {
    let found = report(experiment);
    for line in text(&found, Colour::Plain).lines() {
        prop_assert!(textwrap::core::display_width(line) <= COLUMNS, "{line}");
    }
    let colour = text(&found, Colour::Ansi);
    for line in anstream::adapter::strip_str(&colour).to_string().lines() {
        prop_assert!(textwrap::core::display_width(line) <= COLUMNS, "{line}");
    }
    let value: serde_json::Value = serde_json::from_str(&as_json(experiment)).unwrap();
    prop_assert_eq!(&value["schema"], 1);
    let page = html(&found);
    prop_assert!(xml(&page).root_element().has_tag_name("html"));
    if let Some(picture) = svg(&found) {
        xml(&picture);
        for wrong in ["NaN", "inf\"", "inf,"] {
            prop_assert!(!picture.contains(wrong));
        }
    }
    prop_assert!(!markdown(&found).is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x10c7_1ab5),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn reports_of_matrices_bear_anything(
        threads in proptest::collection::vec(1..5000_usize, 1..5),
        critical in proptest::collection::vec(any::<u64>(), 1..6),
        non_critical in proptest::collection::vec(0..200_u64, 1..3),
        values in proptest::collection::vec(any_figure(), 24),
        pairs in 0..14_u32,
        faults in proptest::collection::vec(0..12_u8, 40),
        name in "\\PC{0,120}",
        aa: bool,
    ) {
        let mut experiment = matrix(&threads, &critical, &non_critical, pairs, 0.01, |t, _| {
            values[t % 24].abs().max(1e-12)
        });
        experiment.design.aa = aa;
        experiment.labels.baseline = name.clone();
        experiment.facts.push((name.clone(), name.repeat(3)));
        experiment.caveats.push(name.repeat(4));
        let mut faults = faults.iter().cycle();
        for pair in experiment.cells.iter_mut().flat_map(|c| &mut c.pairs) {
            let run = &mut pair.experiment;
            let mut set = |metric: &str, value| run.values.insert(metric.into(), value);
            match faults.next() {
                Some(0) => run.invalid = Some(Invalid::Failed(name.clone())),
                Some(1) => _ = set("ops_per_s", values[0]),
                Some(2) => _ = set("handoffs_per_s", values[1]),
                Some(3) => _ = set("streak_mean", values[2]),
                Some(4) => _ = set("jain", values[3]),
                Some(5) => run.placement = None,
                Some(6) => if let Some(placement) = &mut run.placement {
                    placement.before = values[4];
                },
                Some(7) => run.started = Some(values[5]),
                Some(8) => _ = set("cpu_share", values[6]),
                _ => {}
            }
        }
        if experiment.cells.len() > 3 {
            experiment.cells[1].pairs.clear();
            experiment.cells[1].stopped = Some(name.clone());
        }
        bears(&experiment)?;
    }

    #[test]
    fn reports_of_workloads_bear_anything(
        values in proptest::collection::vec(any_figure(), 40),
        name in "\\PC{0,120}",
        unit in "\\PC{0,40}",
        kernel: bool,
    ) {
        let mut experiment = if kernel { kernels() } else { programs() };
        experiment.labels.experiment = name.clone();
        for cell in &mut experiment.cells {
            cell.about = name.repeat(2);
            cell.facts.push((name.clone(), unit.clone()));
            let mut metrics: Vec<String> = cell.metrics.iter().map(|m| m.name.clone()).collect();
            metrics.sort();
            for metric in &mut cell.metrics {
                metric.unit = unit.clone();
            }
            for (i, pair) in cell.pairs.iter_mut().enumerate() {
                let metric = &metrics[i % metrics.len()];
                pair.experiment.values.insert(metric.clone(), values[i]);
                pair.baseline.values.insert(metric.clone(), values[39 - i]);
            }
        }
        bears(&experiment)?;
    }
}
