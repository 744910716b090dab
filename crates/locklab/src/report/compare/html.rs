//! The report as one HTML file: what the text has, and beside it the pairs,
//! the intervals, and the runs over time, in which drift would show.

use super::{Report, words};
use crate::compare::verdicts::{JudgedWorkload, pairs};
use crate::compare::{Measurement, Metric, RunPair};
use crate::report::chart::{self, IntervalRow, Timeline};
use crate::report::html::{clean, facts, page};
use crate::report::{comparison, number};
use locklab_judge::{Direction, Verdict};
use maud::{Markup, html};

/// The whole page.
#[must_use]
pub fn html(report: &Report) -> String {
    let measured = report.measured;
    let title = words::title(&measured.spec);
    let caveats = words::caveats(report);
    let body = html! {
        h1 { (clean(&title)) }
        @for sentence in words::conclusion(report) { p { (clean(&sentence)) } }
        h2 { "Setup" }
        (facts(&words::setup(report)))
        @if !caveats.is_empty() {
            h2 { "Before you read this" }
            ul { @for caveat in &caveats { li { (clean(caveat)) } } }
        }
        @for (measurement, judged) in measured.workloads.iter().zip(&report.verdicts.workloads) {
            (workload(report, measurement, judged))
        }
        @if let Some(footprint) = report.footprint {
            h2 { "Footprint" }
            pre { (clean(&locklab_footprint::render(footprint, 10))) }
        }
        h2 { "Environment" }
        (facts(&measured.environment))
        h2 { "Sources of the figures" }
        (facts(&words::sources(report)))
        p.note { (comparison::LEGEND) }
    };
    page(&title, body)
}

fn workload(report: &Report, measurement: &Measurement, judged: &JudgedWorkload) -> Markup {
    let spec = &report.measured.spec;
    let (b, e) = (spec.baseline.label(), spec.experiment.label());
    html! {
        h2 { (clean(&measurement.name)) }
        p { (clean(&measurement.about)) }
        p { strong { (clean(&words::sentence(measurement, judged))) } }
        @if !measurement.pairs.is_empty() {
            (facts(&measurement.setup))
            pre { (clean(&comparison::table(&judged.rows))) }
            h3 { "Differences: each pair, and the 95 % interval" }
            p.note { "Dots are pairs, the band is the margin for flat." }
            div.wide { (chart::intervals(&intervals(measurement, judged), 100.0 * spec.delta)) }
            @if let Some(first) = measurement.metrics.first() {
                h3 { "Runs over time" }
                (chart::key(&b, &e))
                div.wide { (runs(measurement, first)) }
            }
        }
    }
}

fn intervals(measurement: &Measurement, judged: &JudgedWorkload) -> Vec<IntervalRow> {
    let row = |row: &comparison::Row| {
        let metric = measurement.metrics.iter().find(|m| m.name == row.name);
        let samples = metric.map(|m| pairs(measurement, m)).unwrap_or_default();
        let valid = !matches!(row.judged.verdict, Verdict::Invalid(_));
        IntervalRow {
            name: row.name.clone(),
            estimate: row.judged.estimate.filter(|_| valid).map(|e| {
                let delta = e.delta_percent();
                (delta.value, delta.low, delta.high)
            }),
            pairs: samples
                .iter()
                // In the metric's own direction, as the table has it.
                .filter_map(|p| p.difference(Direction::HigherIsBetter))
                .map(|d| 100.0 * d.exp_m1())
                .collect(),
            verdict: row.judged.verdict.word().into(),
        }
    };
    judged.rows.iter().map(row).collect()
}

fn runs<'a>(measurement: &'a Measurement, metric: &Metric) -> Markup {
    let side = |baseline: bool| -> Vec<(f64, f64)> {
        let run = |p: &'a RunPair| if baseline { &p.baseline } else { &p.experiment };
        measurement
            .pairs
            .iter()
            .map(run)
            .filter(|r| r.invalid.is_none())
            .filter_map(|r| Some((r.started, *r.values.get(&metric.name)?)))
            .collect()
    };
    let title = if metric.unit.is_empty() {
        metric.name.clone()
    } else {
        format!("{} [{}]", metric.name, metric.unit)
    };
    chart::timeline(&Timeline {
        title: &title,
        baseline: side(true),
        experiment: side(false),
        x_title: "seconds after the start",
        format: number::short,
    })
}
