//! Finds where the time of waits went. It must never count the same time twice.

/// Describes where the time of waits went, in ticks; [`locklab_document::contention_profile::Spent`] has the
/// meanings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentTicks {
    /// The time in which the holder worked.
    pub works: u64,
    /// The time in which a holder had no CPU or waited.
    pub stopped: u64,
    /// The time in which nobody held the lock.
    pub waking: u64,
    /// The time in which others had it.
    pub in_line: u64,
}

impl SpentTicks {
    pub(crate) fn add(&mut self, other: &Self) {
        self.works += other.works;
        self.stopped += other.stopped;
        self.waking += other.waking;
        self.in_line += other.in_line;
    }

    /// Notes that so much of what seemed to be work of holders was none.
    pub(crate) fn stop(&mut self, ticks: u64) {
        let first = ticks.min(self.works);
        let rest = (ticks - first).min(self.in_line);
        self.works -= first;
        self.in_line -= rest;
        self.stopped += first + rest;
    }
}
