//! The sentences of a comparison. None claims more than its verdict.

use super::Report;
use crate::compare::verdicts::JudgedWorkload;
use crate::compare::{Measurement, Spec};
use crate::report::number;
use locklab_judge::{Estimate, Verdict, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// The title.
pub(super) fn title(spec: &Spec) -> String {
    let (b, e) = (spec.baseline.label(), spec.experiment.label());
    if spec.aa {
        format!("Comparison: {b} against itself")
    } else {
        format!("Comparison: {e} against {b}")
    }
}

/// How it was measured.
pub(super) fn setup(report: &Report) -> Vec<(String, String)> {
    let spec = &report.measured.spec;
    let mut facts = vec![
        ("Baseline".into(), spec.baseline.label()),
        ("Experiment".into(), spec.experiment.label()),
        (
            "Method".into(),
            format!(
                "{} pairs a workload, a coin decides which of a pair goes first (seed {}); {} a \
                 side before the first pair, left out; a run is a process and ends within {} s",
                spec.pairs,
                spec.seed,
                number::count(spec.warm_up as usize, "run"),
                spec.time_limit
            ),
        ),
        (
            "Flat".into(),
            format!(
                "within +-{} %, decided before the run",
                number::percent(100.0 * spec.delta)
            ),
        ),
        ("Tool".into(), crate::report::VERSION.into()),
    ];
    for (name, value) in [
        ("Date", &report.context.date),
        ("Command", &report.context.command),
    ] {
        if !value.is_empty() {
            facts.push((name.into(), value.clone()));
        }
    }
    facts
}

/// An interval, in percent of the metric's own direction.
fn interval(estimate: &Estimate) -> String {
    let delta = estimate.delta_percent();
    if !(delta.low.is_finite() && delta.high.is_finite()) {
        return "too few pairs for a 95 % interval".into();
    }
    format!("95 % interval {:+.2} to {:+.2} %", delta.low, delta.high)
}

/// A workload in a sentence or two.
pub(super) fn sentence(measurement: &Measurement, judged: &JudgedWorkload) -> String {
    if measurement.pairs.is_empty() {
        return match &measurement.stopped {
            Some(why) => format!("Not run: {why}."),
            None => "Not run.".into(),
        };
    }
    let mut text = match judged.primary() {
        None => "Nothing was judged.".to_owned(),
        Some(row) => verdict(&row.name, &row.judged),
    };
    let set_aside = measurement.pairs.iter().filter(|p| p.invalid().is_some());
    let (count, first) = (set_aside.clone().count(), set_aside.clone().next());
    if let Some(fault) = first.and_then(|pair| pair.invalid()) {
        text += &format!(
            " {count} of {} pairs {}: {}.",
            measurement.pairs.len(),
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
    if let Some(why) = &measurement.stopped {
        text += &format!(" Not complete: {why}.");
    }
    text
}

fn verdict(name: &str, judged: &locklab_judge::Judged) -> String {
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
                    " As many pairs would find an effect of {effect} % four times in five."
                );
            }
            match pairs_for_flat {
                Some(pairs) if *pairs <= 100_000 => {
                    let pairs = number::grouped(*pairs);
                    text += &format!(" About {pairs} pairs would settle flatness.");
                }
                Some(_) => text += " No number of pairs in reason settles flatness.",
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

/// What to know before reading: of the machine, and warnings of the metrics
/// that decide, each once.
pub(super) fn caveats(report: &Report) -> Vec<String> {
    let mut list = report.measured.caveats.clone();
    let mut by_text: Vec<(String, Vec<&str>)> = Vec::new();
    for (measurement, judged) in report
        .measured
        .workloads
        .iter()
        .zip(&report.verdicts.workloads)
    {
        let warnings = judged.primary().map(|r| r.judged.warnings.as_slice());
        for warning in warnings.unwrap_or_default() {
            // The workload's sentence has it.
            if matches!(warning, Warning::PairsSetAside { .. }) {
                continue;
            }
            let text = warning.to_string();
            match by_text.iter_mut().find(|(t, _)| *t == text) {
                Some((_, names)) => names.push(&measurement.name),
                None => by_text.push((text, vec![&measurement.name])),
            }
        }
    }
    list.extend(
        by_text
            .iter()
            .map(|(text, names)| format!("{}: {text}.", names.join(", "))),
    );
    if let Some(why) = &report.measured.interrupted {
        list.push(format!("Not complete: {why}."));
    }
    list
}

const WORDS: [&str; 5] = ["better", "worse", "flat", "unclear", "invalid"];

/// What was shown, and what was not.
pub(super) fn conclusion(report: &Report) -> Vec<String> {
    let mut by_word: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut not_run = Vec::new();
    for (measurement, judged) in report
        .measured
        .workloads
        .iter()
        .zip(&report.verdicts.workloads)
    {
        match judged.primary().filter(|_| !measurement.pairs.is_empty()) {
            Some(row) => {
                let word = row.judged.verdict.word();
                by_word.entry(word).or_default().push(&measurement.name);
            }
            None => not_run.push(measurement.name.as_str()),
        }
    }
    let of = report.measured.workloads.len();
    let parts: Vec<String> = WORDS
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
    if parts.is_empty() {
        list.push("Nothing was measured, and nothing is concluded.".into());
    } else {
        let spec = &report.measured.spec;
        list.push(format!(
            "{} against {}: {}.",
            spec.experiment.label(),
            spec.baseline.label(),
            parts.join(", ")
        ));
    }
    if !not_run.is_empty() {
        list.push(format!("Not run: {}.", not_run.join(", ")));
    }
    if !parts.is_empty() {
        let unsettled = by_word.contains_key("unclear") || by_word.contains_key("invalid");
        list.push(format!(
            "{}This holds for these workloads, on this machine, as it was set up.",
            if unsettled {
                "Unclear is not equal, and invalid is nothing. "
            } else {
                ""
            }
        ));
    }
    list
}

/// Where figures come from.
pub(super) fn sources(report: &Report) -> Vec<(String, String)> {
    let mut by_source: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for (measurement, judged) in report
        .measured
        .workloads
        .iter()
        .zip(&report.verdicts.workloads)
    {
        if measurement.pairs.is_empty() {
            continue;
        }
        for metric in &measurement.metrics {
            if judged.rows.iter().any(|r| r.name == metric.name) {
                by_source
                    .entry(metric.source)
                    .or_default()
                    .insert(&metric.name);
            }
        }
    }
    by_source
        .into_iter()
        .map(|(source, names)| {
            let names: Vec<&str> = names.into_iter().collect();
            (names.join(", "), source.sentence().to_owned())
        })
        .collect()
}
