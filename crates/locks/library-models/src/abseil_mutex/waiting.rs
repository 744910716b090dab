//! How one waits for an `AbseilMutex` that it cannot take at once, and leaves one that has waiters.
//!
//! It must not know how the queue is linked: `Waiter` does.

use super::waiter::{self, Waiter};
use super::{
    AbseilMutex, BUSY, HELD, MARKS, MOST, QUEUED, READER, READERS, WOKEN, WRITER, WRITER_WAITS,
    has, last_of, must_wake,
};
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use core::ptr;

/// How often a waiter, and a release, looks whether the queue is busy before it yields.
const GENTLE: u32 = 250;
const AGGRESSIVE: u32 = 5000;

/// Panics if the word, or the last of the queue, can count no more readers.
fn assert_room(readers: usize) {
    assert!(
        readers < MOST,
        "a reader-writer lock has no room for a reader: guards have been leaked"
    );
}

impl<P: Platform, const READS: u32> AbseilMutex<P, READS> {
    /// Sleeps until the lock is acquired.
    #[cold]
    #[inline(never)]
    pub(super) fn sleep(&self, writes: bool) {
        let own = Waiter::<P>::new(writes);
        // The mark that this waiter takes away with its next step: it was woken.
        let mut woken = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            // Writers that wait do not keep a reader out that has slept.
            let writers = WRITER | if woken == 0 { WRITER_WAITS } else { 0 };
            let closed = if writes { HELD } else { WRITER | QUEUED };
            if !has(seen, closed) {
                if self.enter(seen, woken, writes) {
                    return;
                }
                P::relax();
            } else if has(seen, BUSY) {
                self.await_queue(GENTLE);
            } else if !writes && !has(seen, writers) {
                if self.enter_beside_queue(seen, woken) {
                    return;
                }
                P::relax();
            } else if self.join(&own, seen, woken, writes) {
                own.sleep();
                woken = WOKEN;
            } else {
                P::relax();
            }
        }
    }

    /// Takes it if it is as it was seen, for who may enter then.
    fn enter(&self, seen: *mut Waiter<P>, woken: usize, writes: bool) -> bool {
        if writes {
            return self.take(seen, woken);
        }
        assert_room(seen.addr());
        self.take_beside(seen, woken)
    }

    /// Takes it for reading where others wait, unless the word is another than was seen.
    fn enter_beside_queue(&self, seen: *mut Waiter<P>, woken: usize) -> bool {
        let inside = seen.map_addr(|word| word & !woken | READERS);
        if !self.take_queue(seen, inside) {
            return false;
        }
        // SAFETY: the queue is ours, and who is in it sleeps.
        let last = unsafe { &*last_of(seen) };
        let readers = last.readers.load(Ordering::Relaxed);
        if readers < MOST {
            last.readers.store(readers + READER, Ordering::Relaxed);
        }
        // X9: pairs with X7. While readers hold it and the queue is busy, nobody else writes
        // the word.
        self.word.store(inside, Ordering::Release);
        assert_room(readers);
        true
    }

    /// Makes the word what it is to be, and the queue busy, which makes that ours, unless the
    /// word is another than was seen; returns whether it did.
    fn take_queue(&self, seen: *mut Waiter<P>, new: *mut Waiter<P>) -> bool {
        // X7: pairs with X3 to X6, and with X8 to X11.
        self.word
            .compare_exchange(
                seen,
                new.map_addr(|word| word | BUSY),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Joins the queue, in front if it was in it before, unless the word is another than was
    /// seen; returns whether it did.
    fn join(&self, own: &Waiter<P>, seen: *mut Waiter<P>, woken: usize, writes: bool) -> bool {
        let waits = if writes && has(seen, READERS) {
            WRITER_WAITS
        } else {
            0
        };
        let joined = seen.map_addr(|word| word & !woken | waits);
        if !has(seen, QUEUED) {
            own.begin(last_of(seen).addr());
            let marks = joined.addr() & MARKS | QUEUED;
            let new = ptr::from_ref(own).cast_mut().map_addr(|own| own | marks);
            // X6: pairs with X7.
            return self
                .word
                .compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        }
        if !self.take_queue(seen, joined) {
            return false;
        }
        // SAFETY: the queue is ours.
        let last = unsafe { own.join(last_of(seen), woken != 0) };
        let mut now = joined.map_addr(|word| word | BUSY);
        loop {
            let marks = now.addr() & MARKS & !BUSY;
            let new = last.map_addr(|last| last | marks);
            // X8: pairs with X7.
            match self
                .word
                .compare_exchange(now, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
    }

    /// Waits until nobody changes the queue, and gives the CPU to others after so many looks.
    fn await_queue(&self, looks: u32) {
        let patience = Patience::Reads(looks);
        let seen = self.word.spin(Ordering::Relaxed, patience, |word| {
            if has(word, BUSY) {
                Poll::Relax(0)
            } else {
                Poll::Done
            }
        });
        if has(seen, BUSY) {
            P::yield_cpu();
        }
    }

    /// Releases a writer, or a reader, of a lock that has waiters.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_queued(&self) {
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if has(seen, WRITER) && !must_wake(seen) {
                if self.release(seen) {
                    return;
                }
                P::relax();
            } else if has(seen, BUSY) {
                self.await_queue(AGGRESSIVE);
            } else if self.take_queue(seen, seen) {
                return self.leave_queue_to_next(seen);
            }
        }
    }

    /// Gives up the queue, which is ours, and the lock, and wakes who is next, unless other
    /// readers hold it.
    fn leave_queue_to_next(&self, seen: *mut Waiter<P>) {
        // SAFETY: the queue is ours, and who is in it sleeps.
        let last = unsafe { &*last_of(seen) };
        let readers = last.readers.load(Ordering::Relaxed);
        if readers > READER {
            last.readers.store(readers - READER, Ordering::Relaxed);
            // X10: as X9.
            self.word.store(seen, Ordering::Release);
            return;
        }
        // SAFETY: as above.
        let next = unsafe { waiter::take_next(last_of(seen)) };
        let marks = match next.rest.is_null() {
            true => WOKEN,
            // A writer was woken, or all who stay are writers.
            false => QUEUED | WOKEN | WRITER_WAITS,
        };
        // X11: pairs with X1, X2 and X7. While it is held and the queue is busy, nobody else
        // writes the word.
        self.word
            .store(next.rest.map_addr(|rest| rest | marks), Ordering::Release);
        // SAFETY: they were taken out.
        unsafe { next.wake() };
    }
}
