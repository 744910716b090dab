//! The simulator's randomness: SplitMix64 (Steele, Lea and Flood, "Fast
//! splittable pseudorandom number generators", OOPSLA 2014).
//!
//! It is kept here, and must never be changed, because a seed must give the
//! same trace in every version.

use std::cell::Cell;

pub(crate) struct Rng(Cell<u64>);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number below `n`, which is not zero.
    #[inline]
    pub(crate) fn below(&self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Returns a random number from 0 up to but not 1.
    pub(crate) fn unit(&self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an exponentially distributed time with this mean, at least 1.
    pub(crate) fn exponential(&self, mean: f64) -> u64 {
        ((-(1.0 - self.unit()).ln() * mean) as u64).max(1)
    }
}
