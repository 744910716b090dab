//! Verdicts as JUnit XML, the form that continuous integration reads.

use super::clean::clean;
use crate::{Document, Finding};
use maud::{PreEscaped, html};

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
    let title = clean(&document.title);
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="locklab" tests=(findings.len()) failures=(failures) skipped=(skips) {
            testsuite name=(title) tests=(findings.len()) failures=(failures) skipped=(skips) {
                properties {
                    @for (name, value) in &document.head {
                        property name=(clean(name)) value=(clean(value)) {}
                    }
                }
                @for finding in findings {
                    testcase name=(clean(&finding.name)) classname=(clean(&finding.metric)) file=[finding.file.as_deref().map(clean)] {
                        @let message = clean(&finding.message);
                        @if fails(&finding) {
                            failure type=(finding.verdict) message=(message) {}
                        } @else if skipped(&finding) {
                            skipped message=(message) {}
                        } @else {
                            system-out { (message) }
                        }
                    }
                }
            }
        }
    }
    .into_string()
}
