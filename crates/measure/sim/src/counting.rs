//! Does what a turn does to a counter that all threads change without a lock. The
//! microbenchmarks of `microbench` and the loops of `workload` run this one code.

use crate::platform::{Sim, Word};
use locklab_locks::platform::{Atomic, AtomicInt, Ordering};

/// Names what a turn of [`crate::Workload::Counter`] does to the counter.
///
/// The last four are programs of lockhammer (Arm's benchmark of locks), whose loop
/// calls a function after each of its two halves, also if there is nothing to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Adds one by compare-and-swap.
    CompareAndSwap {
        /// Says whether a try after a failure reads the counter again; otherwise it goes
        /// on with what the failure has seen.
        reads_again: bool,
    },
    /// Adds one, and subtracts it again.
    AddAndSubtract,
    /// Changes it by compare-and-swap, reading it before each try, and then adds.
    CompareAndSwapThenAdd,
    /// Changes it so and changes it back so.
    CompareAndSwapTwice,
    /// Leaves it alone: a loop without a lock.
    Nothing,
}

impl Counting {
    /// Makes the first change of a turn.
    pub(crate) fn begin(self, word: &Word<u32>) {
        match self {
            Self::CompareAndSwap { reads_again } => return add(word, 1, reads_again),
            Self::AddAndSubtract => _ = word.fetch_add(1, Ordering::AcqRel),
            Self::CompareAndSwapThenAdd | Self::CompareAndSwapTwice => add(word, 1, true),
            Self::Nothing => {}
        }
        Sim::function_call();
    }

    /// Makes the second, if there is one.
    pub(crate) fn end(self, word: &Word<u32>) {
        match self {
            Self::CompareAndSwap { .. } => return,
            Self::AddAndSubtract | Self::CompareAndSwapThenAdd => {
                word.fetch_sub(1, Ordering::AcqRel);
            }
            Self::CompareAndSwapTwice => add(word, u32::MAX, true),
            Self::Nothing => {}
        }
        Sim::function_call();
    }
}

/// Adds to a word by compare-and-swap.
fn add(word: &Word<u32>, value: u32, reads_again: bool) {
    let mut seen = word.load(Ordering::Relaxed);
    while let Err(now) = word.compare_exchange(
        seen,
        seen.wrapping_add(value),
        Ordering::AcqRel,
        Ordering::Relaxed,
    ) {
        seen = if reads_again {
            word.load(Ordering::Relaxed)
        } else {
            now
        };
    }
}
