//! The mutex of Abseil, the C++ library, as it is described.

mod waiter;
mod waiting;

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock};
use core::ptr;
use waiter::Waiter;

/// A writer holds it.
const WRITER: usize = 1;
/// Waiters are in the queue, and the rest of the word is the last of them. Without it the
/// rest counts the readers inside.
const QUEUED: usize = 2;
/// A waiter that was woken has neither got the lock nor joined the queue again: none need be
/// woken until it has. Abseil's "designated waker".
const WOKEN: usize = 4;
/// Somebody changes the queue.
const BUSY: usize = 8;
/// Readers hold it.
const READERS: usize = 16;
/// A writer of the queue waits for readers, or a release has left others there: a reader that
/// has not slept joins them.
const WRITER_WAITS: usize = 32;
/// The bits that are no part of an address.
const MARKS: usize = 63;
/// Each reader adds one.
const READER: usize = MARKS + 1;
/// The word is full of readers from here on.
const MOST: usize = usize::MAX - (READER - 1);
const HELD: usize = WRITER | READERS;

/// A word with a count of readers, or with the last of a ring of waiters, who has that count.
///
/// A writer reads the word `READS` times, without a pause, before it joins the queue and
/// sleeps; who finds readers, and a reader, joins at once. A writer's release frees the lock
/// and wakes the first of the queue, or all readers of it if the first is one, unless one
/// that was woken before is still on its way; the last reader's wakes in any case. Who comes
/// may be faster; then the woken one joins the queue again, in front, and sleeps at once.
/// A reader enters beside readers, or if the lock is free, although others wait. But once a
/// writer has joined the queue behind readers, or a release has woken some of the queue and
/// left others there, only those enter that have slept, until a writer has been inside.
///
/// **Follows:** `absl::Mutex` of 2023 and later, from the comments on its word, its delays and
/// its queue. Conditions, priorities and deadlock detection are not part of it. Who finds the
/// queue busy for long yields again where Abseil sleeps for 10 us. After a lost race a
/// writer's reads are counted anew. Abseil has no downgrade; here the writer becomes a
/// reader if nobody waits, and otherwise stays alone.
///
/// **Size:** one pointer. **Per waiter:** 64 bytes of its stack. **Fairness:** none.
///
/// At most 2^58 - 1 readers hold it at once (2^26 - 1 where a word has 32 bits), including
/// leaked guards: [`AbseilMutex::read`] panics beyond that, and [`AbseilMutex::try_read`]
/// returns `false`.
#[repr(transparent)]
pub struct AbseilMutex<P: Platform = NativePlatform, const READS: u32 = 1500> {
    word: P::Ptr<Waiter<P>>,
}

fn has<P: Platform>(word: *mut Waiter<P>, bits: usize) -> bool {
    word.addr() & bits != 0
}

fn last_of<P: Platform>(word: *mut Waiter<P>) -> *mut Waiter<P> {
    word.map_addr(|word| word & !MARKS)
}

/// Returns whether a writer's release has to wake one: waiters are there, and none is on its
/// way.
fn must_wake<P: Platform>(word: *mut Waiter<P>) -> bool {
    word.addr() & (QUEUED | WOKEN) == QUEUED
}

impl<P: Platform, const READS: u32> AbseilMutex<P, READS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::Ptr::ZERO }
    }

    /// Acquires for reading.
    ///
    /// # Panics
    /// If as many readers hold the lock as its word can count.
    #[inline(always)]
    pub fn read(&self) {
        let seen = self.word.load(Ordering::Relaxed);
        if has(seen, WRITER | QUEUED) || seen.addr() >= MOST || !self.take_beside(seen, 0) {
            self.sleep(false);
        }
    }

    /// Acquires for reading if no writer holds it, nobody waits and there is room; returns
    /// whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while !has(seen, WRITER | QUEUED) && seen.addr() < MOST {
            if self.take_beside(seen, 0) {
                return true;
            }
            seen = self.word.load(Ordering::Relaxed);
        }
        false
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        let mut seen = self.word.load(Ordering::Relaxed);
        while !has(seen, QUEUED) {
            let left = seen.map_addr(|word| word - READER);
            let left = match left.addr() >= READER {
                true => left,
                false => left.map_addr(|word| word & !READERS),
            };
            // X4: pairs with X1 and X7.
            match self
                .word
                .compare_exchange(seen, left, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        self.leave_queued();
    }

    /// Makes the writer a reader, without any other holder in between; where somebody waits, no
    /// other reader enters.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        let seen = self.word.load(Ordering::Relaxed);
        if has(seen, QUEUED) {
            return;
        }
        let reads = seen.map_addr(|word| (word & !WRITER | READERS) + READER);
        // X5: pairs with X2 and X7. Who has changed the word meanwhile waits.
        let _ = self
            .word
            .compare_exchange(seen, reads, Ordering::Release, Ordering::Relaxed);
    }

    /// Takes it if it is as it was seen, free; takes `marks` away from the word.
    #[inline(always)]
    fn take(&self, seen: *mut Waiter<P>, marks: usize) -> bool {
        let new = seen.map_addr(|word| (word & !marks) | WRITER);
        // X1: pairs with X3, X4 and X11.
        self.word
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes it beside readers if it is as it was seen, without a writer or a queue; takes
    /// `marks` away from the word.
    #[inline(always)]
    fn take_beside(&self, seen: *mut Waiter<P>, marks: usize) -> bool {
        let new = seen.map_addr(|word| (word & !marks | READERS) + READER);
        // X2: pairs with X3, X5 and X11.
        self.word
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait_to_write(&self) {
        loop {
            let patience = Patience::Reads(READS);
            let seen = self.word.spin(Ordering::Relaxed, patience, |word| {
                if word.addr() & HELD == WRITER {
                    Poll::Relax(0)
                } else {
                    Poll::Done
                }
            });
            if has(seen, HELD) {
                return self.sleep(true);
            }
            if self.take(seen, 0) {
                return;
            }
        }
    }

    /// Releases a writer if the lock is as it was seen, and nobody need be woken.
    #[inline(always)]
    fn release(&self, seen: *mut Waiter<P>) -> bool {
        // X3: pairs with X1, X2 and X7.
        self.word
            .compare_exchange(
                seen,
                seen.map_addr(|word| word & !(WRITER | WRITER_WAITS)),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

impl<P: Platform, const READS: u32> Default for AbseilMutex<P, READS> {
    fn default() -> Self {
        Self {
            word: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: only a compare-and-swap that finds it free takes it, or for a reader one that finds no
// writer.
unsafe impl<P: Platform, const READS: u32> RawLock<P> for AbseilMutex<P, READS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "abseil-mutex",
        summary: "Abseil's Mutex, as described: one is woken, or all readers",
        parks: true,
        readers_share: true,
        bytes_per_waiter: 64,
        paper: "absl::Mutex of Abseil; comments of 2023",
        promises: "writer tries, comes to a sleeper, readers try behind, reader asks, readers \
            at the limit, newcomers wait, loses races",
        not_promised: "a place in the end, one comes to two",
        ..Info::BASE
    };

    /// Returns a lock that admits one more reader.
    fn about_to_wrap() -> Self {
        Self {
            word: P::Ptr::new(ptr::without_provenance_mut(MOST - READER + READERS)),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        let seen = self.word.load(Ordering::Relaxed);
        if has(seen, HELD) || !self.take(seen, 0) {
            self.wait_to_write();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while !has(seen, HELD) {
            if self.take(seen, 0) {
                return true;
            }
            seen = self.word.load(Ordering::Relaxed);
        }
        false
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(has(self.word.load(Ordering::Relaxed), HELD))
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        let seen = self.word.load(Ordering::Relaxed);
        if must_wake(seen) || !self.release(seen) {
            self.leave_queued();
        }
    }

    #[inline(always)]
    unsafe fn read_lock(&self, _: &()) {
        self.read();
    }

    #[inline(always)]
    unsafe fn read_unlock(&self, _: &()) {
        // SAFETY: of the caller.
        unsafe { Self::read_unlock(self) }
    }
}

crate::lock_api_impl::shared!(AbseilMutex, READS: u32);
