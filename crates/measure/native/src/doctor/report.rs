//! Renders what the doctor found, as text and as JSON.

use crate::doctor::check::{Check, State};
use locklab_document::page::Page;
use locklab_harness::VERSION;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::{COUNTERS, MODELS, STORE};
    use crate::doctor::golden::golden;
    use crate::doctor::{programs, settings};
    use locklab_host::environment::{Environment, Fact};
    use locklab_host::topology::Topology;

    /// A virtual machine without a PMU: every sign, and both kinds of remedy.
    #[test]
    fn the_report_begins_with_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let known = |text: &str| Fact::Known(text.to_owned());
        let environment = Environment {
            hypervisor: known("KVM"),
            numa: known("node 0: 0-3"),
            turbo: known("on"),
            smt: known("off"),
            clock_source: known("kvm-clock"),
            load: known("0.02 0.10 0.07"),
            governor: Fact::Unknown("the kernel has no cpufreq here".into()),
            ..Environment::read_from(root.path())
        };
        let topology = Topology {
            order: vec![0, 1, 2, 3],
            known: true,
            cores: 4,
            nodes: 1,
        };
        let mut checks = settings::checks(&environment, &topology);
        let counter = |name: &str| {
            Check::new(
                COUNTERS,
                name,
                State::Missing,
                "it opens but counts nothing; the hypervisor may hide it",
            )
            .remedy("ask for a virtual PMU, or measure on hardware")
        };
        checks.extend(["cycles:u", "instructions:u"].map(counter));
        checks.push(Check::new(
            COUNTERS,
            "task-clock",
            State::Ok,
            "it counts all the time",
        ));
        checks.push(programs::kvm(root.path()));
        checks.push(Check::new(MODELS, "make", State::Ok, "/usr/bin/make"));
        checks.push(Check::new(
            STORE,
            "Store",
            State::Ok,
            "/home/user/store.sqlite can be written",
        ));
        golden("doctor.txt", &text(&checks, "a machine of four CPUs"));
    }
}
