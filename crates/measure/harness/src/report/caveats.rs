//! The caveats of a report.
//!
//! They are those of the backend, of the machine, and of the judge; each
//! kind once, with the number of cells that it concerns.

use super::inputs::Report;
use crate::experiment::Provenance;
use locklab_document::number;
use locklab_judge::{Judged, Reason, Verdict, Warning};
use std::mem::discriminant;

/// The most pairs that are suggested as a remedy.
const HOPELESS: u64 = 500;

/// Returns what it would take to decide the unclear cells.
pub(super) fn unclear(report: &Report, judged: &[&Judged]) -> Option<String> {
    let mut detectable = Vec::new();
    let mut needed = Vec::new();
    let (mut cells, mut blind) = (0, 0);
    for judged in judged {
        if let Verdict::Unclear {
            detectable: effect,
            pairs_for_flat,
        } = &judged.verdict
        {
            cells += 1;
            match effect {
                Some(effect) => detectable.push(100.0 * effect),
                None => blind += 1,
            }
            needed.extend(pairs_for_flat);
        }
    }
    if cells == 0 {
        return None;
    }
    let mut words = vec![format!(
        "{cells} unclear: neither shown to differ nor shown to be equal."
    )];
    detectable.sort_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (detectable.first(), detectable.last()) {
        let half = in_half(&detectable, |middle| effect(*middle));
        let [low, high] = [*low, *high].map(effect);
        words.push(if low == high {
            format!("This number of pairs finds a difference of {low} four times in five.")
        } else {
            format!(
                "This number of pairs finds a difference of {low} to {high}{half} four times in \
                 five."
            )
        });
    }
    if blind > 0 {
        words.push(format!(
            "In {} there are too few pairs to show any difference, however large.",
            number::count(blind, "cell")
        ));
    }
    needed.sort_unstable();
    if let (Some(low), Some(high)) = (needed.first(), needed.last()) {
        let half = in_half(&needed, |middle| number::grouped(*middle));
        let [few, many] = [*low, *high].map(number::grouped);
        words.push(if low == high {
            format!("About {few} pairs for each cell would show that there is none.")
        } else {
            format!(
                "About {few} to {many} pairs for each cell{half} would show that there is none."
            )
        });
        if needed[needed.len() / 2] > HOPELESS {
            words.push(
                match report.experiment.provenance {
                    Provenance::Hardware(_) => {
                        "That is out of reach: quiet the machine, take longer runs, or settle \
                         for a wider margin before the next run."
                    }
                    Provenance::Simulation(_) | Provenance::Model(_) => {
                        "That is out of reach: settle for a wider margin before the next run."
                    }
                }
                .into(),
            );
        }
    }
    Some(words.join(" "))
}

/// Returns what half of the cells need at most, where there are enough of them to ask.
fn in_half<T>(sorted: &[T], text: impl Fn(&T) -> String) -> String {
    match sorted.len() {
        0..5 => String::new(),
        n => format!(" (in half of the cells at most {})", text(&sorted[n / 2])),
    }
}

/// Returns a difference in percent; beyond a factor of ten the figure has no meaning.
fn effect(percent: f64) -> String {
    if percent > 1000.0 {
        "over 1000 %".into()
    } else {
        format!("{} %", number::percent(percent))
    }
}

/// Returns what is missing, and why.
pub(super) fn incomplete(report: &Report) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(why) = &report.experiment.interrupted {
        list.push(format!("Not complete: {}", sentence(why)));
    }
    let silent = report.missing().filter(|cell| cell.stopped.is_none());
    match silent.count() {
        0 => {}
        n => list.push(format!(
            "{} not measured; --resume continues.",
            number::count(n, "cell")
        )),
    }
    list
}

/// Returns why cells were abandoned, each reason once.
pub(super) fn stopped(report: &Report) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for cell in &report.experiment.cells {
        if let Some(why) = &cell.stopped {
            let name = cell.key.to_string();
            match reasons.iter_mut().find(|(reason, _)| reason == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
    }
    reasons
        .into_iter()
        .map(|(why, names)| match names.as_slice() {
            [name] => format!("{name}: {}", sentence(why)),
            [first, ..] => format!(
                "{}, {first} the first: {}",
                number::count(names.len(), "cell"),
                sentence(why)
            ),
            [] => String::new(),
        })
        .collect()
}

/// Returns the sentence with a full stop at its end.
fn sentence(text: &str) -> String {
    if text.ends_with('.') {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// Returns each kind of reason once, with the number of cells that have it.
pub(super) fn invalid(judged: &[&Judged]) -> Vec<String> {
    let mut kinds: Vec<(&Reason, usize)> = Vec::new();
    let same = |a: &Reason, b: &Reason| match (a, b) {
        (Reason::Fatal { fault: a, .. }, Reason::Fatal { fault: b, .. }) => {
            (a.kind, a.side) == (b.kind, b.side)
        }
        _ => discriminant(a) == discriminant(b),
    };
    for judged in judged {
        let Verdict::Invalid(reasons) = &judged.verdict else {
            continue;
        };
        for reason in reasons {
            match kinds.iter_mut().find(|(kind, _)| same(kind, reason)) {
                Some((_, n)) => *n += 1,
                None => kinds.push((reason, 1)),
            }
        }
    }
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    kinds
        .into_iter()
        .map(|(reason, n)| match n {
            1 => format!("Invalid in 1 cell: {reason}."),
            n => format!("Invalid in {n} cells; in the first, {reason}."),
        })
        .collect()
}

/// Returns whether this was decided with a bias that an A/A run had measured.
fn has_band(judged: &Judged) -> bool {
    let unknown = |warning: &Warning| matches!(warning, Warning::BandUnknown);
    matches!(
        judged.verdict,
        Verdict::Flat { .. } | Verdict::Better | Verdict::Worse
    ) && !judged.warnings.iter().any(unknown)
}

/// Returns each kind of warning once, with the number of cells that carry it.
pub(super) fn warnings(judged: &[&Judged]) -> Vec<String> {
    let mut kinds: Vec<(&Warning, usize)> = Vec::new();
    let of = judged.len();
    for warning in judged.iter().flat_map(|j| &j.warnings) {
        match kinds
            .iter_mut()
            .find(|(w, _)| discriminant(*w) == discriminant(warning))
        {
            Some((_, n)) => *n += 1,
            None => kinds.push((warning, 1)),
        }
    }
    kinds
        .into_iter()
        .map(|(warning, n)| match warning {
            // It holds for all, so the number says nothing.
            Warning::BandUnknown if judged.iter().any(|j| has_band(j)) => {
                format!("In {}, {warning}.", number::count(n, "cell"))
            }
            Warning::BandUnknown | Warning::TooFewForFamily { .. } => {
                sentence_case(&format!("{warning}."))
            }
            Warning::Autocorrelated { .. } => format!(
                "In {} of {of} the pairs depend on one another (lag-1 autocorrelation beyond \
                 2/sqrt(n); chance alone gives about {}): their error rate may not be 5 %.",
                number::count(n, "cell"),
                (0.05 * of as f64).round()
            ),
            _ if n == 1 => format!("In 1 cell: {warning}."),
            _ => format!("In {}; in the first, {warning}.", number::count(n, "cell")),
        })
        .collect()
}

/// Makes a sentence that begins with "In" or "Of" a part of another one.
pub(super) fn in_a_sentence(text: &str) -> String {
    match text.starts_with("In ") || text.starts_with("Of ") {
        true => text[..1].to_lowercase() + &text[1..],
        false => text.to_owned(),
    }
}

/// Returns the text with a capital first letter.
pub(super) fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
