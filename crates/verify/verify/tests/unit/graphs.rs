use super::*;
use crate::explore::Reads;
use locklab_locks::platform::{Atomic, Ordering, Platform};
use locklab_locks::{Info, RawLock};

/// A lock that reads whether it is free, and then writes that it is not.
struct Torn<P: Platform>(P::U32);

/// A lock whose release publishes nothing.
struct Unpublished<P: Platform>(P::U32);

macro_rules! broken {
    ($lock:ident, |$word:ident| $take:expr) => {
        impl<P: Platform> Default for $lock<P> {
            fn default() -> Self {
                Self(P::U32::new(0))
            }
        }

        // SAFETY: it is not one, and that is what is found.
        unsafe impl<P: Platform> RawLock<P> for $lock<P> {
            type Ctx = ();
            const INFO: Info = Info {
                name: stringify!($lock),
                ..Info::BASE
            };

            unsafe fn lock(&self, _: &()) {
                let $word = &self.0;
                $take
            }

            unsafe fn unlock(&self, _: &()) {
                self.0.store(0, Ordering::Relaxed);
            }
        }
    };
}

broken!(Torn, |word| {
    word.spin_until(Ordering::Acquire, |held| held == 0);
    word.store(1, Ordering::Relaxed);
});
broken!(Unpublished, |word| {
    while word.swap(1, Ordering::Acquire) != 0 {}
});

fn failure<L: RawLock<Graphs>>() -> FailureKind {
    let lock = crate::subject::subject::<Graphs, L>();
    let report = explore(&lock, Every::Exclusion(2), &Options::default());
    report.expect("a lock").error.expect("a failure").kind
}

#[test]
fn broken_locks_are_found() {
    assert_eq!(failure::<Torn<Graphs>>(), FailureKind::DataRace);
    assert_eq!(failure::<Unpublished<Graphs>>(), FailureKind::DataRace);
}

#[test]
fn a_row_goes_beyond_its_bound_where_every_execution_is_explored() {
    let row = |name| PropertyResult {
        name,
        checker: Checker::Loom,
        threads: 3,
        preemptions: Some(3),
        executions: 1,
        seconds: 0.0,
        outcome: Verdict::Cut,
        left_out: vec!["a loop".to_owned()],
        schedules: 1,
        reads: Reads::One,
        failure: None,
        trace: Vec::new(),
    };
    let three = |lock| beyond_the_bound(lock, row("exclusion of three"));
    let ticket = three("ticket");
    assert_eq!(
        (ticket.outcome, ticket.checker),
        (Verdict::Holds, Checker::Graphs)
    );
    assert_eq!((ticket.executions, ticket.preemptions), (36, None));
    assert!(ticket.left_out.is_empty());
    // Its waiters sleep; its waiters do not end; and this is no exclusion.
    for (lock, name) in [
        ("futex", "exclusion of three"),
        ("malthusian", "reuse"),
        ("ticket", "fifo"),
    ] {
        let row = beyond_the_bound(lock, row(name));
        assert_eq!(
            (row.outcome, row.checker),
            (Verdict::Cut, Checker::Loom),
            "{lock}"
        );
    }
}
