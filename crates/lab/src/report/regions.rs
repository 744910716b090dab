//! The regions of a matrix as sentences and as JSON: what a reader needs first.

use super::{Lengths, Report};
use crate::regions::{JudgedPart, Part};
use locklab_document::mark;
use locklab_document::number;
use locklab_judge::Verdict;

/// One sentence for all rows: "mcs against ticket, over all lengths: ...".
pub(super) fn lead(report: &Report) -> Option<String> {
    let rows: Vec<String> = report
        .verdicts
        .regions
        .iter()
        .filter(|r| matches!(r.part, Part::Threads(..)))
        .map(|r| format!("{} {}", name(r.part, report.lengths), found(r)))
        .collect();
    (!rows.is_empty()).then(|| {
        format!(
            "{}, over all lengths: {}.",
            report.subject(),
            rows.join("; ")
        )
    })
}

/// A line for each of the other regions.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let regions = report.verdicts.regions.iter();
    regions
        .filter(|r| !matches!(r.part, Part::Threads(..)))
        .map(|r| {
            format!(
                "{}: {} {}",
                name(r.part, report.lengths),
                found(r),
                mark(&r.judged.verdict)
            )
        })
        .collect()
}

/// The name of a region in a sentence.
pub(super) fn name(part: Part, lengths: Lengths) -> String {
    match part {
        Part::Threads(n, crowded) => {
            let several = usize::try_from(n).unwrap_or(usize::MAX);
            let noun = number::plural(several, lengths.noun());
            let more = if crowded { ", more than the CPUs," } else { "" };
            format!("{} {noun}{more}", number::label(n))
        }
        Part::Contended => format!(
            "all cells of several {} on CPUs of their own",
            number::plural(2, lengths.noun())
        ),
        Part::NonCritical(n) => {
            format!(
                "contended, non-critical length {}{}",
                number::label(n),
                lengths.unit()
            )
        }
    }
}

/// "1.003 (0.998 to 1.007), shown flat within 1 %".
fn found(region: &JudgedPart) -> String {
    let Some(ratio) = region.judged.ratio() else {
        return "not measured".into();
    };
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(fine);
    let margin = number::percent(100.0 * region.delta);
    let verdict = match &region.judged.verdict {
        Verdict::Flat { .. } => format!("shown flat within {margin} %"),
        verdict => verdict.word().to_owned(),
    };
    format!("{value} ({low} to {high}), {verdict}")
}

/// A ratio with the digits that a region resolves.
fn fine(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        number::ratio(ratio)
    }
}
