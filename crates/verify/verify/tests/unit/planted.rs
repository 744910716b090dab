//! Tests of src/planted.rs, with access to what is private there.

use super::*;

#[test]
fn every_bug_has_a_place_in_the_source_of_now() {
    for bug in ALL {
        let placed = match bug.made {
            Made::Nowhere => false,
            Made::InSource(_) => true,
            Made::ByPlatform { line, .. } => {
                line.starts_with("P::") && line.ends_with("()")
                    || source::contains(&format!("src/{}", bug.file), line)
            }
        };
        assert!(
            placed,
            "planted.txt: {}, {}: not in the source",
            bug.lock, bug.what
        );
    }
}
