//! Tests of src/argued.rs, with access to what is private there.

use super::*;
use crate::mutation;
use locklab_lock_mutants::switch::SITES;

/// Both files have the line, and the end of one's name is the other's name.
#[test]
fn a_reason_is_of_its_lock_and_its_file() {
    let twice = |file| {
        let mut lines = source::code(file).into_iter();
        let granted = lines.find(|(_, text)| text.contains("next.granted.store(1"));
        let (line, _) = granted.expect("the file has the line");
        let column = 1;
        Place { file, line, column }
    };
    let because = |lock, place| because(lock, place, "write made twice");
    let (plain, resilient) = ("locks/src/qspinlock.rs", "locks/src/rqspinlock.rs");
    assert!(because("qspinlock", twice(plain)).is_some());
    assert!(because("rqspinlock", twice(plain)).is_none());
    assert!(because("rqspinlock", twice(resilient)).is_none());
    assert!(because("qspinlock", twice(resilient)).is_none());
}

/// Each change of a reason is one that the platform makes, or that of a switch in
/// the line.
#[test]
fn every_reason_is_of_a_mutant_that_is_made() {
    for reason in REASONS.lines().skip(1) {
        let fields: Vec<&str> = reason.split('\t').collect();
        let &[_, file, part, changes, why] = &fields[..] else {
            panic!("not five fields: {reason}");
        };
        for change in changes.split("; ") {
            let by_switch = SITES.iter().any(|site| {
                let line = |line| source::line(site.file, line).unwrap_or("").trim();
                let text = [line(site.line.saturating_sub(1)), line(site.line)].join(" ");
                site.change == change && Path::new(site.file).ends_with(file) && text.contains(part)
            });
            let by_platform = mutation::is_described_as(change);
            assert!(
                by_switch || by_platform,
                "{file}, {part}: there is no mutant '{change}'"
            );
        }
        let names_an_execution = ["cannot", "no execution"].iter().any(|of| why.contains(of));
        assert!(names_an_execution, "{file}, {part}: what cannot happen?");
    }
}
