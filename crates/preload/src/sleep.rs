//! Sleeping for a lock, and what a profile counts of it.

use crate::sleepers::OF_RWLOCKS;
use crate::{chosen, futex, report, thread};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const RELAXED: Ordering = Ordering::Relaxed;

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
    let for_rwlock = ptr::eq(sleepers, &OF_RWLOCKS);
    // SAFETY: null, or part of a lock beside its mutex, which is never
    // unmapped.
    let sleepers = unsafe { sleepers.as_ref() }.filter(|_| !for_rwlock);
    if let Some(sleepers) = sleepers {
        sleepers.one_more();
    }
    futex::wait(word, expected);
    if let Some(sleepers) = sleepers {
        sleepers.one_less();
    }
    if report::reports() {
        let passed = sleepers.is_some_and(|sleepers| sleepers.are_passed());
        let since = woken(word).swap(0, RELAXED);
        // A sleeper that was passed has not kept the lock idle, and a lock that
        // is not handed over is free meanwhile.
        let idle = (since != 0 && !passed && !for_rwlock && chosen::hands_over())
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
