//! Counts accesses and misses. A tally has one writer, the vCPU it belongs to; others
//! may read it at any time, without a lock.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Instructions, line fetches and misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions that the program executed, each time that it did.
    pub instructions: u64,
    /// Fetches of a line other than the one fetched before.
    pub fetches: u64,
    /// Fetches that missed the cache.
    pub misses: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            instructions: self.instructions + other.instructions,
            fetches: self.fetches + other.fetches,
            misses: self.misses + other.misses,
        }
    }
}

impl Sub for Counts {
    type Output = Counts;

    /// Returns the counts since `other`.
    ///
    /// # Panics
    /// In debug builds, when `other` is not the earlier of the two.
    fn sub(self, other: Counts) -> Counts {
        Counts {
            instructions: self.instructions - other.instructions,
            fetches: self.fetches - other.fetches,
            misses: self.misses - other.misses,
        }
    }
}

/// Running [`Counts`] that one thread adds to and any thread may read.
#[derive(Debug, Default)]
pub struct Tally {
    instructions: AtomicU64,
    fetches: AtomicU64,
    misses: AtomicU64,
}

impl Tally {
    /// Adds to the counts. Only one thread may add: two would lose counts
    /// (a load and a store, several times cheaper than an atomic addition).
    #[inline(always)]
    pub fn add(&self, instructions: u64, fetches: u64, misses: u64) {
        let add = |to: &AtomicU64, n| to.store(to.load(Relaxed) + n, Relaxed);
        add(&self.instructions, instructions);
        add(&self.fetches, fetches);
        if misses != 0 {
            add(&self.misses, misses);
        }
    }

    /// Returns the instructions counted so far.
    #[inline(always)]
    pub fn instructions(&self) -> u64 {
        self.instructions.load(Relaxed)
    }

    /// Returns the counts so far; while the writer runs, its last addition may be
    /// in some of them and not yet in others.
    pub fn read(&self) -> Counts {
        Counts {
            instructions: self.instructions.load(Relaxed),
            fetches: self.fetches.load(Relaxed),
            misses: self.misses.load(Relaxed),
        }
    }
}
