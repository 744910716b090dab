//! The report for programs: one document, `schema` 1. Fields may be added
//! within a schema; none is removed or changes meaning.

use super::{Report, words};
use crate::compare::verdicts::JudgedWorkload;
use crate::compare::{Measurement, Source};
use crate::matrix::Provenance;
use crate::report::{VERSION, comparison};
use serde_json::{Map, Value, json};

/// The whole report.
#[must_use]
pub fn json(report: &Report) -> Value {
    let measured = report.measured;
    let workloads: Vec<Value> = measured
        .workloads
        .iter()
        .zip(&report.verdicts.workloads)
        .map(|(measurement, judged)| workload(measurement, judged))
        .collect();
    let mut metrics = measured.workloads.iter().flat_map(|w| &w.metrics);
    let provenance = if metrics.any(|m| m.source == Source::Model) {
        Provenance::Model(measured.machine.clone())
    } else {
        Provenance::Hardware(measured.machine.clone())
    };
    json!({
        "schema": 1,
        "kind": "compare",
        "tool": VERSION,
        "date": report.context.date,
        "command": report.context.command,
        "provenance": provenance,
        "environment": map(&measured.environment),
        "spec": measured.spec,
        "settings": report.verdicts.settings,
        "caveats": words::caveats(report),
        "workloads": workloads,
        "footprint": report.footprint,
        "conclusion": words::conclusion(report),
        "interrupted": measured.interrupted,
    })
}

fn map(facts: &[(String, String)]) -> Map<String, Value> {
    facts
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

fn workload(measurement: &Measurement, judged: &JudgedWorkload) -> Value {
    let mut metrics = comparison::json(&judged.rows);
    if let Value::Array(metrics) = &mut metrics {
        for metric in metrics {
            let source = measurement
                .metrics
                .iter()
                .find(|m| metric["name"] == *m.name);
            metric["source"] = json!(source.map(|m| m.source));
        }
    }
    let set_aside = measurement
        .pairs
        .iter()
        .filter_map(|pair| Some(json!({ "pair": pair.index + 1, "why": pair.invalid()?.why() })));
    json!({
        "name": measurement.name,
        "about": measurement.about,
        "setup": map(&measurement.setup),
        "pairs": measurement.pairs.len(),
        "pairs_set_aside": set_aside.collect::<Vec<_>>(),
        "stopped": measurement.stopped,
        "summary": words::sentence(measurement, judged),
        "metrics": metrics,
        "not_judged": judged.zero,
    })
}
