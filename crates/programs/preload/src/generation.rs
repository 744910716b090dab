//! The generation of this process: how many forks lie between it and the
//! program's first, and the repair of what is of an older one.

use crate::chosen;
use crate::mutex::Mutex;
use crate::own::Guarded;
use core::sync::atomic::{AtomicU32, Ordering};
use locklab_locks::platform::Atomic;
use locklab_pthread_protocols::publication::published_or;

static GENERATION: AtomicU32 = AtomicU32::new(0);

static REPAIR: Guarded = Guarded::new();

/// Returns the number of forks between this process and the program's first.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Repairs a mutex of the interposer that was last touched before the fork.
#[inline]
pub(crate) fn refresh(mutex: &Mutex) {
    let generation = generation();
    renew(
        &mutex.state,
        |state| Mutex::generation_of(state) == generation,
        || {
            // SAFETY: a mutex of ours, and all others wait for this.
            unsafe { (chosen::ops().repair)(mutex) };
            mutex.waiters.store(0, Ordering::Relaxed);
            mutex.with_generation(generation)
        },
    );
}

/// Repairs what was last touched before a fork: `word` says of which process
/// it is, and `repair` returns what it says from then on.
#[inline]
pub(crate) fn renew<T: Copy, A: Atomic<T>>(
    word: &A,
    is_of_now: impl Fn(T) -> bool,
    repair: impl FnOnce() -> T,
) {
    published_or(word, &REPAIR, is_of_now, repair);
}

/// Notes one more fork.
pub(crate) fn advance() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn guard() -> &'static Guarded {
    &REPAIR
}
