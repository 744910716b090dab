//! Numbers of executions that are known: what is explored twice shows here.

use super::program::{explore, parse};
use std::collections::BTreeSet;

fn executions(text: &str) -> u64 {
    let (report, all) = explore(&parse(text));
    assert!(report.error.is_none(), "{text}: {:?}", report.error);
    let different: BTreeSet<_> = all.iter().map(|(_, shape)| shape).collect();
    assert_eq!(different.len() as u64, report.executions, "{text}: twice");
    report.executions
}

fn threads(of: usize, each: &str) -> String {
    vec![each; of].join(" | ")
}

#[test]
fn additions_have_an_order() {
    for (of, orders) in [(1, 1), (2, 2), (3, 6), (4, 24), (5, 120)] {
        assert_eq!(executions(&threads(of, "U x 1 rlx")), orders);
    }
}

#[test]
fn writers_have_an_order() {
    for (of, orders) in [(1, 1), (2, 2), (3, 6), (4, 24), (5, 120)] {
        assert_eq!(executions(&threads(of, "W x 1 rlx")), orders);
    }
}

#[test]
fn readers_are_independent() {
    for of in 1..=6 {
        let text = format!("W x 1 rlx | {}", threads(of, "R x rlx"));
        assert_eq!(executions(&text), 1 << of);
    }
}

/// Each thread writes its own word and reads its neighbour's.
#[test]
fn independent_words_multiply() {
    assert_eq!(executions("W x 1 rlx; R y rlx | W y 1 rlx; R x rlx"), 4);
    assert_eq!(
        executions("W x 1 rlx; R y rlx | W y 1 rlx; R z rlx | W z 1 rlx; R x rlx"),
        8
    );
}

/// The sequentially consistent executions of store buffering are one fewer.
#[test]
fn order_takes_executions_away() {
    assert_eq!(executions("W x 1 sc; R y sc | W y 1 sc; R x sc"), 3);
}

/// Of two exchanges one succeeds; of three, whose first decides, six orders of failing.
#[test]
fn exchanges_fail_in_each_way() {
    assert_eq!(executions("C x 0 1 rlx | C x 0 2 rlx"), 2);
    assert_eq!(executions("C x 0 1 rlx | C x 0 2 rlx | C x 0 3 rlx"), 3);
}
