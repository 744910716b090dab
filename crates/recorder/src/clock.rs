//! The time of records: the processor's counter, or the monotonic clock where
//! there is none that runs at one rate. The header says which.

use core::sync::atomic::{AtomicBool, Ordering};

static NANOSECONDS: AtomicBool = AtomicBool::new(false);

/// Takes the monotonic clock from now on.
pub(crate) fn use_nanoseconds() {
    NANOSECONDS.store(true, Ordering::Relaxed);
}

/// Now, in ticks.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    if NANOSECONDS.load(Ordering::Relaxed) {
        locklab_preload_report::nanoseconds()
    } else {
        locklab_preload_report::counter()
    }
}
