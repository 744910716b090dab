//! Verdicts as SARIF 2.1.0, the form that code hosts show beside a change.
//!
//! A code host shows each result as a problem at a place in a file. So only what
//! is a problem is a result, and each has a physical location: GitHub refuses a
//! file in which one has none.

use crate::{Document, Finding};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The verdicts that may be a problem, what each means and what to do, in the
/// order of the rules.
const RULES: [(&str, &str, &str); 4] = [
    (
        "worse",
        "The experiment is worse, beyond noise.",
        "Look at the change; the report has the size of the difference with its interval.",
    ),
    (
        "unclear",
        "Neither shown to differ nor to be flat.",
        "Measure more pairs, longer runs, or on a quieter machine.",
    ),
    (
        "invalid",
        "The samples must not be read.",
        "The report says which runs failed, and why.",
    ),
    (
        "incomplete",
        "Not measured, or not with all its pairs.",
        "The report says what is missing; a comparison goes on with --resume.",
    ),
];

/// The most results that GitHub takes from one run.
const MOST: usize = 25_000;

/// Returns one result for each verdict that is worse, or in `failing`. Those in `failing`
/// are errors, others warnings.
#[must_use]
pub fn sarif(document: &Document, failing: &[&str]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(id, text, help)| {
            json!({
                "id": id,
                "shortDescription": { "text": text },
                "fullDescription": { "text": text },
                "help": { "text": help },
                "defaultConfiguration": { "level": "warning" },
                "properties": { "tags": ["performance"] },
            })
        })
        .collect();
    let result = |finding: &Finding| {
        let error = failing.contains(&finding.verdict);
        let file = finding
            .file
            .as_deref()
            .unwrap_or(&document.labels.experiment);
        json!({
            "ruleId": finding.verdict,
            "ruleIndex": RULES.iter().position(|(id, ..)| *id == finding.verdict),
            "kind": "fail",
            "level": if error { "error" } else { "warning" },
            "message": { "text": format!("{}: {}", finding.name, finding.message) },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": uri(file) },
                    "region": { "startLine": finding.line.unwrap_or(1) },
                },
                "logicalLocations": [{
                    "fullyQualifiedName": finding.name,
                    "kind": "resource",
                }],
            }],
            "partialFingerprints": {
                "locklab/v1": format!("{}/{}/{}", finding.verdict, finding.name, finding.metric),
            },
            "properties": { "metric": finding.metric },
        })
    };
    let problems = document.findings.iter().filter(|f| is_problem(f, failing));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "locklab",
                "informationUri": "https://github.com/locklab/locklab",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "properties": { "title": document.title },
            "results": problems.take(MOST).map(result).collect::<Vec<_>>(),
        }],
    })
}

/// Returns whether a verdict is a problem that somebody must look at.
pub(super) fn is_problem(finding: &Finding, failing: &[&str]) -> bool {
    finding.verdict == "worse" || failing.contains(&finding.verdict)
}

/// Returns a path as a repository has it, with slashes.
pub(super) fn path_in_repository(path: &str) -> String {
    let path = path.replace('\\', "/");
    path.trim().trim_start_matches("./").to_owned()
}

/// Returns a path as a reference of RFC 3986: relative, as a code host finds it in its copy of
/// the repository, and whole where the path is.
fn uri(path: &str) -> String {
    let path = path_in_repository(path);
    let mut uri = match path.starts_with('/') {
        true => "file://".to_owned(),
        false => String::new(),
    };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(byte.into());
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    match uri.is_empty() {
        true => "locklab".into(),
        false => uri,
    }
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_path_becomes_a_reference() {
        assert_eq!(uri("./experiments/a b.toml"), "experiments/a%20b.toml");
        assert_eq!(uri("/tmp/x:y.c"), "file:///tmp/x%3Ay.c");
        assert_eq!(uri(r"bench\sort.toml"), "bench/sort.toml");
        assert_eq!(uri("Größe"), "Gr%C3%B6%C3%9Fe");
        assert_eq!(uri(" "), "locklab");
    }
}
