//! Tests of src/random/mod.rs, with access to what is private there.

use super::*;

#[test]
fn every_schedule_asked_for_is_run() {
    let drawn = draw("mcs", 7, 20).expect("a lock");
    assert_eq!(drawn.schedules, 20);
    assert!(drawn.failure.is_none());
    assert!(draw("no such lock", 7, 1).is_none());
}
