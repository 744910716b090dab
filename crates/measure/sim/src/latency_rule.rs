//! The rule by which Linux shared a CPU before version 6.6: the completely fair scheduler.
//!
//! Of the threads of a queue the one that has run least runs. Its slice is its part of a
//! period in which each is to run once, at least an eighth of it; a woken thread preempts one
//! that has run a sixth of it more than itself, and has at most half of it to catch up when it
//! has slept. A new thread begins with a slice used up. Slices are looked at by the tick, which
//! ends one early if another thread is a whole slice behind. Published figures of those years were
//! made by it. Source: `kernel/sched/fair.c` of Linux 4.19 (`sched_slice`,
//! `check_preempt_tick`, `wakeup_preempt_entity`, `place_entity` with `START_DEBIT`), whose defaults are 6 ms,
//! 0.75 ms and 1 ms, each times 1 + log2 of the CPUs, eight at most.
//!
//! It knows no queue: `run_queues` has those, for this rule and for the one since.

/// A period, in cycles.
#[derive(Clone, Copy)]
pub(crate) struct LatencyRule {
    period: i64,
}

impl LatencyRule {
    /// Makes the rule of a period of so many cycles; none if it is 0.
    pub(crate) fn new(period: u64) -> Option<Self> {
        (period > 0).then_some(Self {
            period: period as i64,
        })
    }

    /// The slice of each of so many threads.
    pub(crate) fn slice(self, threads: usize) -> i64 {
        (self.period / threads.max(1) as i64).max(self.period / 8)
    }

    /// Returns whether a thread that has run for `running` is preempted by one that wakes and
    /// has run for `woken`.
    pub(crate) fn preempts(self, running: i64, woken: i64) -> bool {
        running - woken > self.period / 6
    }

    /// Returns whether a thread that has run for `ran` since it was given its CPU, and for
    /// `ahead` longer than the one that has run least, must leave it to that one; so many
    /// share it.
    pub(crate) fn ends(self, ran: i64, ahead: i64, threads: usize) -> bool {
        let slice = self.slice(threads);
        (ran >= slice && ahead > 0) || (ran >= self.period / 8 && ahead > slice)
    }

    /// What a new thread has run, as its queue counts, whose least is `floor`: a slice more, as
    /// long as if it shared a CPU with the one that starts it.
    pub(crate) fn started(self, floor: i64) -> i64 {
        floor + self.slice(2)
    }

    /// What a woken thread has run, as its queue counts, whose least is `floor`.
    pub(crate) fn placed(self, ran: i64, floor: i64) -> i64 {
        ran.max(floor - self.period / 2)
    }

    /// Returns whether one that yields, and has run for `running`, gives its CPU to one that has
    /// run for `next`.
    pub(crate) fn yields_to(self, running: i64, next: i64) -> bool {
        next - running <= self.period / 6
    }
}
