//! The report for programs: one document, `schema` 1.
//!
//! Fields may be added within a schema; none is removed or changes meaning.
//! A figure that there is none of (no pair counts, no finite limit) is null.

use super::{Report, caveats, words};
use crate::report::VERSION;
use crate::verdicts::JudgedCell;
use locklab_judge::Verdict;
use serde_json::{Value, json};

/// The whole report.
#[must_use]
pub fn json(report: &Report) -> Value {
    let measured = report.measured;
    let environment: serde_json::Map<String, Value> = measured
        .environment
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    json!({
        "schema": 1,
        "kind": "matrix",
        "tool": VERSION,
        "date": report.context.date,
        "command": report.context.command,
        "provenance": measured.provenance,
        "environment": environment,
        "spec": measured.spec,
        "settings": report.verdicts.settings,
        "summary": words::result(report),
        "caveats": caveats::all(report),
        "interrupted": measured.interrupted,
        "missing": report.verdicts.missing,
        "cells": report.verdicts.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn cell(cell: &JudgedCell) -> Value {
    let ratio = cell.ratio();
    let judged = &cell.judged;
    let screening: Vec<Value> = cell
        .screening
        .iter()
        .map(|s| {
            let ratio = s.judged.estimate.map(|e| e.ratio());
            json!({
                "metric": s.metric,
                "ratio": ratio.map(|r| r.value),
                "ratio_low": ratio.map(|r| r.low),
                "ratio_high": ratio.map(|r| r.high),
                "verdict": s.judged.verdict.word(),
                "p_adjusted": s.judged.p_adjusted,
            })
        })
        .collect();
    let mut value = json!({
        "threads": cell.point.threads,
        "critical": cell.point.critical,
        "non_critical": cell.point.non_critical,
        "oversubscribed": cell.oversubscribed,
        "placement": cell.class,
        "round_trip_ns": cell.round_trip.map(|(low, high)| [low, high]),
        "baseline": cell.baseline,
        "experiment": cell.experiment,
        "ratio": ratio.map(|r| r.value),
        "ratio_low": ratio.map(|r| r.low),
        "ratio_high": ratio.map(|r| r.high),
        "verdict": judged.verdict.word(),
        "pairs": cell.differences.len(),
        "pairs_set_aside": judged.set_aside.len(),
        "p": judged.p,
        "p_adjusted": judged.p_adjusted,
        "handoffs_disagree": cell.streaky(),
        "screening": screening,
        "warnings": judged.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let more = match &judged.verdict {
        Verdict::Flat { nonzero } => json!({ "flat_but_not_zero": nonzero }),
        Verdict::Unclear {
            detectable,
            pairs_for_flat,
        } => json!({ "detectable": detectable, "pairs_for_flat": pairs_for_flat }),
        Verdict::Invalid(reasons) => json!({
            "reasons": reasons.iter().map(ToString::to_string).collect::<Vec<_>>()
        }),
        Verdict::Better | Verdict::Worse => json!({}),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}
