use super::*;
use crate::graphs::Graphs;
use crate::property::promises;
use crate::run::properties_of;
use crate::subject::subject;
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

fn named<'a>(all: &'a [Property], name: &str) -> &'a Property {
    let mut named = all.iter().filter(|property| property.name == name);
    named.next().expect("a promise of every lock")
}

fn failure<L: RawLock<Graphs>>() -> crate::Failure {
    let all = promises(&subject::<Graphs, L>());
    let explored = explore_every(named(&all, "exclusion"), Limits::default());
    match explored.expect("a lock").outcome {
        Outcome::Fails(failure) => failure,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn broken_locks_are_found() {
    for failure in [failure::<Torn<Graphs>>(), failure::<Unpublished<Graphs>>()] {
        assert_eq!(
            failure.message,
            "two accesses are not ordered: one does not see the other's writes"
        );
        let inside = |step: &&crate::trace::Step| step.what == "IS INSIDE";
        assert_eq!(failure.trace.iter().filter(inside).count(), 2);
    }
}

#[test]
fn a_model_of_loom_alone_is_left_to_it() {
    let ticket = properties_of("ticket").expect("a lock");
    let of = |name| explore_every(named(&ticket, name), Limits::default());
    assert_eq!(of("exclusion of three").map(|e| e.executions), Some(6));
    assert!(of("queue formed before").is_some());
    assert!(of("a place in the end").is_none());
}
