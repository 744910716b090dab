//! The interface of every lock as the locks see it, and a wait that several of
//! those without a queue share.

use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
pub(crate) use locklab_platform::raw_lock::{Fairness, Info, Overtakes, RawLock, TimedLock};

/// Waits for a word without queueing until `word` is 0 and `take` succeeds, or
/// until the deadline; returns which. The timeout of test-and-set locks.
#[inline(always)]
pub(crate) fn take_until<P: Platform, T: Copy + PartialEq + Default, A: Atomic<T>>(
    word: &A,
    deadline: u64,
    take: impl Fn() -> bool,
) -> bool {
    /// Number of reads between two reads of the clock.
    const READS: u32 = 64;
    let free = T::default();
    loop {
        let seen = word.spin(Ordering::Relaxed, Patience::Reads(READS), |value| {
            if value == free {
                Poll::Done
            } else {
                Poll::Relax(1)
            }
        });
        if seen == free && take() {
            return true;
        }
        if P::now() >= deadline {
            return false;
        }
    }
}
