//! The literature's litmus tests of RC11, and the numbers of executions.

use locklab_graph::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::*},
};
use locklab_graph::{Explorer, Report, thread};

fn check(test: impl Fn() + 'static) -> Report {
    Explorer::default().check(test)
}

fn fai(n: usize) -> u64 {
    let report = check(move || {
        let x = Arc::new(AtomicU32::new(0));
        let all: Vec<_> = (0..n)
            .map(|_| {
                let x = x.clone();
                thread::spawn(move || {
                    x.fetch_add(1, Relaxed);
                })
            })
            .collect();
        for t in all {
            t.join();
        }
    });
    assert!(report.error.is_none(), "{}", report.error.unwrap());
    report.executions
}

#[test]
fn counts() {
    assert_eq!((1..=5).map(fai).collect::<Vec<_>>(), [1, 2, 6, 24, 120]);
}
