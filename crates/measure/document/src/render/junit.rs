//! Verdicts as JUnit XML, the form that continuous integration reads.
//!
//! JUnit has no standard. What is written here is what Jenkins' `junit-10.xsd`,
//! Ant's schema and Azure's (which is Ant's) all allow: Ant's has no attribute
//! of `testsuites` and no output of a test case, and Jenkins' has no `skipped`
//! of `testsuites`. Ant's requires a time too, which is left out where none is known: readers
//! show it.

use super::clean::clean;
use crate::{Document, Finding};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write as _;

/// Returns one test case a verdict. Those whose verdict is in `failing` fail; of the
/// others, unclear, invalid and incomplete ones are skipped, so that nobody
/// takes them for passed.
#[must_use]
pub fn junit(document: &Document, failing: &[&str]) -> String {
    let fails = |f: &&Finding| failing.contains(&f.verdict);
    let skipped = |f: &&Finding| !fails(f) && !matches!(f.verdict, "better" | "worse" | "flat");
    let findings = &document.findings;
    let failures = findings.iter().filter(fails).count();
    let skips = findings.iter().filter(skipped).count();
    let title = token(&document.title);
    let seconds: f64 = findings.iter().filter_map(|f| f.seconds).sum();
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites {
            testsuite id="0" package="locklab" name=(title) hostname="localhost"
                timestamp=[document.started.as_deref()]
                tests=(findings.len()) failures=(failures) errors="0" skipped=(skips)
                time=(time(seconds)) {
                properties {
                    @for (name, value) in &document.head {
                        property name=(token(name)) value=(clean(value)) {}
                    }
                }
                @for finding in findings {
                    testcase name=(token(&finding.name)) classname=(token(finding.file.as_deref().unwrap_or(&document.title)))
                        time=(time(finding.seconds.unwrap_or(0.0))) {
                        @let message = clean(&finding.message);
                        @if fails(&finding) {
                            failure type=(finding.verdict) message=(message) { (message) }
                        } @else if skipped(&finding) {
                            skipped message=(message) {}
                        }
                    }
                }
                (output(findings))
                system-err {}
            }
        }
    }
    .into_string()
}

/// Returns every verdict in a line, since a test case that passes can have no text.
fn output(findings: &[Finding]) -> Markup {
    let mut text = String::new();
    for finding in findings {
        let (name, message) = (clean(&finding.name), clean(&finding.message));
        let _ = writeln!(text, "{}: {name}: {message}", finding.verdict);
    }
    html! { system-out { (text) } }
}

/// Returns a name without blanks at its ends, and never empty: what the schemas call a
/// token.
fn token(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(clean).collect();
    match words.is_empty() {
        true => "-".into(),
        false => words.join(" "),
    }
}

/// Returns seconds in the one notation that all schemas have: no sign, no exponent.
fn time(seconds: f64) -> String {
    // Adding zero turns -0 into 0.
    let seconds = if seconds.is_finite() {
        seconds.max(0.0) + 0.0
    } else {
        0.0
    };
    format!("{seconds:.3}")
}
