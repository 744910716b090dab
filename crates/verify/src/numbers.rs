//! The numbers of threads in the checker's world.
//!
//! A number is a lock on the queue nodes that belong to it, so what every
//! lock promises is asked of one number that threads take and give back: a
//! thread that finds none free waits. Beside that, two numbers in one word
//! must not disturb each other. A mutant of the code that hands out numbers
//! must break one of those promises.

use crate::execution::Setting;
use crate::platform::Loom;
use crate::property::{Property, join, promises, spawn};
use crate::subject::subject;
use locklab_locks::platform::Platform;
use locklab_locks::{Info, Numbers, RawLock};
use std::sync::Arc;

/// The name under which they are verified.
pub const THREAD_NUMBERS: &str = "thread-numbers";

/// The one number that there is.
struct OneNumber<P: Platform>(Numbers<P, 1>);

impl<P: Platform> Default for OneNumber<P> {
    fn default() -> Self {
        Self(Numbers::default())
    }
}

// SAFETY: whoever has taken the number has it until it is given back.
unsafe impl<P: Platform> RawLock<P> for OneNumber<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: THREAD_NUMBERS,
        summary: "the number of a thread, and what belongs to it",
        paper: "a bit map",
        ..Info::BASE
    };

    unsafe fn lock(&self, (): &()) {
        while self.0.take(1).is_none() {
            P::relax();
        }
    }

    unsafe fn try_lock(&self, (): &()) -> bool {
        self.0.take(1).is_some()
    }

    unsafe fn unlock(&self, (): &()) {
        self.0.give_back(0);
    }
}

/// Two numbers, and what belongs to each.
#[derive(Default)]
struct TwoNumbers {
    numbers: Numbers<Loom, 1>,
    theirs: [loom::cell::UnsafeCell<u32>; 2],
}

// SAFETY: modelled threads are coroutines of one OS thread; loom reports two
// that use a cell at once.
unsafe impl Sync for TwoNumbers {}

impl TwoNumbers {
    /// Takes a number, uses what belongs to it, gives it back; twice.
    fn use_one(&self) {
        for _ in 0..2 {
            let number = self.numbers.take(2).expect("as many numbers as threads");
            // SAFETY: this is what is being checked; loom reports a race
            // before the access is made.
            self.theirs[number].with_mut(|used| unsafe { *used += 1 });
            self.numbers.give_back(number);
        }
    }
}

fn two_threads_two_numbers() {
    // For ever if the model fails: what loom has abandoned is not dropped.
    let both: &'static TwoNumbers = Box::leak(Box::default());
    let other = spawn(1, || both.use_one());
    both.use_one();
    join(other);
    let left = [both.numbers.take(2), both.numbers.take(2)];
    assert_eq!(left, [Some(0), Some(1)], "a number is not given back");
    assert_eq!(both.numbers.take(2), None, "there are two");
    // SAFETY: made above; the other thread has ended.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(both).cast_mut()) });
}

/// What the numbers promise.
pub(crate) fn number_properties() -> Vec<Property> {
    let mut all = promises(&subject::<Loom, OneNumber<Loom>>());
    all.push(Property {
        name: "two numbers",
        threads: 2,
        aim: 2,
        orderings_of: None,
        structure_of: &[],
        needs_witness: false,
        setting: Setting::default(),
        model: Arc::new(two_threads_two_numbers),
    });
    for property in &mut all {
        property.orderings_of = Some("platform/src/numbers.rs");
        property.structure_of = &["platform/src/numbers.rs"];
    }
    all
}
