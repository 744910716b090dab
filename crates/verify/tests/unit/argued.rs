//! Tests of src/argued.rs, with access to what is private there.

use super::*;

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
