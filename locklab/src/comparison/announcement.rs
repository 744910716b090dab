//! Says what a comparison will do, before it does it: a line when it begins, and all of
//! it for `--dry-run`.

use locklab_document::number::{count, duration};
use locklab_harness::backend::Backend;
use locklab_harness::experiment::Experiment;
use locklab_harness::gate::too_few_pairs;
use serde_json::json;
use std::fmt::Write as _;

/// Returns a line that announces what will be done.
pub(super) fn announcement(experiment: &Experiment, backend: &dyn Backend) -> String {
    let pairs = experiment.design.pairs;
    let mut text = format!(
        "{} x {}",
        count(experiment.cells.len(), "cell"),
        count(pairs as usize, "pair")
    );
    if let Some(time) = backend.estimate(&experiment.cells, pairs) {
        // Where a subject may leave early, the plan is a limit.
        let about = backend
            .longest(&experiment.cells)
            .map_or("about", |_| "at most");
        let _ = write!(text, ": {about} {}", duration(time));
    }
    text.push_str(". Ctrl-C reports what is there.");
    if let Some(warning) = too_few_pairs(experiment) {
        let _ = write!(text, "\n{warning}");
    }
    text
}

/// Returns what would run and how long it would take, as JSON.
pub(super) fn json(experiment: &Experiment, backend: &dyn Backend) -> String {
    let design = &experiment.design;
    let time = backend.estimate(&experiment.cells, design.pairs);
    let cells: Vec<serde_json::Map<_, _>> = experiment
        .cells
        .iter()
        .map(|cell| {
            let axes = cell.key.0.iter();
            let about = (!cell.about.is_empty()).then(|| ("about".into(), json!(cell.about)));
            axes.map(|(axis, at)| (axis.clone(), json!(at)))
                .chain(about)
                .collect()
        })
        .collect();
    let document = json!({
        "schema": 1,
        "dry_run": true,
        "kind": experiment.kind,
        "spec": experiment.spec,
        "design": design,
        "cells": cells,
        "seconds": time.map(|t| t.as_secs_f64()),
    });
    format!("{document:#}\n")
}

/// Returns the same as text.
pub(super) fn text(experiment: &Experiment, backend: &dyn Backend) -> String {
    let mut text = format!(
        "Would compare {} with {}.\n{}\n",
        experiment.labels.experiment,
        experiment.labels.baseline,
        announcement(experiment, backend).replace(" Ctrl-C reports what is there.", "")
    );
    let facts = &experiment.facts;
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in facts {
        let _ = writeln!(text, "{name:<width$}  {value}");
    }
    text.push_str("Cells\n");
    for cell in &experiment.cells {
        let axes: Vec<String> = cell
            .key
            .0
            .iter()
            .map(|(axis, at)| format!("{} {at}", axis.replace('_', "-")))
            .collect();
        let _ = writeln!(text, "  {}", axes.join(", "));
        if !cell.about.is_empty() {
            let _ = writeln!(text, "    {}", cell.about);
        }
    }
    text
}
