//! The report of programs and of kernels: one section for each workload with
//! its metrics, a sentence and its charts; a conclusion that claims no more
//! than the verdicts; and the source of each figure.

pub(super) mod words;

use super::inputs::Report;
use super::placed::{self, Placed, axis};
use super::workload::{base_name, inside, name, outside, rows};
use super::{design, findings, results};
use crate::experiment::{Cell, Metric, Pair};
use crate::verdicts::{JudgedCell, JudgedMetric};
use locklab_document::number;
use locklab_document::{
    Document, GridCell, IntervalRow, Intervals, Medium, Part, Section, Shade, Timeline, Tone,
};
use locklab_judge::{Family, Verdict};

/// The legend of the `Sig` column.
const LEGEND: &str = "Sig: **+ better and **- worse beyond noise, *+ and *- the same for a \
                      screening metric; flat: shown to be within the margin (flat!0: small but not \
                      zero); ns: not shown either way; inval: invalid. All figures are \
                      Hodges-Lehmann locations of logarithms: Baseline and Experiment over the \
                      runs of one side, Delta over the pairs.";

/// Returns the document of a comparison of workloads.
pub(super) fn document(report: &Report) -> Document {
    let experiment = report.experiment;
    let caveats = words::caveats(report);
    let conclusion = words::conclusion(report);
    let mut document = Document {
        title: format!("Comparison: {}", report.subject()),
        head: vec![("Figures".into(), report.source())],
        labels: experiment.labels.clone(),
        sections: Vec::new(),
        findings: findings::of(report),
        started: None,
        data: results::workloads(report, &conclusion, &caveats),
    };
    let lead = words::lead(report);
    if !lead.is_empty() {
        document.push(Section::new("").with(Part::Prose(lead, Tone::Lead)));
    }
    let mut set_up = vec![
        ("Baseline".into(), experiment.labels.baseline.clone()),
        ("Experiment".into(), experiment.labels.experiment.clone()),
    ];
    set_up.extend(design::facts(report));
    document.push(Section::new("Setup").facts(set_up));
    if !experiment.facts.is_empty() {
        document.push(Section::new("Environment").facts(experiment.facts.clone()));
    }
    if !caveats.is_empty() {
        document.push(Section::new("Before you read this").items(caveats));
    }
    for judged in &report.verdicts.cells {
        workload(report, judged, &mut document);
    }
    let mut end = Section::new("Conclusion");
    for sentence in &conclusion {
        end = end.prose(sentence);
    }
    document.push(end);
    let sources = words::sources(report);
    if !sources.is_empty() {
        document.push(Section::new("Sources of the figures").items(sources));
        document.push(Section::new("").note(LEGEND));
    }
    document
}

fn workload(report: &Report, judged: &JudgedCell, document: &mut Document) {
    let cell = report.cell(judged);
    let mut section = Section::new(name(report, judged));
    if !cell.about.is_empty() {
        section = section.prose(cell.about.clone());
    }
    let sentence = words::sentence(report, judged);
    if !judged.is_measured() {
        document.push(section.prose(sentence));
        return;
    }
    section = section.facts(cell.facts.clone());
    let rows = rows(cell, judged);
    if !rows.is_empty() {
        section = section.with(Part::Metrics(rows));
    }
    document.push(section.with(Part::Prose(sentence, Tone::Plain)));
    matrix_inside(report, judged, document);
    charts(report, judged, document);
}

/// Appends the sections of a matrix that each run gives whole: ratios, then the
/// baseline's figures.
fn matrix_inside(report: &Report, judged: &JudgedCell, document: &mut Document) {
    let all = inside(judged);
    let Some((metric, _)) = all.first() else {
        return;
    };
    let unit = if metric.unit.is_empty() {
        String::new()
    } else {
        format!(" [{}]", metric.unit)
    };
    let name = base_name(metric);
    let placed: Vec<Placed> = all.iter().map(|(_, placed)| placed.clone()).collect();
    let margin = design::margin(report);
    let places = placed::summary(&placed, &report.sides(""), &margin, report.lengths).places;
    if !places.is_empty() {
        document.push(Section::minor("Where").facts(places));
    }
    for length in axis(&placed, |c| c.non_critical) {
        let of = |c: &&Placed| c.non_critical == length;
        let block: Vec<Placed> = placed.iter().filter(of).cloned().collect();
        let grid = placed::grid(&block, report.lengths);
        document.push(
            Section::minor(format!(
                "Non-critical length {length}: {name}, experiment / baseline"
            ))
            .with(Part::Grid(grid)),
        );
        let baseline = |placed: &Placed| {
            let of = |c: &&(&Metric, Placed)| {
                (c.1.threads, c.1.critical, c.1.non_critical)
                    == (placed.threads, placed.critical, placed.non_critical)
            };
            let found = all.iter().find(of);
            let figure = found.and_then(|(m, _)| judged.baseline.get(&m.name));
            let value = number::or_dash(figure, number::short);
            GridCell {
                detail: format!("{}: {value}", placed.name(report.lengths)),
                value,
                mark: String::new(),
                shade: Shade::Plain,
            }
        };
        let grid = placed::shape(&block, report.lengths, baseline);
        document.push(
            Section::minor(format!(
                "Non-critical length {length}: the baseline's {name}{unit}"
            ))
            .with(Part::Grid(grid)),
        );
    }
    let signs = placed::legend(&placed, &design::margin(report), false);
    document.push(
        Section::new("")
            .with(Part::Legend(signs))
            .note(design::method(report, Family::FalseDiscovery)),
    );
}

/// Charts of each pair with its interval, and of the runs of the primary metric
/// over time.
fn charts(report: &Report, judged: &JudgedCell, document: &mut Document) {
    let cell = report.cell(judged);
    let rows: Vec<IntervalRow> = outside(judged).map(|m| interval(cell, m)).collect();
    if !rows.is_empty() {
        let margin = 100.0 * report.verdicts.settings.delta;
        document.push(
            Section::minor("Differences: each pair, and the 95 % interval")
                .note("Dots are pairs, the band is the margin for flat.")
                .with(Part::Intervals(Intervals { rows, margin }))
                .only(Medium::Page),
        );
    }
    if let Some(metric) = cell.primary() {
        let series = |baseline: bool| -> Vec<(f64, f64)> {
            let sample = |p: &Pair| {
                if baseline {
                    p.baseline.clone()
                } else {
                    p.experiment.clone()
                }
            };
            cell.pairs
                .iter()
                .enumerate()
                .map(|(i, pair)| (i, sample(pair)))
                .filter(|(_, sample)| sample.invalid.is_none())
                .filter_map(|(i, sample)| {
                    let value = sample.values.get(&metric.name)?;
                    Some((sample.started.unwrap_or(i as f64 + 1.0), *value))
                })
                .collect()
        };
        let unit = if metric.unit.is_empty() {
            String::new()
        } else {
            format!(" [{}]", metric.unit)
        };
        document.push(
            Section::minor("Runs over time")
                .with(Part::Timeline(Timeline {
                    title: format!("{}{unit}", metric.name),
                    x_title: "seconds after the start".into(),
                    baseline: series(true),
                    experiment: series(false),
                    format: number::short,
                }))
                .only(Medium::Page),
        );
    }
}

fn interval(cell: &Cell, m: &JudgedMetric) -> IntervalRow {
    let valid = !matches!(m.judged.verdict, Verdict::Invalid(_));
    let counts = |pair: &&Pair| pair.invalid().is_none();
    let percent = |pair: &Pair| {
        let of = |sample: &crate::experiment::Sample| sample.values.get(&m.metric.name).copied();
        let percent = 100.0 * (of(&pair.experiment)? / of(&pair.baseline)? - 1.0);
        percent.is_finite().then_some(percent)
    };
    IntervalRow {
        name: m.metric.name.clone(),
        estimate: m
            .judged
            .estimate
            .filter(|_| valid)
            .map(|e| e.delta_percent()),
        pairs: cell
            .pairs
            .iter()
            .filter(counts)
            .filter_map(percent)
            .collect(),
        verdict: m.judged.verdict.word().into(),
    }
}
