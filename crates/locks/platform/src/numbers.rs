//! Numbers that threads take and give back: one bit for each, set while it is
//! taken.
//!
//! A number is a lock on what belongs to it, the queue nodes of a CPU: two
//! threads must never have the same number at once, and a thread that takes one
//! sees all that its previous owner has done. Generic over the platform, so
//! that the model checker covers it too.

use crate::platform::{Atomic, AtomicInt, Ordering, Platform};

/// The numbers below `32 * WORDS`, each free or taken.
#[doc(hidden)]
pub struct Numbers<P: Platform, const WORDS: usize> {
    /// A bit is set while its number is taken.
    taken: [P::U32; WORDS],
}

impl<P: Platform, const WORDS: usize> Numbers<P, WORDS> {
    /// Makes a table in which every number is free.
    pub const fn new() -> Self {
        Self {
            taken: [const { P::U32::ZERO }; WORDS],
        }
    }

    /// Takes the lowest free number below `most`, if there is one.
    pub fn take(&self, most: usize) -> Option<usize> {
        for (word, taken) in self.taken.iter().enumerate() {
            loop {
                let free = taken.load(Ordering::Relaxed).trailing_ones() as usize;
                let number = word * 32 + free;
                if free == 32 || number >= most {
                    break;
                }
                // L1: pairs with L2.
                if taken.fetch_or(1 << free, Ordering::Acquire) & (1 << free) == 0 {
                    return Some(number);
                }
            }
        }
        None
    }

    /// Marks this number as taken, whether or not it was.
    pub fn assume(&self, number: usize) {
        self.taken[number / 32].fetch_or(1 << (number % 32), Ordering::Relaxed);
    }

    /// Gives back a number that the caller has.
    pub fn give_back(&self, number: usize) {
        // L2: pairs with L1: our last use of what belongs to the number comes
        // before the next owner's first.
        self.taken[number / 32].fetch_and(!(1 << (number % 32)), Ordering::Release);
    }

    /// Returns whether the number is taken.
    pub fn is_taken(&self, number: usize) -> bool {
        self.taken[number / 32].load(Ordering::Relaxed) >> (number % 32) & 1 != 0
    }
}

impl<P: Platform, const WORDS: usize> Default for Numbers<P, WORDS> {
    fn default() -> Self {
        Self {
            taken: core::array::from_fn(|_| P::U32::new(0)),
        }
    }
}
