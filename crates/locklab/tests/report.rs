//! Reports against golden files, and against inputs that nobody planned.

mod common;
#[path = "common/golden.rs"]
mod golden;

use common::{Sample, context, mixed, troubled};
use golden::golden;
use locklab::matrix::{Invalid, Measured};
use locklab::report::comparison;
use locklab::report::matrix::{Report, heat_map_svg, html, json, text};
use locklab::report::{COLUMNS, Colour};
use locklab::verdicts::{Verdicts, judge};
use locklab_judge::{Comparison, Direction, Order, Pair, Settings};
use proptest::prelude::*;
use std::path::Path;

fn judged(measured: &Measured) -> Verdicts {
    judge(measured).unwrap()
}

fn as_text(measured: &Measured, colour: Colour) -> String {
    let (verdicts, context) = (judged(measured), context());
    text(
        &Report {
            measured,
            verdicts: &verdicts,
            context: &context,
        },
        colour,
    )
}

fn as_json(measured: &Measured) -> String {
    let (verdicts, context) = (judged(measured), context());
    let value = json(&Report {
        measured,
        verdicts: &verdicts,
        context: &context,
    });
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

/// The page and the picture, both read as XML.
fn as_html(measured: &Measured) -> (String, String) {
    let (verdicts, context) = (judged(measured), context());
    let report = Report {
        measured,
        verdicts: &verdicts,
        context: &context,
    };
    (html(&report), heat_map_svg(&report))
}

fn xml(text: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(text, options).unwrap()
}

#[test]
fn text_of_a_matrix_with_every_verdict() {
    golden("matrix.txt", &as_text(&mixed(), Colour::Plain));
}

#[test]
fn text_of_a_matrix_in_trouble() {
    golden("matrix-troubled.txt", &as_text(&troubled(), Colour::Plain));
}

#[test]
fn json_of_a_matrix_in_trouble() {
    golden("matrix-troubled.json", &as_json(&troubled()));
}

#[test]
fn json_has_the_documented_fields() {
    let found: serde_json::Value = serde_json::from_str(&as_json(&mixed())).unwrap();
    assert_eq!(found["schema"], 1);
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
        ] {
            assert!(cell[field].is_number(), "{field}: {cell}");
        }
        for side in ["baseline", "experiment"] {
            assert!(cell[side]["ops_per_s"].is_number() && cell[side]["jain"].is_number());
        }
        assert!(
            ["better", "worse", "flat", "unclear"].contains(&cell["verdict"].as_str().unwrap())
        );
    }
}

/// Colour is never the only signal: without it the text is the same.
#[test]
fn colours_only_add() {
    let plain = as_text(&mixed(), Colour::Plain);
    let coloured = as_text(&mixed(), Colour::Ansi);
    assert_ne!(plain, coloured);
    let mut stripped = anstream::adapter::strip_str(&coloured).to_string();
    // A coloured cell keeps its padding at the end of a line.
    stripped = stripped
        .lines()
        .map(|l| l.trim_end().to_owned() + "\n")
        .collect();
    assert_eq!(stripped, plain);
}

#[test]
fn an_aa_matrix_says_whether_it_passed() {
    let mut measured = Sample::new(&[2, 4, 8], &[0, 1, 2, 4], &[1])
        .fill(12, 0.01, |_| 1.0)
        .measured;
    measured.spec.aa = true;
    assert!(as_text(&measured, Colour::Plain).contains("A/A passed: of 12 cells, 0 called"));
    let mut measured = Sample::new(&[2, 4, 8], &[0, 1, 2, 4], &[1])
        .fill(12, 0.01, |_| 1.1)
        .measured;
    measured.spec.aa = true;
    assert!(as_text(&measured, Colour::Plain).contains("A/A FAILED: of 12 cells, 12 called"));
}

/// A cell that was measured in two placements, with enough pairs in each, is
/// judged in each and never across them.
#[test]
fn placements_are_judged_apart() {
    let mut measured = Sample::new(&[2], &[0], &[1])
        .fill(20, 0.005, |_| 1.0)
        .measured;
    for pair in &mut measured.cells[0].pairs[..9] {
        pair.experiment.ops_per_s *= 1.5;
        for run in [&mut pair.baseline, &mut pair.experiment] {
            run.round_trip.as_mut().unwrap().class = "far".into();
        }
    }
    let verdicts = judged(&measured);
    let words: Vec<_> = verdicts
        .cells
        .iter()
        .map(|c| {
            (
                c.class.as_deref(),
                c.judged.verdict.word(),
                c.differences.len(),
            )
        })
        .collect();
    assert_eq!(words[0].2, 11);
    assert_eq!(words[1], (Some("far"), "better", 9));
    assert_ne!(words[0].1, "better");
    let text = as_text(&measured, Colour::Plain);
    assert!(text.contains("must not be\n  compared") || text.contains("must not be compared"));
}

#[test]
fn a_failed_check_is_never_tolerated() {
    let mut measured = Sample::new(&[2], &[0], &[1])
        .fill(20, 0.005, |_| 1.5)
        .measured;
    measured.cells[0].pairs[19].experiment.invalid = Some(Invalid::Failed("killed".into()));
    assert_eq!(judged(&measured).cells[0].judged.verdict.word(), "better");
    measured.cells[0].pairs[19].experiment.invalid = Some(Invalid::CheckFailed("lost".into()));
    assert_eq!(judged(&measured).cells[0].judged.verdict.word(), "invalid");
}

#[test]
fn comparison_table() {
    let pairs = |effect: f64, scale: f64| -> Vec<Pair> {
        (0..20)
            .map(|i| {
                let noise = 1.0 + f64::from(i * 7 % 20 - 10) * 4e-4;
                Pair::new(scale, scale * effect * noise, Order::BaselineFirst)
            })
            .collect()
    };
    let (more, less) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
    let mut comparisons = vec![
        Comparison::primary(pairs(1.0035, 431_398.0), more),
        Comparison::screening(pairs(1.0911, 198_588_165.0), less),
        Comparison::screening(pairs(0.9, 2.0452), more),
        Comparison::screening(vec![], less),
        Comparison::screening(pairs(0.5, 9_574_476_543.0), less),
        Comparison::screening(
            (0..9)
                .map(|i| Pair::new(1.0, f64::from(i + 1) / 4.5, Order::BaselineFirst))
                .collect(),
            less,
        ),
    ];
    comparisons[0].bias_band = Some(0.001);
    let judged = locklab_judge::judge(&comparisons, &Settings::default()).unwrap();
    let names = [
        ("throughput", "ops/s"),
        ("l1i-misses:k", ""),
        ("ipc", ""),
        ("elapsed", "s"),
        ("instructions that have a rather long name", ""),
        ("faults", ""),
    ];
    let rows: Vec<comparison::Row> = names
        .into_iter()
        .zip(judged)
        .map(|((name, unit), judged)| comparison::Row {
            name: name.into(),
            unit: unit.into(),
            judged,
        })
        .collect();
    golden("comparison.txt", &comparison::table(&rows));
    let json = comparison::json(&rows);
    assert_eq!(json[1]["verdict"], "worse");
    assert!((json[1]["delta_percent"].as_f64().unwrap() - 9.11).abs() < 0.1);
}

#[test]
fn html_is_one_file_that_needs_nothing() {
    let (page, picture) = as_html(&mixed());
    // For people who change the report and want to look at it.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("matrix.html"), &page).unwrap();
    std::fs::write(folder.join("matrix.svg"), &picture).unwrap();
    std::fs::write(folder.join("troubled.html"), as_html(&troubled()).0).unwrap();

    let found = xml(&page);
    let elements = |name: &str| found.descendants().filter(|n| n.has_tag_name(name)).count();
    assert_eq!(elements("script") + elements("img") + elements("iframe"), 0);
    for node in found.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("//"), "{value}");
            assert!(!["href", "src"].contains(&attribute.name()) || value.starts_with("data:"));
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
    // Two curves a critical length and block.
    assert_eq!(elements("polyline"), 2 * 9 * 2);

    let found = xml(&picture);
    let titles = found
        .descendants()
        .filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "title")));
    assert_eq!(titles.count(), 6 * 9 * 2);
    assert!(picture.contains("prefers-color-scheme: dark"));
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever was measured: no panic, no line over 72 columns, valid JSON.
    #[test]
    fn reports_bear_anything(
        threads in proptest::collection::vec(1..5000_usize, 1..5),
        critical in proptest::collection::vec(any::<u64>(), 1..6),
        non_critical in proptest::collection::vec(0..200_u64, 1..3),
        values in proptest::collection::vec(any_figure(), 24),
        pairs in 0..14_u32,
        faults in proptest::collection::vec(0..12_u8, 40),
        name in "\\PC{0,120}",
        aa: bool,
    ) {
        let mut measured = Sample::new(&threads, &critical, &non_critical)
            .fill(pairs, 0.01, |p| values[p.threads % 24].abs().max(1e-12))
            .measured;
        measured.spec.aa = aa;
        measured.spec.baseline = name.clone();
        measured.environment.push((name.clone(), name.repeat(3)));
        measured.caveats.push(name.repeat(4));
        let mut faults = faults.iter().cycle();
        for cell in &mut measured.cells {
            for pair in &mut cell.pairs {
                let run = &mut pair.experiment;
                match faults.next() {
                    Some(0) => run.invalid = Some(Invalid::Failed(name.clone())),
                    Some(1) => run.ops_per_s = values[0],
                    Some(2) => run.handoffs_per_s = values[1],
                    Some(3) => run.streak_mean = values[2],
                    Some(4) => run.jain = values[3],
                    Some(5) => run.round_trip = None,
                    Some(6) => if let Some(trip) = &mut run.round_trip {
                        trip.class = name.clone();
                        trip.before = values[4];
                    },
                    Some(7) => run.started = Some(values[5]),
                    Some(8) => run.cpu_share = Some(values[6]),
                    _ => {}
                }
            }
        }
        if measured.cells.len() > 3 {
            measured.cells.remove(1);
        }
        for line in as_text(&measured, Colour::Plain).lines() {
            prop_assert!(textwrap::core::display_width(line) <= COLUMNS, "{line}");
        }
        let colour = as_text(&measured, Colour::Ansi);
        let stripped = anstream::adapter::strip_str(&colour).to_string();
        for line in stripped.lines() {
            prop_assert!(textwrap::core::display_width(line) <= COLUMNS, "{line}");
        }
        let value: serde_json::Value = serde_json::from_str(&as_json(&measured)).unwrap();
        prop_assert_eq!(&value["schema"], 1);
        let (page, picture) = as_html(&measured);
        prop_assert!(xml(&page).root_element().has_tag_name("html"));
        prop_assert!(!xml(&picture).root_element().tag_name().name().is_empty());
        for wrong in ["NaN", "inf\"", "inf,"] {
            prop_assert!(!picture.contains(wrong));
        }
    }
}
