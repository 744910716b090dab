//! Verdicts as SARIF 2.1.0, the form that code hosts show beside a change.

use crate::{Document, Finding};
use serde_json::{Value, json};

/// Explains each verdict, in the order of the rules.
const RULES: [(&str, &str); 6] = [
    ("better", "The experiment is better, beyond noise."),
    ("worse", "The experiment is worse, beyond noise."),
    ("flat", "The difference is shown to be within the margin."),
    ("unclear", "Neither shown to differ nor to be flat."),
    ("invalid", "The samples must not be read."),
    ("incomplete", "Not measured."),
];

/// Returns one result a verdict: an error where the verdict is in `failing`, a note
/// otherwise. Those that are better or flat are results that pass.
#[must_use]
pub fn sarif(document: &Document, failing: &[&str]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
        .collect();
    let result = |finding: &Finding| {
        let (kind, level) = match finding.verdict {
            verdict if failing.contains(&verdict) => ("fail", "error"),
            "worse" => ("fail", "note"),
            "better" | "flat" => ("pass", "none"),
            _ => ("open", "none"),
        };
        let mut location = json!({
            "logicalLocations": [{ "fullyQualifiedName": finding.name, "kind": "resource" }],
        });
        if let Some(file) = &finding.file {
            location["physicalLocation"] = json!({ "artifactLocation": { "uri": file } });
        }
        json!({
            "ruleId": finding.verdict,
            "ruleIndex": RULES.iter().position(|(id, _)| *id == finding.verdict),
            "kind": kind,
            "level": level,
            "message": { "text": finding.message },
            "locations": [location],
            "properties": { "metric": finding.metric },
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "locklab",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "properties": { "title": document.title },
            "results": document.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}
