//! The picture of a ranking: throughput over threads and p99 beside it, a line
//! a lock.

use crate::experiment::AT_ONCE;
use crate::matrix::{LATENCY_P99, OPS};
use crate::ranking::{Point, Ranking};
use crate::report::inputs::Report;
use locklab_document::number::{self, label};
use locklab_document::{Document, Line, LinePoint, Lines, Medium, Part, Section};

/// Shows one picture for each pair of lengths.
pub(super) fn over_threads(report: &Report, ranking: &Ranking, document: &mut Document) {
    let on = |p: &Point, axis: &str| p.key.number(axis);
    let lengths = |p: &Point| (on(p, "critical"), on(p, "non_critical"), on(p, AT_ONCE));
    let mut seen = Vec::new();
    for point in &ranking.points {
        if !seen.contains(&lengths(point)) {
            seen.push(lengths(point));
        }
    }
    for of in seen.iter().copied() {
        let points: Vec<&Point> = ranking.points.iter().filter(|p| lengths(p) == of).collect();
        let heading = match of {
            (Some(critical), Some(non_critical), at_once) if seen.len() > 1 => format!(
                "Throughput over {}, critical {}, non-critical {}{}{}",
                number::plural(2, report.lengths.noun()),
                label(critical),
                label(non_critical),
                report.lengths.unit(),
                report.lengths.at_once(at_once)
            ),
            _ => format!(
                "Throughput over {}",
                number::plural(2, report.lengths.noun())
            ),
        };
        let charts = [
            (OPS, "Operations a second", false),
            (LATENCY_P99, "p99 of the wait, ns", true),
        ];
        let charts: Vec<Lines> = charts
            .into_iter()
            .filter_map(|(metric, title, logarithmic)| {
                lines(report, ranking, &points, metric, title, logarithmic)
            })
            .collect();
        if charts.is_empty() {
            continue;
        }
        document.push(
            Section::new(heading)
                .with(Part::Lines(charts))
                .note(
                    "Coloured: those that may be the best somewhere, and what is in use today; \
                     grey: all others. A band is the 95 % interval over the blocks. A pointer on a \
                     mark shows its figure.",
                )
                .only(Medium::Page),
        );
    }
}

fn lines(
    report: &Report,
    ranking: &Ranking,
    points: &[&Point],
    metric: &str,
    title: &str,
    logarithmic: bool,
) -> Option<Lines> {
    let order = ranking.overall();
    let today = |lock: usize| ranking.question.against && lock == 0;
    let first = |lock: usize| {
        let best = points.iter().filter_map(|p| p.metrics.first());
        best.clone().any(|m| m.order().first() == Some(&lock))
    };
    let in_a_set = |lock: usize| {
        let mut best = points.iter().filter_map(|p| p.metrics.first());
        best.any(|m| m.may_be_best(lock))
    };
    // What is in use, then what leads somewhere, then what may be the best.
    let importance = |lock: usize| match lock {
        lock if today(lock) => Some(0),
        lock if first(lock) => Some(1),
        lock if in_a_set(lock) => Some(2),
        _ => None,
    };
    let name = |lock: usize| &ranking.question.subjects[lock].name;
    let line = |lock: usize| {
        let of = points.iter().enumerate().filter_map(|(place, point)| {
            let ranked = point.metric(metric)?;
            let figure = ranked.figures[lock]?;
            let share = ranked.standings[lock]
                .of_best
                .map_or_else(String::new, |s| {
                    format!(", {} of the best", number::ratio(s.value))
                });
            Some(LinePoint {
                place,
                value: figure.value,
                limits: figure.low.zip(figure.high),
                detail: format!(
                    "{}, {}: {}{share}",
                    name(lock),
                    number::count(
                        usize::try_from(point.threads()).unwrap_or(usize::MAX),
                        report.lengths.noun()
                    ),
                    number::short(figure.value)
                ),
            })
        });
        Line {
            name: name(lock).clone(),
            points: of.collect(),
            colour: None,
            bold: today(lock),
        }
    };
    let lines = Lines {
        title: title.into(),
        x_title: number::plural(2, report.lengths.noun()),
        names: points.iter().map(|p| label(p.threads())).collect(),
        lines: order.iter().map(|lock| line(*lock)).collect(),
        logarithmic,
    };
    let subjects = &ranking.question.subjects;
    let of = |line: &Line| subjects.iter().position(|s| s.name == line.name);
    let lines = lines.coloured(|line| importance(of(line)?));
    (!lines.is_empty()).then_some(lines)
}
