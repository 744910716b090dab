//! The regions of a matrix as sentences and as JSON: what a reader needs first.

use super::caveats::sentence_case;
use super::inputs::{Lengths, Report, Sides};
use super::placed::{self, Placed};
use crate::experiment::Provenance;
use crate::regions::{JudgedPart, Part};
use locklab_document::Facts;
use locklab_document::number;
use locklab_judge::Verdict;

/// Returns the answer over all lengths: a sentence for the contended cells, for one
/// thread, and for more threads than CPUs. On a model single cells are seldom open,
/// and a mean over four and forty threads is no answer to put first.
pub(super) fn lead(report: &Report, cells: &[Placed], sides: &Sides) -> Option<String> {
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
    let mut regions: Vec<&JudgedPart> = all.iter().filter(answers).collect();
    regions.sort_by_key(|r| match r.part {
        Part::Threads(_, crowded) => (crowded, r.part == Part::Threads(1, false)),
        _ => (false, false),
    });
    let mut answers: Vec<(String, Vec<String>)> = Vec::new();
    for region in regions {
        let shown = format!(
            "{}{}",
            shown(region, sides),
            exceptions(region, cells, sides, report.lengths)
        );
        let place = with(region.part, report.lengths);
        match answers.iter_mut().find(|(answer, _)| *answer == shown) {
            Some((_, places)) => places.push(place),
            None => answers.push((shown, vec![place])),
        }
    }
    let sentences: Vec<String> = answers
        .into_iter()
        .map(|(shown, places)| {
            let places = places.join(" and ");
            // A long place is closed by a comma.
            let comma = if places.split(' ').count() > 3 {
                ","
            } else {
                ""
            };
            sentence_case(&format!("{places}{comma} {shown}."))
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns a text such as "mcs is 9.1 % faster than ticket (8.0 to 10 %)", "mcs and
/// ticket are equal within 1 %".
fn shown(region: &JudgedPart, sides: &Sides) -> String {
    let Sides {
        experiment,
        baseline,
        ..
    } = sides;
    let verdict = &region.judged.verdict;
    let Some(ratio) = region.judged.ratio() else {
        return "nothing was measured".into();
    };
    let bounded = region.judged.ci95.low.is_finite();
    match verdict {
        Verdict::Flat { .. } => {
            let margin = number::percent(100.0 * region.delta);
            format!("{experiment} and {baseline} are equal within {margin} %")
        }
        Verdict::Better | Verdict::Worse if ratio.value < 3.0 => {
            let percent = |r: f64| number::percent((100.0 * (r - 1.0)).abs());
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(percent);
            let (near, far) = if ratio.value > 1.0 {
                (low, high)
            } else {
                (high, low)
            };
            let word = sides.word(verdict);
            format!("{experiment} is {value} % {word} than {baseline} ({near} to {far} %)")
        }
        Verdict::Better | Verdict::Worse => {
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(number::factor);
            let word = sides.word(verdict);
            format!(
                "{experiment} is {word} than {baseline} by a factor of {value} ({low} to {high})"
            )
        }
        Verdict::Unclear { .. } if bounded => format!(
            "it is unclear whether {experiment} or {baseline} is {} (ratio {} to {})",
            sides.word(&Verdict::Better),
            fine(ratio.low),
            fine(ratio.high)
        ),
        Verdict::Unclear { .. } => format!(
            "it is unclear whether {experiment} or {baseline} is {}",
            sides.word(&Verdict::Better)
        ),
        Verdict::Invalid(_) => format!("{experiment} against {baseline} is invalid"),
    }
}

/// The share of a region's cells beyond which calls against its own verdict are
/// reported with it: one in twenty may be chance.
const NOTEWORTHY: f64 = 0.1;

/// Returns ", except in 4 of 18 cells (critical length 0 to 1), where mcs is slower by
/// 2 to 25 %": what single cells show against the whole, which has a verdict of its
/// own even where lengths matter more than the locks do.
fn exceptions(region: &JudgedPart, cells: &[Placed], sides: &Sides, lengths: Lengths) -> String {
    let inside: Vec<Placed> = cells
        .iter()
        .filter(|cell| {
            let (threads, non_critical) = (Some(cell.threads), Some(cell.non_critical));
            region.part.has_place(threads, non_critical, cell.crowded)
        })
        .cloned()
        .collect();
    let mut exceptions: Vec<String> = Vec::new();
    for verdict in [Verdict::Better, Verdict::Worse] {
        let is = |cell: &&Placed| cell.judged.verdict == verdict;
        let called: Vec<&Placed> = inside.iter().filter(is).collect();
        let many = called.len() as f64 > NOTEWORTHY * inside.len() as f64;
        if region.judged.verdict == verdict || !many {
            continue;
        }
        // One place is named here; several are in the table of places.
        let places = placed::places(&inside, &called, lengths);
        let places = match places.contains(';') {
            true => String::new(),
            false => format!(" ({places})"),
        };
        let of = match exceptions.is_empty() {
            true => format!(
                "{} of {}",
                called.len(),
                number::count(inside.len(), "cell")
            ),
            false => called.len().to_string(),
        };
        exceptions.push(format!(
            "in {of}{places}, where {} is {} by {}",
            sides.experiment,
            sides.word(&verdict),
            placed::extent(&called)
        ));
    }
    match exceptions.is_empty() {
        true => String::new(),
        false => format!(", except {}", exceptions.join(", and ")),
    }
}

/// Returns a text such as "with 2 threads".
fn with(part: Part, lengths: Lengths) -> String {
    match part {
        Part::Contended => format!(
            "with several {} on CPUs of their own",
            number::plural(2, lengths.noun())
        ),
        part => format!("with {}", name(part, lengths)),
    }
}

/// Returns a line for each region, the rows first.
pub(super) fn facts(report: &Report) -> Facts {
    let is_row = |r: &&JudgedPart| matches!(r.part, Part::Threads(..));
    let regions = report.verdicts.regions.iter();
    let (rows, others): (Vec<_>, Vec<_>) = regions.partition(is_row);
    rows.into_iter()
        .chain(others)
        .map(|r| (label(r.part, report.lengths), found(r)))
        .collect()
}

/// Returns the name of a region in a table, with the signs and words of the others.
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

/// Returns the name of a region in a sentence.
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

/// Returns a text such as "1.003 (0.998 to 1.007), shown flat within 1 %".
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

/// Returns a text such as "shown flat within 1 %".
fn flat(region: &JudgedPart) -> String {
    let margin = number::percent(100.0 * region.delta);
    format!("shown flat within {margin} %")
}

/// Returns a ratio with the digits that a region resolves.
fn fine(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        number::factor(ratio)
    }
}
