//! Prints what a verification says beside its table: the plan before it, the
//! document for machines, and what was assumed.

use crate::own::Assumptions;
use locklab_document::page::wrapped;
use locklab_user_lock::{OwnTest, TestResult};
use locklab_verify::{Candidate, LockResult, Options};
use serde_json::{Value, json};

/// Returns the result for machines; `seconds` is what a promise was allowed at most, if
/// anything.
pub(super) fn document(
    results: &[LockResult],
    options: Options,
    seconds: Option<u64>,
    assumptions: &Assumptions,
) -> Value {
    json!({
        "schema": 1,
        "provenance": {
            "kind": "model",
            "checkers": ["loom 0.7", "shuttle 0.9"],
            "mutants": options.mutants,
            "executions_at_most": options.executions,
            "seconds_at_most": seconds,
            "schedules": options.schedules,
            "seed": options.seed,
            "assumptions": assumptions,
        },
        "locks": results,
    })
}

/// Returns the result for machines of tests alone.
pub(super) fn of_tests(results: &[TestResult]) -> Value {
    json!({
        "schema": 1,
        "provenance": { "kind": "model", "checkers": ["locklab-graph"] },
        "tests": results,
    })
}

/// Returns a paragraph for each lock of which something is assumed, to follow the
/// table.
pub(super) fn assumed(assumptions: &Assumptions) -> String {
    let paragraphs = assumptions.iter().map(|(name, assumed)| {
        let sentence = format!("{name} was checked under {assumed}");
        format!("\n{}\n", wrapped("", &sentence))
    });
    paragraphs.collect()
}

/// Returns what a run would do.
pub(super) fn plan(candidates: &[Candidate], tests: &[OwnTest], options: Options) -> String {
    let mut text = String::new();
    for test in tests {
        text.push_str(&format!("{}: every execution\n", test.name()));
    }
    if candidates.is_empty() {
        return text;
    }
    for candidate in candidates {
        let promises: Vec<&str> = candidate
            .properties
            .iter()
            .map(|property| property.name)
            .collect();
        text.push_str(&format!("{}: {}\n", candidate.name, promises.join("; ")));
    }
    text.push_str(&format!(
        "Each promise is explored with at most {} executions, then each lock runs with {} random \
         schedules.\n",
        options.executions, options.schedules
    ));
    if options.mutants {
        text.push_str("The same is then done with each operation changed in turn.\n");
    }
    text
}
