//! The sentences of a comparison of workloads, none of which claims more than
//! its verdict.

use crate::experiment::{Role, Source};
use crate::report::inputs::Report;
use crate::report::workload::{base_name, inside, name, warnings_inside};
use crate::report::{caveats as shared, design, placed};
use crate::verdicts::JudgedCell;
use locklab_document::number;
use locklab_judge::{Estimate, Judged, Verdict, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// An interval as text, in percent of the metric's own direction.
fn interval(estimate: &Estimate) -> String {
    let delta = estimate.delta_percent();
    if !(delta.low.is_finite() && delta.high.is_finite()) {
        return "too few pairs for a 95 % interval".into();
    }
    format!("95 % interval {:+.2} to {:+.2} %", delta.low, delta.high)
}

/// One or two sentences on a workload.
pub(crate) fn sentence(report: &Report, judged: &JudgedCell) -> String {
    let cell = report.cell(judged);
    if !judged.is_measured() {
        return match &cell.stopped {
            Some(why) => format!("Not run: {}.", why.trim_end_matches('.')),
            None => "Not run.".into(),
        };
    }
    let matrix = inside(judged);
    let mut text = match judged.primary() {
        Some(primary) => verdict(&primary.metric.name, &primary.judged),
        None if matrix.is_empty() => "Nothing was judged.".to_owned(),
        None => String::new(),
    };
    if !matrix.is_empty() {
        let sides = report.sides(matrix.first().map_or("", |(metric, _)| base_name(metric)));
        let cells: Vec<_> = matrix.into_iter().map(|(_, placed)| placed).collect();
        let margin = design::margin(report);
        let found = placed::summary(&cells, &sides, &margin, report.lengths);
        text = format!("{text} {}", found.sentence).trim().to_owned();
    }
    let set_aside = || cell.pairs.iter().filter_map(|pair| pair.invalid());
    if let Some(fault) = set_aside().next() {
        let count = set_aside().count();
        text += &format!(
            " {count} of {} {}: {}.",
            number::count(cell.pairs.len(), "pair"),
            if count == 1 {
                "does not count"
            } else {
                "do not count; the first"
            },
            fault.why()
        );
    }
    if !judged.zero.is_empty() {
        let zero = judged.zero.join(", ");
        text += &format!(" Not judged, because zero in some run: {zero}.");
    }
    if let Some(why) = &cell.stopped {
        text += &format!(" Not complete: {}.", why.trim_end_matches('.'));
    }
    text
}

fn verdict(name: &str, judged: &Judged) -> String {
    let estimate = judged.estimate.as_ref();
    let by = estimate.map_or(0.0, |e| e.delta_percent().value);
    let between = estimate.map(interval).unwrap_or_default();
    match &judged.verdict {
        Verdict::Better => format!("Better: {name} changes by {by:+.2} % ({between})."),
        Verdict::Worse => format!("Worse: {name} changes by {by:+.2} % ({between})."),
        Verdict::Flat { nonzero: false } => {
            format!("Flat: {name} is shown to be within the margin ({between}).")
        }
        Verdict::Flat { nonzero: true } => format!(
            "Flat: {name} changes by {by:+.2} %, which is not zero and within the margin \
             ({between})."
        ),
        Verdict::Unclear {
            detectable,
            pairs_for_flat,
        } => {
            let mut text =
                format!("Unclear: {name} is neither shown to differ nor to be flat ({between}).");
            if let Some(effect) = detectable {
                let effect = number::percent(100.0 * effect);
                text += &format!(
                    " The same number of pairs would find an effect of {effect} % four times in \
                     five."
                );
            }
            match pairs_for_flat {
                Some(pairs) if *pairs <= 100_000 => {
                    let pairs = number::grouped(*pairs);
                    text += &format!(" About {pairs} pairs could show it flat.");
                }
                Some(_) => text += " No reasonable number of pairs could show it flat.",
                None => {}
            }
            text
        }
        Verdict::Invalid(reasons) => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            format!("Invalid: {}.", reasons.join("; "))
        }
    }
}

/// The caveats: those of the machine, and the warnings of the primary
/// metrics, each once.
pub(super) fn caveats(report: &Report) -> Vec<String> {
    let mut list = report.experiment.caveats.clone();
    let mut by_text: Vec<(String, Vec<String>)> = Vec::new();
    for judged in report.measured() {
        let warnings = judged.primary().map(|m| m.judged.warnings.as_slice());
        for warning in warnings.unwrap_or_default() {
            // The workload's sentence contains it.
            if matches!(warning, Warning::PairsSetAside { .. }) {
                continue;
            }
            let text = warning.to_string();
            let name = name(report, judged);
            match by_text.iter_mut().find(|(t, _)| *t == text) {
                Some((_, names)) => names.push(name),
                None => by_text.push((text, vec![name])),
            }
        }
    }
    list.extend(
        by_text
            .iter()
            .map(|(text, names)| format!("{}: {text}.", names.join(", "))),
    );
    list.extend(warnings_inside(report));
    list.extend(shared::incomplete(report));
    list
}

/// The conclusion: what was shown, and what was not.
pub(super) fn conclusion(report: &Report) -> Vec<String> {
    let mut by_word: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut not_run = Vec::new();
    let mut whole = Vec::new();
    for judged in &report.verdicts.cells {
        let name = name(report, judged);
        match judged.verdict().filter(|_| judged.is_measured()) {
            Some(verdict) => by_word.entry(verdict.word()).or_default().push(name),
            None if judged.is_measured() => whole.push((name, judged)),
            None => not_run.push(name),
        }
    }
    let of = report.verdicts.cells.len();
    let parts: Vec<String> = ["better", "worse", "flat", "unclear", "invalid"]
        .into_iter()
        .filter_map(|word| {
            let names = by_word.get(word)?;
            Some(format!(
                "{word} in {} of {of} ({})",
                names.len(),
                names.join(", ")
            ))
        })
        .collect();
    let mut list = Vec::new();
    if parts.is_empty() && whole.is_empty() {
        list.push("Nothing was measured, and nothing is concluded.".into());
    } else if !parts.is_empty() {
        list.push(format!("{}: {}.", report.subject(), parts.join(", ")));
    }
    for (name, judged) in &whole {
        list.push(format!("{name}: {}", sentence(report, judged)));
    }
    if !not_run.is_empty() {
        list.push(format!("Not run: {}.", not_run.join(", ")));
    }
    if !parts.is_empty() || !whole.is_empty() {
        let unsettled = by_word.contains_key("unclear") || by_word.contains_key("invalid");
        list.push(format!(
            "{}This holds for these workloads, on this machine, as it was set up.",
            if unsettled {
                "Unclear does not mean equal, and what is invalid says nothing. "
            } else {
                ""
            }
        ));
    }
    list
}

/// The sources of the figures, one item each.
pub(super) fn sources(report: &Report) -> Vec<String> {
    let mut by_source: BTreeMap<Source, BTreeSet<&str>> = BTreeMap::new();
    for judged in report.measured() {
        for metric in &report.cell(judged).metrics {
            let known = judged.baseline.get(&metric.name).is_some();
            if known && (metric.role == Role::Descriptive || judged.metric(&metric.name).is_some())
            {
                let name = base_name(metric);
                by_source.entry(metric.source).or_default().insert(name);
            }
        }
    }
    by_source
        .into_iter()
        .map(|(source, names)| {
            let names: Vec<&str> = names.into_iter().collect();
            format!("{}: {}.", names.join(", "), source.sentence())
        })
        .collect()
}
