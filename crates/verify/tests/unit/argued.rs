//! Tests of src/argued.rs, with access to what is private there.

use super::*;

#[test]
fn every_reason_has_its_four_fields_and_its_line() {
    for reason in REASONS.lines().skip(1) {
        let fields: Vec<&str> = reason.split('\t').collect();
        let &[file, part, _, _] = &fields[..] else {
            panic!("not four fields: {reason}");
        };
        assert!(
            source::contains(file, part),
            "{file} has no line with {part}"
        );
    }
}
