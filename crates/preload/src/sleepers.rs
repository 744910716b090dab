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

use crate::{choice, futex, report, thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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

    /// Notes that the head of the queue holds the lock.
    #[inline(always)]
    pub(crate) fn head_came(&self) {
        let passes = self.passes.load(RELAXED);
        if passes != 0 {
            self.passes.store(0, RELAXED);
            report::passed(passes);
        }
    }

    /// Resets the sleepers, in a lock that is reused or a newly forked process.
    pub(crate) fn forget(&self) {
        self.asleep.store(0, RELAXED);
        self.passes.store(0, RELAXED);
    }
}

const PLACES: usize = 256;

/// The time when the sleepers of a word were last woken, in nanoseconds, by the
/// address of the word. 0 if a thread has run since.
static WOKEN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

fn woken(word: &AtomicU32) -> &'static AtomicU64 {
    let hash = (core::ptr::from_ref(word).addr() as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &WOKEN[(hash >> 56) as usize % PLACES]
}

/// Lets the calling thread, which waits for a lock, sleep while `word` holds
/// `expected`.
pub(crate) fn sleep(word: &AtomicU32, expected: u32) {
    let sleepers = thread::header().waits_for.load(RELAXED);
    // SAFETY: null, or part of a lock beside its mutex, which is never
    // unmapped.
    let sleepers = unsafe { sleepers.as_ref() };
    if let Some(sleepers) = sleepers {
        sleepers.asleep.fetch_add(1, RELAXED);
    }
    futex::wait(word, expected);
    if let Some(sleepers) = sleepers {
        sleepers.asleep.fetch_sub(1, RELAXED);
    }
    if report::reports() {
        let passed = sleepers.is_some_and(|sleepers| sleepers.passes.load(RELAXED) != 0);
        let since = woken(word).swap(0, RELAXED);
        // A sleeper that was passed has not kept the lock idle, and a lock that
        // is not handed over is free meanwhile.
        let idle = (since != 0 && !passed && choice::hands_over())
            .then(|| locklab_preload_report::nanoseconds().saturating_sub(since));
        report::slept(idle);
    }
}

/// Wakes all that sleep on `word`, which has been written.
pub(crate) fn wake_all(word: &AtomicU32) {
    if report::reports() {
        woken(word).store(locklab_preload_report::nanoseconds(), RELAXED);
    }
    futex::wake(core::ptr::from_ref(word), libc::c_int::MAX);
}
