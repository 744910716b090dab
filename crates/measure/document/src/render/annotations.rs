//! Verdicts as workflow commands of GitHub Actions: what fails is shown beside the
//! change, without a file that somebody must upload.

use super::clean::clean;
use super::sarif::{is_problem, path_in_repository};
use crate::{Document, Finding};
use std::fmt::Write as _;

/// The most annotations of one level that GitHub takes from a step.
const MOST: usize = 10;

/// Returns one line for each verdict that is worse, or in `failing`: an error where it is
/// in `failing`, a warning otherwise. Where there are more than GitHub shows, the
/// last line says how many.
#[must_use]
pub fn annotations(document: &Document, failing: &[&str]) -> String {
    let problems = document.findings.iter();
    let problems: Vec<&Finding> = problems.filter(|f| is_problem(f, failing)).collect();
    let mut out = String::new();
    for level in ["error", "warning"] {
        let of_level = problems
            .iter()
            .filter(|f| (level == "error") == failing.contains(&f.verdict));
        let of_level: Vec<&&Finding> = of_level.collect();
        let shown = if of_level.len() > MOST {
            MOST - 1
        } else {
            of_level.len()
        };
        for finding in &of_level[..shown] {
            let file = match &finding.file {
                Some(file) => format!(
                    "file={},line={},",
                    property(&path_in_repository(file)),
                    finding.line.unwrap_or(1)
                ),
                None => String::new(),
            };
            let title = property(&format!("{}: {}", finding.verdict, finding.name));
            let _ = writeln!(
                out,
                "::{level} {file}title={title}::{}",
                data(&finding.message)
            );
        }
        if of_level.len() > shown {
            let more = of_level.len() - shown;
            let _ = writeln!(
                out,
                "::{level} title=locklab::{more} more; the job's summary has all."
            );
        }
    }
    out
}

/// Returns text behind the second `::` of a command, which ends at the end of its line.
fn data(text: &str) -> String {
    clean(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Returns the value of a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str, verdict: &'static str) -> Finding {
        Finding {
            name: name.into(),
            verdict,
            message: format!("{name} is 10 % {verdict}.\nSecond line."),
            file: Some("./bench/a b.json".into()),
            ..Finding::default()
        }
    }

    fn document(findings: Vec<Finding>) -> Document {
        Document {
            findings,
            ..Document::default()
        }
    }

    #[test]
    fn what_fails_is_an_error_and_what_is_worse_a_warning() {
        let all = ["better", "flat", "worse", "unclear", "invalid"].map(|v| finding("a", v));
        let document = document(all.into());
        let lines = annotations(&document, &["invalid"]);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines,
            [
                "::error file=bench/a b.json,line=1,title=invalid%3A a::a is 10 %25 \
                 invalid.%0ASecond line.",
                "::warning file=bench/a b.json,line=1,title=worse%3A a::a is 10 %25 \
                 worse.%0ASecond line.",
            ]
        );
    }

    /// A name is in a property, in which a colon and a comma have a meaning.
    #[test]
    fn a_name_cannot_end_its_property_or_begin_a_command() {
        let mut odd = finding("a,file=x::error::\n::stop", "worse");
        (odd.file, odd.line) = (None, Some(7));
        let text = annotations(&document(vec![odd]), &["worse"]);
        assert_eq!(text.lines().count(), 1);
        let title = "title=worse%3A a%2Cfile=x%3A%3Aerror%3A%3A%0A%3A%3Astop::";
        assert!(text.starts_with(&format!("::error {title}")), "{text}");
    }

    #[test]
    fn more_than_github_shows_are_counted() {
        let many: Vec<Finding> = (0..25).map(|n| finding(&n.to_string(), "worse")).collect();
        let text = annotations(&document(many), &["worse"]);
        assert_eq!(text.lines().count(), MOST);
        assert!(text.ends_with("::error title=locklab::16 more; the job's summary has all.\n"));
        assert_eq!(
            annotations(&document(vec![finding("a", "flat")]), &["worse"]),
            ""
        );
    }
}
