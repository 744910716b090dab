//! Waiters that sleep: who may pass them, and what waking them costs the lock.
//!
//! A lock in order of arrival is handed to the thread that came first, which
//! may be asleep. The lock then stands idle until the kernel has woken it, for
//! thousands of times as long as the critical section takes, and meanwhile
//! everybody else arrives, waits and falls asleep too: a convoy (M. Blasgen,
//! J. Gray, M. Mitoma and T. Price, "The Convoy Phenomenon", 1979). It ends
//! only when nobody wants the lock any more.
//!
//! Under the wait policy `barging` a thread that runs takes a free lock before
//! those that sleep, through the gate of [`crate::gate`]; the sleeper that is
//! next in the order of the lock was woken by the release and takes it as soon
//! as it runs. At most [`PASSES`] acquisitions pass it. While nobody sleeps,
//! nobody passes, and the lock is what it is.
//!
//! Must never let more than [`PASSES`] threads in a row pass the same sleeper,
//! and never touch the lock itself.

use crate::{choice, futex, report, thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const RELAXED: Ordering = Ordering::Relaxed;

/// How many acquisitions in a row may pass the sleeper that comes next. With
/// the shortest critical sections they take as long as a wake-up, some 50 µs.
pub(crate) const PASSES: u32 = 1024;

/// What one lock knows of its sleepers. Zero: there are none.
#[repr(C)]
pub(crate) struct Sleepers {
    /// How many sleep, or have been woken and do not run yet.
    asleep: AtomicU32,
    /// How many acquisitions have passed the one that comes next.
    passes: AtomicU32,
}

impl Sleepers {
    /// Whether a thread that runs may take the lock before those that queue.
    #[inline(always)]
    pub(crate) fn may_be_passed(&self) -> bool {
        self.asleep.load(RELAXED) != 0 && self.passes.load(RELAXED) < PASSES
    }

    /// The caller has passed them, and holds the lock.
    pub(crate) fn passed(&self) {
        // Only a holder counts, so a load and a store do.
        self.passes.store(self.passes.load(RELAXED) + 1, RELAXED);
    }

    /// The head of the queue holds the lock.
    #[inline(always)]
    pub(crate) fn head_came(&self) {
        let passes = self.passes.load(RELAXED);
        if passes != 0 {
            self.passes.store(0, RELAXED);
            report::passed(passes);
        }
    }

    /// Nobody sleeps: in a lock that is used anew, or a process just forked.
    pub(crate) fn forget(&self) {
        self.asleep.store(0, RELAXED);
        self.passes.store(0, RELAXED);
    }
}

const PLACES: usize = 256;

/// When those who sleep on a word were last woken, in nanoseconds, by the
/// address of the word. 0: somebody has run since.
static WOKEN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

fn woken(word: &AtomicU32) -> &'static AtomicU64 {
    let hash = (core::ptr::from_ref(word).addr() as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &WOKEN[(hash >> 56) as usize % PLACES]
}

/// The calling thread waits for a lock, and sleeps while `word` holds
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
        // Who was passed has not kept the lock idle, and a lock that is not
        // handed over is free meanwhile.
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
