//! The switches: which one is on, and which have been passed.
//!
//! The models of the checker are coroutines of one OS thread, so both belong to
//! the OS thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Describes what a switch changes, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The source file, as `locks/src/mcs.rs`.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Says what was there and what is; or is [`BRANCH`].
    pub change: &'static str,
}

/// The change of a site that changes nothing: the beginning of a branch.
pub const BRANCH: &str = "branch";
/// The change of a condition that makes it true.
pub const ALWAYS_TRUE: &str = "condition always true";
/// The change of a condition that makes it false.
pub const ALWAYS_FALSE: &str = "condition always false";

/// Every switch, by its number from 1.
pub use crate::sites::SITES;

thread_local! {
    static ON: Cell<u32> = const { Cell::new(0) };
    static PASSED: RefCell<Option<BTreeSet<(u32, bool)>>> = const { RefCell::new(None) };
}

/// Puts a switch on; 0: none.
pub fn turn_on(number: u32) {
    ON.set(number);
}

/// Notes each switch that this OS thread passes from here on.
pub fn start() {
    PASSED.set(Some(BTreeSet::new()));
}

/// Returns those passed since; of a condition, each with what it was found to be.
pub fn stop() -> BTreeSet<(u32, bool)> {
    PASSED.take().unwrap_or_default()
}

fn pass(number: u32, found: bool) {
    PASSED.with_borrow_mut(|passed| {
        if let Some(passed) = passed {
            passed.insert((number, found));
        }
    });
}

/// Notes that a branch is taken.
#[inline(always)]
pub fn reach(number: u32) {
    if ON.get() == 0 {
        pass(number, true);
    }
}

/// Returns whether this switch is on.
#[inline(always)]
pub fn on(number: u32) -> bool {
    let on = ON.get();
    if on == 0 {
        pass(number, true);
    }
    on == number
}

/// Returns a condition, which is always true with the first switch on and never with
/// the second.
#[inline(always)]
pub fn force(always: u32, never: u32, condition: bool) -> bool {
    let on = ON.get();
    if on == 0 {
        // It is changed where it is not what the switch makes of it.
        pass(if condition { never } else { always }, true);
    }
    (condition || on == always) && on != never
}

/// Stands for every type that a constant can have.
pub trait Integer: Copy {
    /// Returns the constant plus one.
    fn one_more(self) -> Self;
}

macro_rules! integers {
    ($($integer:ty)*) => {
        $(impl Integer for $integer {
            #[inline(always)]
            fn one_more(self) -> Self {
                self.wrapping_add(1)
            }
        })*
    };
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

/// Returns a constant, which is one more with the switch on.
#[inline(always)]
pub fn integer<T: Integer>(number: u32, value: T) -> T {
    if on(number) { value.one_more() } else { value }
}
