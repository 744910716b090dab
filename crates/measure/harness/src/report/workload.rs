//! Names a workload for the parts of a report, with its metrics: those in rows, and those
//! that have a place in a matrix.

use super::caveats;
use super::inputs::Report;
use super::placed::Placed;
use crate::experiment::{Cell, Metric, Role};
use crate::verdicts::{Figures, JudgedCell, JudgedMetric};
use locklab_document::{MetricRow, number};
use locklab_judge::{Judged, Verdict};

/// Returns the name of a workload, with its variant and, where it was judged in
/// several, its placement.
pub(super) fn name(report: &Report, judged: &JudgedCell) -> String {
    let key = report.cell(judged).key.to_string();
    let same = report
        .verdicts
        .cells
        .iter()
        .filter(|c| c.cell == judged.cell);
    match &judged.class {
        Some(class) if same.count() > 1 => format!("{key}, CPUs placed as \"{class}\""),
        _ => key,
    }
}

/// Returns the table of metrics: judged ones, then descriptive ones.
pub(super) fn rows(cell: &Cell, judged: &JudgedCell) -> Vec<MetricRow> {
    let described = |m: &&Metric| m.role == Role::Descriptive && m.at.is_none();
    let row = |metric: &Metric, of: Option<&Judged>| {
        let invalid = of.is_some_and(|j| matches!(j.verdict, Verdict::Invalid(_)));
        let estimate = of.and_then(|j| j.estimate).filter(|_| !invalid);
        let figure = |side: &Figures| side.get(&metric.name).filter(|_| !invalid);
        MetricRow {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            baseline: figure(&judged.baseline),
            experiment: figure(&judged.experiment),
            delta: estimate.map(|e| e.delta_percent()),
            verdict: of.map(|j| j.verdict.clone()),
            role: metric.role,
            test: String::new(),
        }
    };
    let shown = outside(judged).map(|m| row(&m.metric, Some(&m.judged)));
    let known = |m: &&Metric| judged.baseline.get(&m.name).is_some();
    let plain = cell.metrics.iter().filter(described).filter(known);
    shown.chain(plain.map(|m| row(m, None))).collect()
}

/// Returns the judged metrics that have no place in a matrix.
pub(super) fn outside(judged: &JudgedCell) -> impl Iterator<Item = &JudgedMetric> {
    judged.metrics.iter().filter(|m| m.metric.at.is_none())
}

/// Returns the judged metrics that have a place in a matrix.
pub(super) fn inside<'a>(judged: &'a JudgedCell) -> Vec<(&'a Metric, Placed<'a>)> {
    let of = |m: &'a JudgedMetric| {
        let key = m.metric.at.as_ref()?;
        let on = |axis: &str| key.number(axis).unwrap_or(0);
        let figure = |side: &Figures| number::or_dash(side.get(&m.metric.name), number::short);
        let placed = Placed {
            threads: on("threads"),
            critical: on("critical"),
            non_critical: on("non_critical"),
            at_once: None,
            judged: &m.judged,
            ratio: m.ratio(),
            crowded: false,
            disagrees: false,
            held_back: false,
            detail: format!(
                "; baseline {}, experiment {} {}",
                figure(&judged.baseline),
                figure(&judged.experiment),
                m.metric.unit
            ),
        };
        Some((&m.metric, placed))
    };
    judged.metrics.iter().filter_map(of).collect()
}

/// Returns the name that the metrics of one matrix share: what comes before `@`.
pub(super) fn base_name(metric: &Metric) -> &str {
    metric.name.split('@').next().unwrap_or(&metric.name)
}

/// Returns the warnings about matrices that runs give whole, each kind once.
pub(super) fn warnings_inside(report: &Report) -> Vec<String> {
    let all: Vec<_> = report.measured().flat_map(inside).collect();
    let judged: Vec<&Judged> = all.iter().map(|(_, placed)| placed.judged).collect();
    let mut list: Vec<String> = caveats::unclear(report, &judged).into_iter().collect();
    list.extend(caveats::invalid(&judged));
    list.extend(caveats::warnings(&judged));
    list
}
