//! Throughput over the number of threads, for a page.
//!
//! It must never count work as progress that is only there because holds grow.

use crate::question::Question;
use crate::runs::Point;
use crate::words::Summary;
use locklab_document::{Line, LinePoint, Lines, Medium, Part, Section};

/// Returns the rates over the numbers of threads: today's lock, the best, the ideal one.
pub(crate) fn chart(summaries: &[&Summary<'_>], question: &Question) -> Section {
    let best = summaries
        .last()
        .and_then(|summary| summary.locks.first())
        .map(|(number, _)| *number);
    let line = |name: &str, colour, of: &dyn Fn(&Point) -> Option<f64>| Line {
        name: name.to_owned(),
        points: summaries
            .iter()
            .enumerate()
            .filter_map(|(place, summary)| {
                // Progress: a hold that takes longer is no more of it.
                let value = of(summary.point)? / summary.point.longer;
                Some(LinePoint {
                    place,
                    value,
                    limits: None,
                    detail: format!("{name}: {value:.2}"),
                })
            })
            .collect(),
        colour,
        bold: true,
    };
    let mut lines = vec![
        line("today's", Some(0), &|point| Some(point.today[0].rate)),
        line("(ideal)", Some(2), &|point| Some(point.ideal[0].rate)),
    ];
    if let Some(best) = best {
        let of = |point: &Point| Some(point.locks[best].as_ref().ok()?.first()?.rate);
        lines.insert(1, line(&question.locks[best].name(), Some(1), &of));
    }
    let longer = summaries.iter().any(|summary| summary.point.longer > 1.0);
    Section::minor("Rate over threads")
        .only(Medium::Page)
        .with(Part::Lines(vec![Lines {
            title: match longer {
                true => "threads that compute at a time, by work as recorded, simulated",
                false => "threads that compute at a time, simulated",
            }
            .into(),
            x_title: "threads".into(),
            names: summaries
                .iter()
                .map(|summary| summary.point.threads.to_string())
                .collect(),
            lines,
            logarithmic: false,
        }]))
}
