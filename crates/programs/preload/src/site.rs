//! The place in the program where a mutex was made or first used, by its number
//! in a profile.

use crate::chosen;
use crate::mutex::Mutex;
use core::sync::atomic::Ordering;

/// Returns the number of a mutex's site, 0 if it has none yet.
#[inline]
pub(crate) fn number(mutex: &Mutex) -> u32 {
    if chosen::is_glibc() {
        // glibc links robust mutexes and those of a priority protocol by
        // the last 16 bytes, and leaves them alone in all others.
        mutex.depth.load(Ordering::Relaxed)
    } else {
        mutex.kind() >> 12
    }
}

/// Sets a mutex's site if none is set.
pub(crate) fn set(mutex: &Mutex, site: u32) {
    if chosen::is_glibc() {
        mutex.depth.store(site, Ordering::Relaxed);
        return;
    }
    let state = mutex.state.load(Ordering::Relaxed);
    if (state as u32) >> 12 == 0 {
        // The loser of this race uses the winner's value.
        let _ = mutex.state.compare_exchange(
            state,
            state | (site << 12) as usize,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}
