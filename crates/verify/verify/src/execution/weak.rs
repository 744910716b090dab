//! Compare-and-swaps that fail without cause, as a weak one may (C11, 7.17.7.4).
//!
//! Each thread's compare-and-swaps of this kind may all succeed, or any one of them
//! fail. Must never make one succeed.

use super::setting::MAX_THREADS;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

/// The compare-and-swaps of a thread, in one execution, that may fail so.
const OF_A_THREAD: usize = 8;

/// Notes what a thread has made of its own.
#[derive(Clone, Copy, Default)]
struct Made {
    /// Counts those that it was asked of.
    offered: usize,
    /// Says whether one has failed.
    failed: bool,
}

/// The choices of one execution, if the lock has such operations: the first that asks
/// begins the model again.
#[derive(Default)]
pub(super) struct WeakFailures {
    asked: Cell<bool>,
    words: RefCell<Vec<loom::sync::atomic::AtomicU32>>,
    made: [Cell<Made>; MAX_THREADS],
}

impl WeakFailures {
    pub(super) fn forget(&self) {
        self.asked.set(false);
    }

    pub(super) fn are_asked_for(&self) -> bool {
        self.asked.get()
    }

    pub(super) fn begin(&self) {
        let words = if self.asked.get() {
            MAX_THREADS * OF_A_THREAD
        } else {
            0
        };
        let new = |_| loom::sync::atomic::AtomicU32::new(0);
        *self.words.borrow_mut() = (0..words).map(new).collect();
        self.made.iter().for_each(|made| made.set(Made::default()));
    }

    /// Gives each choice its second value, as that of other choices is.
    pub(super) fn offer(&self) {
        for word in self.words.borrow().iter() {
            word.store(1, Ordering::Relaxed);
        }
    }

    /// Notes that the lock has such operations; returns whether that was known.
    pub(super) fn ask(&self) -> bool {
        self.asked.replace(true)
    }

    /// Returns the number of the next choice of a thread, if it has one left: after the
    /// first that failed no more do, or a loop around one would never end.
    pub(super) fn next(&self, me: usize) -> Option<usize> {
        let made = self.made[me].get();
        if made.failed || made.offered == OF_A_THREAD {
            return None;
        }
        self.made[me].set(Made {
            offered: made.offered + 1,
            ..made
        });
        Some(me * OF_A_THREAD + made.offered)
    }

    /// Returns the word that holds a choice.
    pub(super) fn word(&self, choice: usize) -> *const loom::sync::atomic::AtomicU32 {
        &raw const self.words.borrow()[choice]
    }

    /// Notes that one of this thread has failed.
    pub(super) fn has_failed(&self, me: usize) {
        let made = self.made[me].get();
        self.made[me].set(Made {
            failed: true,
            ..made
        });
    }
}
