//! What one thread alone does to a lock before the threads of a program begin.
//!
//! It must only note, and judge nothing but a wait that nobody ends.

use crate::memory::pieces;
use std::collections::BTreeSet;
use std::ops::Range;

/// Says why a lock that nobody has ever held may not be free.
pub(super) const NO_INIT: &str = "there is no lab_init, and a lock that is all zero is not free";

/// What is noted while a lock is being used before the threads begin.
pub(super) struct Watch {
    /// The memory of the lock, of its context, and static data.
    ranges: [Range<usize>; 3],
    /// Every access to it: first address and bytes.
    pub(super) accessed: BTreeSet<(usize, usize)>,
    pub(super) uses: u64,
    init: bool,
}

impl Watch {
    /// Returns one of a lock that has not been used, and may have a `lab_init`.
    pub(super) fn of(ranges: [Range<usize>; 3], init: bool) -> Self {
        Self {
            ranges,
            accessed: BTreeSet::new(),
            uses: 0,
            init,
        }
    }

    /// Notes that the code accesses memory here.
    pub(super) fn accesses(&mut self, address: usize, bytes: usize) {
        if self.ranges.iter().any(|range| range.contains(&address)) {
            let words = pieces(address, bytes);
            self.accessed
                .extend(words.map(|(first, size)| (first, size.into())));
        }
    }

    /// Says that the code waits at this line.
    pub(super) fn never_ends(&self, line: &str) -> String {
        let without_init = match self.uses == 0 && !self.init {
            true => format!("; {NO_INIT}"),
            false => String::new(),
        };
        format!(
            "deadlock: a thread alone waits for ever, after {} acquisitions and releases, at \
             {line}{without_init}",
            self.uses
        )
    }
}
