//! The regions of a matrix as sentences and as JSON: what a reader needs first.

use super::inputs::{Lengths, Report};
use crate::experiment::Provenance;
use crate::regions::{JudgedPart, Part};
use crate::verdicts::JudgedCell;
use locklab_document::Facts;
use locklab_document::number;
use locklab_judge::Verdict;
use std::collections::BTreeSet;

/// The answer over all lengths, in one sentence: what is shown with one thread and
/// with several. On a model single cells are seldom open, and a mean over four and
/// forty threads is no answer to put first.
pub(super) fn lead(report: &Report) -> Option<String> {
    if !matches!(report.experiment.provenance, Provenance::Hardware(_)) {
        return None;
    }
    let all = &report.verdicts.regions;
    let contended = all.iter().any(|r| r.part == Part::Contended);
    let answers = |r: &&JudgedPart| match r.part {
        // All numbers of several threads are one.
        Part::Threads(n, crowded) => n == 1 || crowded || !contended,
        Part::Contended => true,
        Part::NonCritical(_) => false,
    };
    let mut clauses: Vec<(String, Vec<String>)> = Vec::new();
    let mut regions: Vec<&JudgedPart> = all.iter().filter(answers).collect();
    regions.sort_by_key(|r| matches!(r.part, Part::Threads(_, true)));
    for region in regions {
        let shown = format!("{}{}", shown(region), against(report, region));
        let place = with(region.part, report.lengths);
        match clauses.iter_mut().find(|(clause, _)| *clause == shown) {
            Some((_, places)) => places.push(place),
            None => clauses.push((shown, vec![place])),
        }
    }
    let clauses: Vec<String> = clauses
        .into_iter()
        .map(|(shown, places)| format!("{shown} {}", places.join(" and ")))
        .collect();
    (!clauses.is_empty()).then(|| {
        format!(
            "Over all lengths, {} is {}.",
            report.subject(),
            clauses.join("; ")
        )
    })
}

/// "better by 9.1 % (8.0 to 10 %)", "shown flat within 1 %", "unclear (0.98 to 1.03)".
fn shown(region: &JudgedPart) -> String {
    let verdict = &region.judged.verdict;
    let Some(ratio) = region.judged.ratio() else {
        return "not measured".into();
    };
    let bounded = region.judged.ci95.low.is_finite();
    match verdict {
        Verdict::Flat { .. } => flat(region),
        Verdict::Better | Verdict::Worse if ratio.value < 3.0 => {
            let percent = |r: f64| number::percent((100.0 * (r - 1.0)).abs());
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(percent);
            let (near, far) = if ratio.value > 1.0 {
                (low, high)
            } else {
                (high, low)
            };
            format!("{} by {value} % ({near} to {far} %)", verdict.word())
        }
        Verdict::Better | Verdict::Worse => {
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(number::factor);
            format!(
                "{} by a factor of {value} ({low} to {high})",
                verdict.word()
            )
        }
        _ if bounded => format!(
            "{} ({} to {})",
            verdict.word(),
            fine(ratio.low),
            fine(ratio.high)
        ),
        _ => verdict.word().into(),
    }
}

/// The share of a region's cells beyond which calls against its own verdict are
/// reported with it: one in twenty may be chance.
const NOTEWORTHY: f64 = 0.1;

/// ", but worse in 4 of 18 cells": what single cells show against the whole, which
/// has a verdict of its own even where lengths matter more than the locks do.
fn against(report: &Report, region: &JudgedPart) -> String {
    // A cell that was judged in two placements is one cell.
    let count = |has: &dyn Fn(&JudgedCell) -> bool| {
        let of = report.measured();
        let of = of.filter(|c| region.part.has(report.cell(c)) && has(c));
        of.map(|c| c.cell).collect::<BTreeSet<_>>().len()
    };
    let all = count(&|_| true);
    let called: Vec<String> = [Verdict::Better, Verdict::Worse]
        .into_iter()
        .filter(|verdict| region.judged.verdict != *verdict)
        .map(|verdict| (verdict.word(), count(&|c| c.verdict() == Some(&verdict))))
        .filter(|(_, count)| *count as f64 > NOTEWORTHY * all as f64)
        .map(|(word, count)| format!("{word} in {count}"))
        .collect();
    if called.is_empty() {
        return String::new();
    }
    let all = number::count(all, "cell");
    format!(", but {} of {all},", called.join(" and "))
}

/// "with 2 threads".
fn with(part: Part, lengths: Lengths) -> String {
    match part {
        Part::Contended => format!(
            "with several {} on CPUs of their own",
            number::plural(2, lengths.noun())
        ),
        part => format!("with {}", name(part, lengths)),
    }
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
    let verdict = match &region.judged.verdict {
        Verdict::Flat { .. } => flat(region),
        verdict => verdict.word().to_owned(),
    };
    if !region.judged.ci95.low.is_finite() {
        return format!("{value}, too few pairs for an interval, {verdict}");
    }
    format!("{value} ({low} to {high}), {verdict}")
}

/// "shown flat within 1 %".
fn flat(region: &JudgedPart) -> String {
    let margin = number::percent(100.0 * region.delta);
    format!("shown flat within {margin} %")
}

/// A ratio with the digits that a region resolves.
fn fine(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        number::factor(ratio)
    }
}
