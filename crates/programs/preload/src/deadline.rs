//! The deadline of a timed lock, and the pauses of one that polls until then.

use crate::futex;
use core::hint::spin_loop;
use libc::{clockid_t, timespec};

/// A deadline by a clock.
pub(crate) struct Deadline {
    pub(crate) clock: clockid_t,
    pub(crate) until: timespec,
}

impl Deadline {
    /// Returns the remaining nanoseconds, or `None` if it has passed.
    pub(crate) fn left(&self) -> Option<u64> {
        let now = futex::now(self.clock);
        let seconds = self.until.tv_sec.saturating_sub(now.tv_sec);
        let nanoseconds = seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(self.until.tv_nsec - now.tv_nsec);
        u64::try_from(nanoseconds).ok().filter(|left| *left > 0)
    }
}

/// Waits between two attempts of a timed lock, longer each time.
pub(crate) fn back_off(tries: &mut u32) {
    let n = *tries;
    *tries = n.saturating_add(1);
    if n < 64 {
        for _ in 0..16 {
            spin_loop();
        }
    } else {
        futex::doze(i64::from((n - 63).min(20)) * 50_000);
    }
}
