//! The report of a matrix: ratios by threads and lengths as text, grids
//! and charts, and the handoffs and fairness of both locks.

pub(super) mod cells;
mod charts;
mod fairness;

use self::cells::{all_placed, blocks, groups};
use super::inputs::Report;
use super::placed::{self, axis};
use super::{caveats, design, findings, placement, regions, results};
use crate::matrix::{CPU_SHARE, OPS};
use crate::verdicts::{Figures, JudgedCell};
use locklab_document::number;
use locklab_document::{Document, Facts, Medium, Part, Section, Tone};
use locklab_judge::{Judged, aa_check};

/// Below this share of CPU time other programs ran, or the lock sleeps.
const FULL_CPU: f64 = 0.95;

/// Returns the document of a matrix.
pub(super) fn document(report: &Report) -> Document {
    let experiment = report.experiment;
    let title = if experiment.design.aa {
        format!("{} against itself (A/A)", experiment.labels.baseline)
    } else {
        format!(
            "{} (experiment) against {} (baseline)",
            experiment.labels.experiment, experiment.labels.baseline
        )
    };
    let (summary, places) = summary(report);
    let caveats = caveats_of(report);
    let mut document = Document {
        title,
        head: vec![
            ("Figures".into(), report.source()),
            (
                "Cells".into(),
                format!("{}: experiment / baseline", decides(report)),
            ),
        ],
        labels: experiment.labels.clone(),
        sections: Vec::new(),
        findings: findings::of(report),
        started: None,
        data: results::matrix(report, &summary, &caveats),
    };
    let lead = |s: &String| Part::Prose(s.clone(), Tone::Lead);
    document.push(Section {
        parts: summary.iter().map(lead).collect(),
        ..Section::default()
    });
    let regions = regions::facts(report);
    if !regions.is_empty() {
        document.push(Section::minor("Several cells, judged as one").facts(regions));
    }
    if !places.is_empty() {
        document.push(Section::minor("Where").facts(places));
    }
    let mut facts = experiment.facts.clone();
    facts.extend(design::facts(report));
    document.push(Section::new("").facts(facts.clone()).only(Medium::Text));
    document.push(
        Section::new(format!("{}, experiment / baseline", decides(report))).only(Medium::Page),
    );
    grids(report, &mut document);
    fairness::as_text(report, &mut document);
    document.push(Section::new("Caveats").items(caveats));
    charts::over_threads(report, &mut document);
    fairness::every_cell(report, &mut document);
    charts::intervals(report, &mut document);
    charts::timelines(report, &mut document);
    document.push(
        Section::new("Machine and set-up")
            .facts(facts)
            .only(Medium::Page),
    );
    document
}

/// Returns the name of the metric that the cells show.
fn deciding_metric<'a>(report: &Report<'a>) -> Option<&'a str> {
    let mut cells = report.experiment.cells.iter();
    cells.find_map(|cell| cell.primary().map(|metric| metric.name.as_str()))
}

/// Returns the quantity that the cells show.
fn decides(report: &Report) -> String {
    match deciding_metric(report) {
        Some(name) if name != OPS => name.to_owned(),
        _ => "operations per second, all threads".into(),
    }
}

fn grids(report: &Report, document: &mut Document) {
    for (title, block) in blocks(report) {
        let cells = all_placed(report, &block);
        let grid = placed::grid(&cells, report.lengths);
        document.push(Section::minor(title).with(Part::Grid(grid)));
    }
    let measured: Vec<&JudgedCell> = report.measured().collect();
    let gaps = report.missing().count() > 0 || report.verdicts.by_class().len() > 1;
    let cells = all_placed(report, &measured);
    let signs = placed::legend(&cells, &design::margin(report), gaps);
    document.push(
        Section::new("")
            .with(Part::Legend(signs))
            .note(design::method(report, report.verdicts.settings.family)),
    );
}

/// Returns at most four sentences that summarise the matrix (the answer over all lengths, what
/// single cells show, what depends on the placement of the CPUs, and what holds at
/// equal share), and the
/// cells of each verdict where there are too many for a sentence.
fn summary(report: &Report) -> (Vec<String>, Facts) {
    let groups = groups(report);
    let several = groups.len() > 1;
    let metric = deciding_metric(report).unwrap_or_default();
    let sides = report.sides(metric);
    let measured: Vec<&JudgedCell> = report.measured().collect();
    let lead = regions::lead(report, &all_placed(report, &measured), &sides);
    let counted = lead.is_some();
    let mut sentences: Vec<String> = lead.into_iter().collect();
    let mut places = Facts::new();
    let mut by_placement = Vec::new();
    for group in &groups {
        let cells = all_placed(report, &group.cells);
        let margin = design::margin(report);
        let found = placed::summary(&cells, &sides, &margin, report.lengths);
        let words = match several {
            true => group.words(|class| format!("CPUs placed as \"{class}\"")),
            false => Vec::new(),
        };
        if words.is_empty() {
            sentences.push(found.sentence);
            places.extend(found.places);
            continue;
        }
        let of = group.words(str::to_owned).join(", ");
        if counted && group.class.is_some() {
            by_placement.push(format!("{of}, {}", placed::counts(&cells)));
        } else {
            let words = words.join(", ");
            sentences.push(caveats::sentence_case(&format!(
                "{words}: {}",
                caveats::in_a_sentence(&found.sentence)
            )));
        }
        let named = |(word, at): (String, String)| (format!("{word}, {of}"), at);
        places.extend(found.places.into_iter().map(named));
    }
    if !by_placement.is_empty() {
        sentences.push(format!(
            "Where the ratio depends on the placement of the CPUs: {}.",
            by_placement.join("; ")
        ));
    }
    sentences.extend(fairness::at_equal_share(report));
    if report.experiment.design.aa {
        sentences.push(aa(report));
    }
    (sentences, places)
}

/// Returns whether baseline against baseline found more than chance allows.
fn aa(report: &Report) -> String {
    let judged: Vec<Judged> = judged(report).into_iter().cloned().collect();
    let check = aa_check(&judged, report.verdicts.settings.family);
    if check.judged == 0 {
        return "A/A: no cell could be judged, which is not a pass.".into();
    }
    format!(
        "A/A {}: of {}, {} called better or worse (allowed {}), and p < 0.05 before correction \
         in {} (allowed {}).",
        if check.passed() { "passed" } else { "FAILED" },
        number::count(check.judged, "cell"),
        check.called,
        check.calls_allowed,
        check.below_alpha,
        check.below_alpha_allowed
    )
}

/// Returns the primary metrics of all cells that were measured.
fn judged<'a>(report: &Report<'a>) -> Vec<&'a Judged> {
    let primaries = report.measured().filter_map(JudgedCell::primary);
    primaries.map(|m| &m.judged).collect()
}

fn caveats_of(report: &Report) -> Vec<String> {
    let judged = judged(report);
    let held_back = report.measured().filter(|c| c.is_held_back()).count();
    let by_judge: Vec<&Judged> = report
        .measured()
        .filter(|c| !c.is_held_back())
        .filter_map(JudgedCell::primary)
        .map(|m| &m.judged)
        .collect();
    let mut list: Vec<String> = caveats::unclear(report, &by_judge).into_iter().collect();
    if held_back > 0 {
        list.push(format!(
            "{} unclear (model), '?m': the verdict depends on what the model assumes. Each pair ran \
             on another machine that the assumptions allow, and fewer than nine of ten agree.",
            number::count(held_back, "cell")
        ));
    }
    list.extend(caveats::incomplete(report));
    list.extend(caveats::stopped(report));
    list.extend(report.experiment.caveats.iter().cloned());
    let crowded: Vec<&JudgedCell> = report
        .measured()
        .filter(|c| report.cell(c).oversubscribed)
        .collect();
    if !crowded.is_empty() {
        let threads = axis(&crowded, |c| report.cell(c).key.number("threads"));
        let threads: Vec<String> = threads.iter().flatten().map(u64::to_string).collect();
        list.push(format!(
            "Oversubscribed ('o'): {} {} are more than the CPUs, so {}.",
            threads.join(", "),
            number::plural(2, report.lengths.noun()),
            report.context.words.oversubscribed
        ));
    }
    let starved = |f: &Figures| f.get(CPU_SHARE).is_some_and(|share| share < FULL_CPU);
    let disturbed = report
        .measured()
        .filter(|c| starved(&c.baseline) || starved(&c.experiment));
    match disturbed.count() {
        0 => {}
        n => list.push(format!(
            "In {} the threads were off their CPUs for over {:.0} % of the time that they could \
             have had: {}.",
            number::count(n, "cell"),
            100.0 * (1.0 - FULL_CPU),
            report.context.words.off_cpu
        )),
    }
    list.extend(placement::of_matrix(report.verdicts));
    list.extend(fairness::kept(report));
    list.extend(caveats::invalid(&judged));
    list.extend(caveats::warnings(&judged));
    list
}
