//! Tests of src/trace.rs, with access to what is private there.

use super::*;

fn step(thread: usize, what: &str) -> Step {
    Step {
        thread,
        file: "mcs.rs".into(),
        line: 71,
        what: what.into(),
    }
}

#[test]
fn a_column_a_thread_within_72() {
    let steps = [
        step(0, "tail 0 > n0 (swap)"),
        step(2, "tail n0 > n2 (swap)"),
        step(1, "waits: a_word_with_a_very_long_name 1234567"),
        step(0, "IS INSIDE"),
    ];
    let table = interleaving(&steps, SHOWN);
    assert!(table.lines().all(|line| line.chars().count() <= 72));
    assert_eq!(
        table,
        "\
source    thread 0             thread 1             thread 2
mcs.rs:71 tail 0 > n0 (swap)
mcs.rs:71                                           tail n0 > n2 (swap)
mcs.rs:71                      waits:
                               a_word_with_a_very_l
                               ong_name 1234567
          IS INSIDE
"
    );
}

#[test]
fn the_middle_of_a_long_one_is_left_out() {
    let steps: Vec<Step> = (0..10).map(|n| step(n % 2, &format!("x = {n}"))).collect();
    let table = interleaving(&steps, 4);
    assert!(table.contains("x = 1\n(6 steps"), "{table}");
    assert!(table.contains("x = 8"), "{table}");
    assert!(!table.contains("x = 5"), "{table}");
}
