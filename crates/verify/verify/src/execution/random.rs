//! Gives the numbers that a drawn execution draws: the same numbers each time that it
//! is begun again.
//!
//! Must never depend on anything but the number of the execution.

use std::cell::Cell;

/// A generator of numbers (SplitMix64: G. L. Steele Jr., D. Lea and C. H. Flood, "Fast
/// Splittable Pseudorandom Number Generators", OOPSLA 2014).
#[derive(Default)]
pub(crate) struct Random(Cell<u64>);

impl Random {
    /// Begins the numbers of execution `number`.
    pub(super) fn begin(&self, number: u64) {
        self.0.set(number.wrapping_mul(0xd134_2543_de82_ef95));
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&self, bound: usize) -> usize {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    /// Yes, once in `of` times.
    pub(crate) fn chance(&self, of: usize) -> bool {
        self.below(of) == 0
    }
}
