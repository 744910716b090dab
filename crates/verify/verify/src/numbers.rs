//! The numbers of threads in the checker's world.
//!
//! A number is a lock on the queue nodes that belong to it, so what every
//! lock promises is asked of one number that threads take and give back: a
//! thread that finds none free waits. Beside that, two numbers in one word
//! must not disturb each other. A mutant of the code that hands out numbers
//! must break one of those promises.

use crate::execution;
use crate::platform::Loom;
use crate::property::{Property, Shared, promises};
use crate::subject::subject;
use locklab_locks::platform::Platform;
use locklab_locks::{Info, RawLock, host::Numbers};

/// The name under which they are verified.
pub const THREAD_NUMBERS: &str = "thread-numbers";

const FILES: &[&str] = &["platform/src/numbers.rs"];

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

/// Takes a number, uses what belongs to it, gives it back; twice.
fn use_one(shared: &Shared<TwoNumbers>) {
    let (numbers, theirs) = &shared.inner;
    for _ in 0..2 {
        let number = numbers.take(2).expect("as many numbers as threads");
        // SAFETY: this is what is being checked; loom reports a race
        // before the access is made.
        theirs[number].with_mut(|used| unsafe { *used += 1 });
        numbers.give_back(number);
    }
}

/// Two numbers, and what belongs to each.
type TwoNumbers = (Numbers<Loom, 1>, [loom::cell::UnsafeCell<u32>; 2]);

fn two_threads_two_numbers() {
    let both = Shared::run(TwoNumbers::default(), [use_one, use_one]);
    let (numbers, _) = &both.inner;
    let left = [numbers.take(2), numbers.take(2)];
    assert_eq!(left, [Some(0), Some(1)], "a number is not given back");
    assert_eq!(numbers.take(2), None, "there are two");
}

/// Checks that a number that is taken without asking, as that of a thread that a fork has
/// left, is taken until it is given back.
fn assumed() {
    let numbers = Numbers::<Loom, 1>::default();
    numbers.assume(1);
    for _ in 0..2 {
        assert!(numbers.is_taken(1) && !numbers.is_taken(0), "not that one");
        assert_eq!(numbers.take(2), Some(0), "the other is free");
        assert_eq!(numbers.take(2), None, "there are two");
        numbers.give_back(0);
        numbers.assume(1);
    }
    numbers.give_back(1);
    assert!(!numbers.is_taken(1), "given back, and still taken");
}

/// Checks that both have their number where one thread assumes one while another takes
/// the next.
fn assumed_beside_one() {
    let assumes = |shared: &Shared<Numbers<Loom, 1>>| shared.inner.assume(1);
    let takes = |shared: &Shared<Numbers<Loom, 1>>| {
        assert_eq!(shared.inner.take(1), Some(0), "the one that is free");
    };
    let both = Shared::run(Numbers::default(), [assumes, takes]);
    assert!(both.inner.is_taken(0) && both.inner.is_taken(1), "lost");
}

/// Numbers of two words are taken and given back in any order, by one thread: the lowest
/// that is free, of those below a bound.
fn any_order() {
    const NUMBERS: usize = 64;
    let numbers = Numbers::<Loom, 2>::default();
    let mut taken = [false; NUMBERS];
    execution::set_up(|| {
        for step in 0..300 {
            // More are taken than given back at first, and then the other way round.
            let takes = execution::chance(3) != (step % 150 < 75);
            if takes {
                let most = [NUMBERS, 1 + execution::below(NUMBERS)][execution::below(2)];
                let free = taken.iter().take(most).position(|taken| !taken);
                assert_eq!(numbers.take(most), free, "not the lowest that is free");
                free.into_iter().for_each(|number| taken[number] = true);
            } else {
                let number = execution::below(NUMBERS);
                match taken[number] {
                    true => numbers.give_back(number),
                    false => numbers.assume(number),
                }
                taken[number] = !taken[number];
            }
            let asked = execution::below(NUMBERS);
            assert_eq!(numbers.is_taken(asked), taken[asked], "not that one");
        }
    });
}

/// Returns what the numbers promise.
pub(crate) fn number_properties() -> Vec<Property> {
    let mut all = promises(&subject::<Loom, OneNumber<Loom>>());
    for property in &mut all {
        (property.orderings_of, property.structure_of) = (Some(FILES[0]), FILES);
    }
    let two = two_threads_two_numbers;
    all.push(Property::of_files(FILES, "two numbers", 2, two));
    all.push(Property::of_files(FILES, "a number assumed", 1, assumed));
    let beside = assumed_beside_one;
    all.push(Property::of_files(FILES, "assumed beside one", 2, beside));
    all.push(Property::of_files(FILES, "in any order", 1, any_order).drawn(20));
    all
}
