//! The charts of a matrix: throughput against threads, pairs with intervals,
//! runs over time.

use super::cells::{MANY, blocks, placed};
use crate::experiment::{Pair, Sample};
use crate::matrix::{LATENCY_P99, OPS};

use crate::report::design;
use crate::report::inputs::Report;
use crate::report::placed::axis;
use crate::verdicts::JudgedCell;
use locklab_document::number::{self, label};
use locklab_document::{
    Document, IntervalRow, Intervals, Line, LinePoint, Lines, Medium, Part, Section, Timeline,
};
use locklab_judge::{Shown, Verdict};

/// Returns whether a cell may be drawn: an invalid one must not be.
fn readable(cell: &JudgedCell) -> bool {
    !matches!(cell.verdict(), None | Some(Verdict::Invalid(_)))
}

/// Shows throughput over threads and the p99 of the wait beside it, a line a lock,
/// one picture for each pair of lengths.
pub(super) fn over_threads(report: &Report, document: &mut Document) {
    let noun = number::plural(2, report.lengths.noun());
    document.push(
        Section::new(format!("Throughput over {noun}"))
            .note(
                "A band is the 95 % interval over the runs; where there is none, there are fewer \
                 than six runs. A pointer on a mark shows its figure.",
            )
            .only(Medium::Page),
    );
    for (title, block) in blocks(report) {
        let on = |c: &JudgedCell, axis: &str| report.cell(c).key.number(axis).unwrap_or(0);
        let charts = axis(&block, |c| on(c, "critical"))
            .into_iter()
            .flat_map(|critical| {
                let at = |c: &&&JudgedCell| on(c, "critical") == critical && readable(c);
                let mut cells: Vec<&JudgedCell> = block.iter().filter(at).copied().collect();
                // Cells of one thread have no placement and come last.
                cells.sort_by_key(|c| on(c, "threads"));
                let length = format!("critical {}{}", label(critical), report.lengths.unit());
                let decides = cells.iter().find_map(|c| c.primary());
                let decides = decides.map_or(OPS, |m| m.metric.name.as_str());
                let what = if decides == OPS {
                    "operations a second"
                } else {
                    decides
                };
                [
                    lines(report, &cells, decides, &format!("{what}, {length}")),
                    lines(
                        report,
                        &cells,
                        LATENCY_P99,
                        &format!("p99 of the wait in ns, {length}"),
                    ),
                ]
            })
            .flatten()
            .collect();
        document.push(
            Section::minor(title)
                .with(Part::Lines(charts))
                .only(Medium::Page),
        );
    }
}

/// Returns one metric of both locks over threads; `None` where it was not measured.
fn lines(report: &Report, cells: &[&JudgedCell], metric: &str, title: &str) -> Option<Lines> {
    let threads = |c: &JudgedCell| report.cell(c).key.number("threads").unwrap_or(0);
    let labels = &report.experiment.labels;
    let line = |name: &String, is_baseline: bool| {
        let points = cells.iter().enumerate().filter_map(|(place, cell)| {
            let side = if is_baseline {
                &cell.baseline
            } else {
                &cell.experiment
            };
            let figure = side.0.get(metric)?;
            Some(LinePoint {
                place,
                value: figure.value,
                limits: figure.low.zip(figure.high),
                detail: format!(
                    "{name}, {}: {}",
                    number::count(
                        usize::try_from(threads(cell)).unwrap_or(usize::MAX),
                        report.lengths.noun()
                    ),
                    number::short(figure.value)
                ),
            })
        });
        Line {
            name: name.clone(),
            points: points.collect(),
            colour: None,
            bold: is_baseline,
        }
    };
    let lines = Lines {
        title: title.into(),
        x_title: number::plural(2, report.lengths.noun()),
        names: cells.iter().map(|c| label(threads(c))).collect(),
        lines: vec![
            line(&labels.baseline, true),
            line(&labels.experiment, false),
        ],
        logarithmic: metric == LATENCY_P99,
    };
    let lines = lines.coloured(|_| Some(0));
    (!lines.is_empty()).then_some(lines)
}

/// Shows a chart of every pair, with the interval of its cell.
pub(super) fn intervals(report: &Report, document: &mut Document) {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let rows: Vec<IntervalRow> = report
        .measured()
        .filter_map(|cell| {
            let placed = placed(report, cell)?;
            let metric = &cell.primary()?.metric;
            // Differences are positive where better, ratios where larger.
            let larger = match metric.direction {
                locklab_judge::Direction::HigherIsBetter => 1.0,
                locklab_judge::Direction::LowerIsBetter => -1.0,
            };
            let drawn = cell.differences.iter().filter(|_| readable(cell));
            Some(IntervalRow {
                name: format!(
                    "{} thr, crit {}, non-crit {}",
                    label(placed.threads),
                    label(placed.critical),
                    label(placed.non_critical)
                ) + &report.lengths.at_once(placed.at_once),
                estimate: placed.ratio.map(|r| Shown {
                    value: percent(r.value),
                    low: percent(r.low),
                    high: percent(r.high),
                }),
                pairs: drawn.map(|d| 100.0 * (larger * d).exp_m1()).collect(),
                verdict: placed.judged.verdict.word().into(),
            })
        })
        .collect();
    let folded = rows.len() > MANY;
    let margin = 100.0 * report.verdicts.settings.delta;
    document.push(
        Section::new("Pairs and intervals")
            .note(format!(
                "Each dot is a pair (experiment against baseline), the line is the 95 % interval \
                 of the estimate, the band is what counts as flat (\u{b1}{} %). The axis is \
                 logarithmic outside the band.",
                design::margin(report)
            ))
            .only(Medium::Page),
    );
    document.push(
        Section::minor("Every cell")
            .with(Part::Intervals(Intervals { rows, margin }))
            .folded(folded)
            .only(Medium::Page),
    );
}

/// Charts of runs over time, which show drift, jumps and waves.
pub(super) fn timelines(report: &Report, document: &mut Document) {
    let mut pairs = report.experiment.cells.iter().flat_map(|c| &c.pairs);
    let timed = pairs.all(|p| p.samples().iter().all(|s| s.started.is_some()));
    let x_title = if timed {
        "seconds from the start"
    } else {
        "number of the run"
    };
    let baseline: fn(&Pair) -> &Sample = |pair| &pair.baseline;
    let experiment: fn(&Pair) -> &Sample = |pair| &pair.experiment;
    let mut section = Section::new("Runs over time")
        .note(
            "Each run against the median of its own side and cell: a slope is drift, a step is a \
             machine that changed. Pairs and the coin take drift out of the verdicts; a step \
             within a pair they cannot.",
        )
        .with(Part::Timeline(Timeline {
            title: "Percent from the median of the same side in the same cell".into(),
            x_title: x_title.into(),
            baseline: deviations(report, baseline, timed),
            experiment: deviations(report, experiment, timed),
            format: |v| format!("{} %", number::percent(v)),
        }));
    let (b, e) = (
        round_trips(report, baseline, timed),
        round_trips(report, experiment, timed),
    );
    if !b.is_empty() || !e.is_empty() {
        section = section.with(Part::Timeline(Timeline {
            title: "Cache-line round trip between the CPUs in use, ns".into(),
            x_title: x_title.into(),
            baseline: b,
            experiment: e,
            format: number::short,
        }));
    }
    document.push(section.only(Medium::Page));
}

/// Points of time, or the number of the run, against percent from the cell's
/// median.
fn deviations(report: &Report, side: fn(&Pair) -> &Sample, timed: bool) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut number = 0.0;
    for cell in &report.experiment.cells {
        let Some(metric) = cell.primary() else {
            continue;
        };
        let value = |sample: &Sample| {
            let value = sample.values.get(&metric.name).copied();
            value.filter(|v| sample.invalid.is_none() && v.is_finite())
        };
        let mut values: Vec<f64> = cell.pairs.iter().filter_map(|p| value(side(p))).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
        for pair in &cell.pairs {
            number += 1.0;
            let sample = side(pair);
            let x = sample.started.filter(|_| timed).unwrap_or(number);
            if let Some(value) = value(sample) {
                points.push((x, 100.0 * (value / middle - 1.0)));
            }
        }
    }
    points.retain(|(_, y)| y.is_finite());
    points
}

fn round_trips(report: &Report, side: fn(&Pair) -> &Sample, timed: bool) -> Vec<(f64, f64)> {
    let pairs = report.experiment.cells.iter().flat_map(|c| &c.pairs);
    pairs
        .enumerate()
        .filter(|(_, pair)| side(pair).invalid.is_none())
        .filter_map(|(i, pair)| {
            let sample = side(pair);
            let x = sample.started.filter(|_| timed).unwrap_or(i as f64 + 1.0);
            Some((x, sample.placement?.round_trip()))
        })
        .filter(|(_, y)| y.is_finite())
        .collect()
}
