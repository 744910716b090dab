//! The regions of a matrix as sentences and as JSON: what a reader needs first.

use super::{Lengths, Report};
use crate::experiment::Provenance;
use crate::regions::{JudgedPart, Part};
use locklab_document::Facts;
use locklab_document::number;
use locklab_judge::Verdict;

/// A sentence on all contended cells of a machine. On a model single cells are
/// seldom open, and a mean over four and forty threads is no answer to put first.
pub(super) fn lead(report: &Report) -> Option<String> {
    if !matches!(report.experiment.provenance, Provenance::Hardware(_)) {
        return None;
    }
    let mut regions = report.verdicts.regions.iter();
    let all = regions.find(|r| matches!(r.part, Part::Contended))?;
    let noun = number::plural(2, report.lengths.noun());
    Some(format!(
        "{} over all cells of several {noun} on CPUs of their own: {}.",
        report.subject(),
        found(all)
    ))
}

/// A line for each region, the rows first.
pub(super) fn facts(report: &Report) -> Facts {
    let is_row = |r: &&JudgedPart| matches!(r.part, Part::Threads(..));
    let regions = report.verdicts.regions.iter();
    let (rows, others): (Vec<_>, Vec<_>) = regions.partition(is_row);
    rows.into_iter()
        .chain(others)
        .map(|r| (label(r.part, report.lengths), found(r)))
        .collect()
}

/// The name of a region in a table, with the signs and words of the others.
fn label(part: Part, lengths: Lengths) -> String {
    match part {
        Part::Threads(n, true) => {
            format!(
                "{}o {}",
                number::label(n),
                number::plural(2, lengths.noun())
            )
        }
        Part::Threads(..) => name(part, lengths),
        Part::Contended => "contended".into(),
        Part::NonCritical(n) => format!("non-critical {}", number::label(n)),
    }
}

/// The name of a region in a sentence.
pub(super) fn name(part: Part, lengths: Lengths) -> String {
    match part {
        Part::Threads(n, crowded) => {
            let several = usize::try_from(n).unwrap_or(usize::MAX);
            let noun = number::plural(several, lengths.noun());
            let more = if crowded { ", more than the CPUs" } else { "" };
            format!("{} {noun}{more}", number::label(n))
        }
        Part::Contended => "all contended cells".into(),
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
    if !region.judged.ci95.low.is_finite() {
        return format!("{value}, too few pairs for an interval, {verdict}");
    }
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
