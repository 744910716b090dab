//! The sentences of a comparison of workloads, none of which claims more than
//! its verdict.

use crate::experiment::{Role, Source};
use crate::report::inputs::Report;
use crate::report::workload::{base_name, inside, name, warnings_inside};
use crate::report::{caveats as shared, design, placed};
use crate::verdicts::{JudgedCell, JudgedMetric};
use locklab_document::number;
use locklab_judge::{Estimate, Judged, Verdict, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// Returns a change in percent in words: `1.25 % lower`.
fn change(percent: f64) -> String {
    let word = if percent < 0.0 { "lower" } else { "higher" };
    format!("{:.2} % {word}", percent.abs())
}

/// Returns the interval of a change: without signs where all of it is on one side.
fn interval(estimate: &Estimate) -> String {
    let delta = estimate.delta_percent();
    let (low, high) = (delta.low, delta.high);
    if !(low.is_finite() && high.is_finite()) {
        return "too few runs for a 95 % interval".into();
    }
    let [least, most] = match low.abs() <= high.abs() {
        true => [low, high],
        false => [high, low],
    };
    match low.signum() == high.signum() && low.signum() == delta.value.signum() {
        true => format!("95 % interval {:.2} to {:.2} %", least.abs(), most.abs()),
        false => format!("95 % interval {low:+.2} to {high:+.2} %"),
    }
}

/// Returns one or two sentences on a workload.
pub(crate) fn sentence(report: &Report, judged: &JudgedCell) -> String {
    let cell = report.cell(judged);
    if !judged.is_measured() {
        return match &cell.stopped {
            Some(why) => format!("Not run: {}.", why.trim_end_matches('.')),
            None => "Not run.".into(),
        };
    }
    let matrix = sentence_of_matrix(report, judged);
    let mut text = match judged.primary() {
        Some(primary) => format!(
            "{}{}",
            difference(report, judged, primary),
            outlook(&primary.judged.verdict)
        ),
        None if matrix.is_empty() => "Nothing was judged.".to_owned(),
        None => String::new(),
    };
    if !matrix.is_empty() {
        text = format!("{text} {matrix}").trim().to_owned();
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

/// Returns the sentence of a matrix that each run gives whole; empty without one.
fn sentence_of_matrix(report: &Report, judged: &JudgedCell) -> String {
    let matrix = inside(judged);
    let Some((metric, _)) = matrix.first() else {
        return String::new();
    };
    let sides = report.sides(base_name(metric));
    let cells: Vec<_> = matrix.into_iter().map(|(_, placed)| placed).collect();
    let margin = design::margin(report);
    placed::summary(&cells, &sides, &margin, report.lengths).sentence
}

/// Returns a sentence on whether a metric differs, and by how much.
fn difference(report: &Report, judged: &JudgedCell, metric: &JudgedMetric) -> String {
    let delta = report.cell(judged).delta;
    let delta = delta.unwrap_or(report.verdicts.settings.delta);
    let side = report.sides("").experiment;
    let Judged {
        verdict, estimate, ..
    } = &metric.judged;
    let name = &metric.metric.name;
    sentence_of_metric(name, &side, verdict, estimate.as_ref(), delta)
}

/// Returns a sentence on whether what `name` says differs with `side`, and by how much;
/// where flat means within `delta`, a fraction.
#[must_use]
pub fn sentence_of_metric(
    name: &str,
    side: &str,
    verdict: &Verdict,
    estimate: Option<&Estimate>,
    delta: f64,
) -> String {
    let by = change(estimate.map_or(0.0, |e| e.delta_percent().value));
    let between = estimate.map(interval).unwrap_or_default();
    let margin = number::percent(100.0 * delta);
    match verdict {
        Verdict::Better | Verdict::Worse => format!(
            "With {side}, {name} is {by} ({between}), which is {}.",
            verdict.word()
        ),
        Verdict::Flat { nonzero: false } => {
            format!("{name} is equal within {margin} % ({between}).")
        }
        Verdict::Flat { nonzero: true } => format!(
            "{name} is equal within {margin} %: with {side} it is {by} ({between}), which is \
             small but not zero."
        ),
        Verdict::Unclear { .. } => {
            // The samples may show a difference that a bias, drift or the family explains.
            let shown = estimate.map(|e| e.delta_percent());
            let but = match shown.is_some_and(|d| d.low > 0.0 || d.high < 0.0) {
                true => "which these samples alone cannot decide",
                false => "but may be equal",
            };
            format!(
                "It is unclear whether {name} differs: with {side} it is {by}, {but} ({between})."
            )
        }
        Verdict::Invalid(reasons) => {
            let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            format!("{name} is invalid: {}.", reasons.join("; "))
        }
    }
}

/// Returns what more pairs would show of what is unclear.
fn outlook(verdict: &Verdict) -> String {
    let Verdict::Unclear {
        detectable,
        pairs_for_flat,
    } = verdict
    else {
        return String::new();
    };
    let mut text = String::new();
    if let Some(effect) = detectable {
        let effect = number::percent(100.0 * effect);
        text += &format!(
            " The same number of pairs would find an effect of {effect} % four times in five."
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

/// The most metrics of which the first sentences speak.
const FIRST: usize = 6;

/// Returns the first sentences of a report: of the metrics that `verdict` judges, what is
/// worse before what is better, and both before the rest.
#[must_use]
pub fn first_sentences<T>(
    mut found: Vec<T>,
    verdict: impl Fn(&T) -> &Verdict,
    sentence: impl Fn(&T) -> String,
) -> Vec<String> {
    let order = ["worse", "better", "unclear", "invalid", "flat"];
    found.sort_by_key(|one| {
        let word = verdict(one).word();
        order.iter().position(|other| *other == word)
    });
    let mut sentences: Vec<String> = found.iter().take(FIRST).map(sentence).collect();
    match found.len().saturating_sub(FIRST) {
        0 => {}
        1 => sentences.push("One more stands below.".into()),
        more => sentences.push(format!("{more} more stand below.")),
    }
    sentences
}

/// Returns the first sentences of the report: what differs, and by how much.
pub(super) fn lead(report: &Report) -> String {
    let found: Vec<_> = report
        .measured()
        .filter_map(|judged| Some((judged, judged.primary()?)))
        .collect();
    let alone = report.verdicts.cells.len() == 1;
    let sentence = |(judged, metric): &(&JudgedCell, &JudgedMetric)| {
        let sentence = difference(report, judged, metric);
        match alone {
            true => sentence,
            false => behind(&name(report, judged), &sentence),
        }
    };
    let mut sentences = first_sentences(found, |(_, metric)| &metric.judged.verdict, sentence);
    // A matrix that each run gives whole has no metric that decides.
    let is_matrix = |judged: &&JudgedCell| judged.primary().is_none() && !inside(judged).is_empty();
    let whole = report.measured().filter(is_matrix);
    sentences.extend(
        whole.map(|judged| behind(&name(report, judged), &sentence_of_matrix(report, judged))),
    );
    sentences.join(" ")
}

/// Returns a sentence behind the name that it is about.
fn behind(name: &str, sentence: &str) -> String {
    let own = ["It ", "Of ", "With "]
        .iter()
        .any(|word| sentence.starts_with(word));
    match sentence.split_at_checked(1).filter(|_| own) {
        Some((first, rest)) => format!("{name}: {}{rest}", first.to_lowercase()),
        None => format!("{name}: {sentence}"),
    }
}

/// Returns the caveats: those of the machine, and the warnings of the primary
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

/// Returns the conclusion: what was shown, and what was not.
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
        let labels = &report.experiment.labels;
        list.push(format!(
            "Against {}, {} is {}.",
            labels.baseline,
            labels.experiment,
            parts.join(", ")
        ));
    }
    for (name, judged) in &whole {
        list.push(behind(name, &sentence(report, judged)));
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

/// Returns the sources of the figures, one item each.
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
