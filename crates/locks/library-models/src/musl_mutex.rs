//! The default mutex of musl, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Bit of a held word: somebody is about to sleep.
const MARKED: u32 = 1 << 31;
/// Number of reads of a waiter before it sleeps, with a pause after each but the last.
const READS: u32 = 101;

/// A word and a count of waiters. A waiter spins while nobody waits otherwise; then it
/// counts itself, marks the word and sleeps. A release wakes one if the word was marked or
/// anybody is counted: a wake-up takes the mark away, and the count remains.
///
/// **Follows:** `pthread_mutex_t` of the normal kind of musl 1.1 and 1.2, from the
/// discussions of its design on the musl list (R. Felker, 2011 to 2015).
///
/// **Size:** 8 bytes. **Per waiter:** nothing. **Fairness:** none.
#[repr(C)]
pub struct MuslMutex<P: Platform = NativePlatform> {
    word: P::U32,
    waiters: P::U32,
}

impl<P: Platform> MuslMutex<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            word: P::U32::ZERO,
            waiters: P::U32::ZERO,
        }
    }

    #[inline(always)]
    fn take_if_free(&self) -> bool {
        // N1: pairs with N3.
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        if self.waiters.load(Ordering::Relaxed) == 0 {
            let patience = Patience::Reads(READS);
            self.word.spin(Ordering::Relaxed, patience, |word| {
                if word == HELD {
                    Poll::Relax(1)
                } else {
                    Poll::Done
                }
            });
        }
        while !self.take_if_free() {
            self.waiters.fetch_add(1, Ordering::Relaxed);
            // N2: nothing is published by it.
            let marked = self.word.compare_exchange(
                HELD,
                HELD | MARKED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if marked != Err(FREE) {
                P::wait(&self.word, HELD | MARKED);
            }
            self.waiters.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        P::wake(&self.word);
    }
}

impl<P: Platform> Default for MuslMutex<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(FREE),
            waiters: P::U32::new(0),
        }
    }
}

// SAFETY: only a compare-and-swap that finds the word free takes it.
unsafe impl<P: Platform> RawLock<P> for MuslMutex<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "musl-mutex",
        summary: "musl's mutex, as described: counts its waiters",
        parks: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "musl 1.2, normal pthread_mutex_t; Felker 2015",
        promises: "loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take_if_free() {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.take_if_free()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != FREE)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // Read before the release, after which the lock may be gone. An old count does no
        // harm: who sleeps has marked the word since the last release, or sleeps behind one
        // that is awake, which has changed the count itself and so sees who was there.
        let waiters = self.waiters.load(Ordering::Relaxed);
        // N3: pairs with N1.
        let word = self.word.swap(FREE, Ordering::Release);
        if waiters != 0 || word & MARKED != 0 {
            self.wake();
        }
    }
}

crate::lock_api_impl::context_free!(MuslMutex);
