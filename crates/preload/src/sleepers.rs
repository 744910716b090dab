//! Waiters that sleep: when they may be passed, and the cost of waking them.
//!
//! A lock in order of arrival is handed to the thread that came first, which
//! may be asleep. The lock is then idle until the kernel has woken it, for
//! thousands of times as long as the critical section takes, and meanwhile
//! every other thread arrives, waits and falls asleep too: a convoy (M.
//! Blasgen, J. Gray, M. Mitoma and T. Price, "The Convoy Phenomenon", 1979). It
//! ends only when no thread wants the lock any more.
//!
//! Under the wait policy `barging` a running thread takes a free lock before
//! those that sleep, through the gate of [`locklab_pthread_protocols::gate`]; the sleeper that is
//! next in the order of the lock was woken by the release and takes it as soon
//! as it runs. At most [`PASSES`] acquisitions pass it. While no thread sleeps,
//! none passes, and the lock keeps its own order.
//!
//! It must never let more than [`PASSES`] threads in a row pass the same
//! sleeper, and never touch the lock itself.

use core::sync::atomic::{AtomicU32, Ordering};

const RELAXED: Ordering = Ordering::Relaxed;

/// How many acquisitions in a row may pass the sleeper that comes next. With
/// the shortest critical sections they take as long as a wake-up, some 50 µs.
pub(crate) const PASSES: u32 = 1024;

/// The sleepers of one lock. Zero means that there are none.
#[repr(C)]
pub(crate) struct Sleepers {
    /// Number of threads that sleep, or have been woken and do not run yet.
    asleep: AtomicU32,
    /// Number of acquisitions that have passed the next one.
    passes: AtomicU32,
}

/// What a thread waits for that waits for a rwlock: nobody passes there, and
/// a waiter that sleeps is not handed the lock alone.
pub(crate) static OF_RWLOCKS: Sleepers = Sleepers {
    asleep: AtomicU32::new(0),
    passes: AtomicU32::new(0),
};

impl Sleepers {
    /// Whether a running thread may take the lock before queued ones.
    #[inline(always)]
    pub(crate) fn may_be_passed(&self) -> bool {
        self.asleep.load(RELAXED) != 0 && self.passes.load(RELAXED) < PASSES
    }

    /// Notes that the caller has passed the sleepers and holds the lock.
    pub(crate) fn passed(&self) {
        // Only a holder counts, so a load and a store do.
        self.passes.store(self.passes.load(RELAXED) + 1, RELAXED);
    }

    /// Notes that the head of the queue holds the lock. Returns how many have
    /// passed it.
    #[inline(always)]
    pub(crate) fn head_came(&self) -> u32 {
        let passes = self.passes.load(RELAXED);
        if passes != 0 {
            self.passes.store(0, RELAXED);
        }
        passes
    }

    /// Whether the next one has been passed.
    pub(crate) fn are_passed(&self) -> bool {
        self.passes.load(RELAXED) != 0
    }

    /// Notes that a thread goes to sleep.
    pub(crate) fn one_more(&self) {
        self.asleep.fetch_add(1, RELAXED);
    }

    /// Notes that it runs again.
    pub(crate) fn one_less(&self) {
        self.asleep.fetch_sub(1, RELAXED);
    }

    /// Resets the sleepers, in a lock that is reused or a newly forked process.
    pub(crate) fn forget(&self) {
        self.asleep.store(0, RELAXED);
        self.passes.store(0, RELAXED);
    }
}
