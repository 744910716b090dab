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
