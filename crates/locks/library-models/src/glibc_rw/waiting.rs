//! What the waiters of glibc's reader-writer lock share: the phase that it is in, on which
//! they sleep until it changes, and the count of writers that wait for another.
//!
//! It must not know who holds the lock: that is in the lock's own word.

use crate::platform::{Atomic, AtomicInt, Ordering, Platform};

/// The mark in a word on which threads sleep that somebody does.
pub(super) const SLEPT: u32 = 2;

/// Says in which phase the lock is: 0 of readers, 1 of writers, with [`SLEPT`]. It is the word
/// on which readers, and the primary writer, sleep until it changes.
#[repr(transparent)]
pub(super) struct Phase<P: Platform>(P::U32);

impl<P: Platform> Phase<P> {
    pub(super) const fn new() -> Self {
        Self(P::U32::ZERO)
    }

    /// Sleeps while the phase is `old`.
    #[cold]
    #[inline(never)]
    pub(super) fn await_end_of(&self, old: u32) {
        loop {
            // H1: pairs with H2.
            let phase = self.0.load(Ordering::Acquire);
            if phase & 1 != old {
                return;
            }
            let slept = old | SLEPT;
            let marked = phase == slept
                || self
                    .0
                    .compare_exchange(phase, slept, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok();
            if marked {
                P::wait(&self.0, slept);
            }
        }
    }

    /// Tells who sleeps that this phase has begun.
    pub(super) fn begin(&self, phase: u32) {
        // H2: pairs with H1.
        if self.0.swap(phase, Ordering::Release) & SLEPT != 0 {
            P::wake_all(&self.0);
        }
    }

    /// Begins the phase of writers for the caller, whom nobody waits for to begin it.
    pub(super) fn begin_alone(&self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

impl<P: Platform> Default for Phase<P> {
    fn default() -> Self {
        Self(P::U32::new(0))
    }
}

/// The mark that other writers may sleep: a primary writer is there to wake them.
const MAY_SLEEP: u32 = 1;

/// Where other writers sleep. The primary writer lets them, from just after it has become that
/// until just before it hands the lock on; around these they look again. The others only mark
/// the word, so the lock's own word orders what primary writers do to it.
#[repr(transparent)]
pub(super) struct OtherWriters<P: Platform>(P::U32);

impl<P: Platform> OtherWriters<P> {
    pub(super) const fn new() -> Self {
        Self(P::U32::ZERO)
    }

    /// Lets others sleep; those that slept beside the caller sleep on.
    #[inline(always)]
    pub(super) fn may_sleep(&self, has_slept: bool) {
        let slept = if has_slept { SLEPT } else { 0 };
        self.0.store(MAY_SLEEP | slept, Ordering::Relaxed);
    }

    /// Lets nobody fall asleep; returns whether one sleeps, for whom [`OtherWriters::wake`]
    /// is called after the release.
    #[inline(always)]
    pub(super) fn may_sleep_no_more(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) & SLEPT != 0
    }

    /// Wakes one if others sleep.
    #[inline(always)]
    pub(super) fn wake(&self, sleep: bool) {
        if sleep {
            P::wake(&self.0);
        }
    }

    /// Sleeps if the primary writer lets it; returns whether it shares the mark with others
    /// that may sleep still.
    pub(super) fn sleep(&self) -> bool {
        let slept = MAY_SLEEP | SLEPT;
        let change =
            self.0
                .compare_exchange(MAY_SLEEP, slept, Ordering::Relaxed, Ordering::Relaxed);
        let marked = change.map_or_else(|now| now == slept, |_| true);
        match marked {
            true => P::wait(&self.0, slept),
            false => P::relax(),
        }
        marked
    }
}

impl<P: Platform> Default for OtherWriters<P> {
    fn default() -> Self {
        Self(P::U32::new(0))
    }
}

/// The mark in the count that one of them is the primary writer now.
const HANDED: u32 = 1;
/// Each writer that waits for another.
const WAITING: u32 = 2;

/// Counts the writers that wait for another, of which one may have been handed the lock.
#[repr(transparent)]
pub(super) struct WaitingWriters<P: Platform>(P::U32);

impl<P: Platform> WaitingWriters<P> {
    pub(super) const fn new() -> Self {
        Self(P::U32::ZERO)
    }

    pub(super) fn come(&self) {
        self.0.fetch_add(WAITING, Ordering::Relaxed);
    }

    pub(super) fn go(&self) {
        self.0.fetch_sub(WAITING, Ordering::Relaxed);
    }

    /// Hands the lock to one of them; returns whether there is one.
    pub(super) fn hand_over(&self) -> bool {
        let mut waiting = self.0.load(Ordering::Relaxed);
        while waiting != 0 {
            let handed = waiting | HANDED;
            // H8: pairs with H9.
            match self
                .0
                .compare_exchange(waiting, handed, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => waiting = now,
            }
        }
        false
    }

    /// Becomes the primary writer, if the lock is handed over and no other has it yet.
    pub(super) fn accept(&self) -> bool {
        let mut waiting = self.0.load(Ordering::Relaxed);
        while waiting & HANDED != 0 {
            let left = (waiting - WAITING) & !HANDED;
            // H9: pairs with H8.
            match self
                .0
                .compare_exchange(waiting, left, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => waiting = now,
            }
        }
        false
    }
}

impl<P: Platform> Default for WaitingWriters<P> {
    fn default() -> Self {
        Self(P::U32::new(0))
    }
}
