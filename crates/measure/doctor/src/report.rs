//! Renders what the doctor found, as text and as JSON.

use crate::check::{Check, State};
use locklab_document::page::Page;
use locklab_lab::VERSION;
use serde_json::{Value, json as value};

/// Returns each part in short, and then one line or more for each check, by part.
#[must_use]
pub fn text(checks: &[Check], machine: &str) -> String {
    let mut page = Page::default();
    page.title(&format!("{VERSION} on {machine}"));
    page.heading("In short");
    for line in in_short(checks) {
        page.item(&line);
    }
    let mut part = "";
    let mut before: Option<&Check> = None;
    for check in checks {
        if check.part != part {
            part = check.part;
            page.heading(part);
        }
        let sign = match check.state {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "MISSING",
            State::Unknown => "unknown",
        };
        let head = format!("  {sign:<7} {:<18}  ", check.name);
        let same = |b: &Check| (&b.found, &b.remedy) == (&check.found, &check.remedy);
        if check.remedy.is_some() && before.is_some_and(same) {
            page.hanging(&head, "the same as above");
        } else {
            page.hanging(&head, &check.found);
            if let Some(remedy) = &check.remedy {
                page.hanging(&" ".repeat(head.len()), &format!("-> {remedy}"));
            }
        }
        before = Some(check);
    }
    page.finish()
}

/// Returns a sentence or more for each part: what is missing, what limits it, what is not
/// known.
fn in_short(checks: &[Check]) -> Vec<String> {
    let mut parts: Vec<&str> = checks.iter().map(|c| c.part).collect();
    parts.dedup();
    let line = |part: &str| {
        let of = |state: State| -> Vec<&str> {
            checks
                .iter()
                .filter(|c| c.part == part && c.state == state)
                .map(|c| c.name.as_str())
                .collect()
        };
        let mut words = Vec::new();
        for (state, of_one, of_several) in [
            (State::Missing, "is missing", "are missing"),
            (State::Limited, "limits the figures", "limit the figures"),
            (State::Unknown, "is not known", "are not known"),
        ] {
            match of(state)[..] {
                [] => {}
                [one] => words.push(format!("{one} {of_one}.")),
                [ref all @ .., last] => {
                    words.push(format!("{} and {last} {of_several}.", all.join(", ")));
                }
            }
        }
        if words.is_empty() {
            words.push("nothing is missing.".into());
        }
        format!("{part}: {}", words.join(" "))
    };
    parts.into_iter().map(line).collect()
}

/// Returns the checks as JSON: one document, `schema` 1.
#[must_use]
pub fn json(checks: &[Check], machine: &str) -> Value {
    value!({
        "schema": 1,
        "kind": "doctor",
        "tool": VERSION,
        "provenance": { "source": "hardware", "name": machine },
        "checks": checks,
    })
}
