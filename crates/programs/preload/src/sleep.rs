//! Sleeping for a lock, and what a profile counts of it.

use crate::{chosen, futex, report, thread};
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
    futex::wait(word, expected);
    if report::reports() {
        let since = woken(word).swap(0, RELAXED);
        // A lock that is not handed over is free meanwhile, and a writer of a
        // rwlock may find readers.
        let handed = chosen::hands_over() && !thread::header().for_rwlock.load(RELAXED);
        let idle = (since != 0 && handed)
            .then(|| locklab_profile::clock::nanoseconds().saturating_sub(since));
        report::slept(idle);
    }
}

/// Wakes all that sleep on `word`, which has been written.
pub(crate) fn wake_all(word: &AtomicU32) {
    if report::reports() {
        woken(word).store(locklab_profile::clock::nanoseconds(), RELAXED);
    }
    futex::wake(core::ptr::from_ref(word), libc::c_int::MAX);
}
