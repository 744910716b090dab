//! The mutex of Abseil, the C++ library, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock};
use core::ptr;

const HELD: usize = 1;
/// Waiters are in the queue, and the rest of the word is the last of them.
const QUEUED: usize = 2;
/// A waiter that was woken has neither got the lock nor joined the queue again: none need be
/// woken until it has. Abseil's "designated waker".
const WOKEN: usize = 4;
/// Somebody changes the queue.
const BUSY: usize = 8;
/// The bits that are no part of an address.
const MARKS: usize = 15;

/// How often a waiter, and a release, looks whether the queue is busy before it yields.
const GENTLE: u32 = 250;
const AGGRESSIVE: u32 = 5000;

/// A thread in the queue, on its own stack.
#[repr(C, align(64))]
struct Waiter<P: Platform> {
    /// The next in order; the last has the first.
    next: P::Ptr<Waiter<P>>,
    /// 1 while it sleeps.
    asleep: P::U32,
}

/// A word with the last of a ring of waiters.
///
/// A waiter reads `READS` times, without a pause, before it joins the queue and sleeps. A
/// release frees the lock and wakes the first of the queue, unless one that was woken before
/// is still on its way. Who comes may be faster; then the woken one joins the queue again, in
/// front, and sleeps at once.
///
/// **Follows:** the exclusive side of `absl::Mutex` of 2023 and later, from the comments on its
/// word, its delays and its queue. Readers, conditions, priorities and deadlock detection are
/// not part of it. Who finds the queue busy for long yields again where Abseil sleeps for
/// 10 us. After a lost race a waiter's reads are counted anew.
///
/// **Size:** one pointer. **Per waiter:** 64 bytes of its stack. **Fairness:** none.
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

/// Returns whether a release has to wake one: waiters are there, and none is on its way.
fn must_wake<P: Platform>(word: *mut Waiter<P>) -> bool {
    word.addr() & (QUEUED | WOKEN) == QUEUED
}

impl<P: Platform, const READS: u32> AbseilMutex<P, READS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::Ptr::ZERO }
    }

    /// Takes it if it is as it was seen, free; takes `marks` away from the word.
    #[inline(always)]
    fn take(&self, seen: *mut Waiter<P>, marks: usize) -> bool {
        let new = seen.map_addr(|word| (word & !marks) | HELD);
        // X1: pairs with X2 and X3.
        self.word
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        loop {
            let patience = Patience::Reads(READS);
            let seen = self.word.spin(Ordering::Relaxed, patience, |word| {
                if has(word, HELD) {
                    Poll::Relax(0)
                } else {
                    Poll::Done
                }
            });
            if has(seen, HELD) {
                return self.sleep();
            }
            if self.take(seen, 0) {
                return;
            }
        }
    }

    /// Sleeps until the lock is acquired.
    fn sleep(&self) {
        let own = Waiter::<P> {
            next: P::Ptr::new(ptr::null_mut()),
            asleep: P::U32::new(0),
        };
        // The mark that this waiter takes away with its next step: it was woken.
        let mut woken = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if !has(seen, HELD) {
                if self.take(seen, woken) {
                    return;
                }
                P::relax();
                continue;
            }
            if has(seen, BUSY) {
                self.await_queue(GENTLE);
                continue;
            }
            if !self.join(&own, seen, woken) {
                P::relax();
                continue;
            }
            // X4: pairs with X5.
            while own.asleep.load(Ordering::Acquire) != 0 {
                P::wait(&own.asleep, 1);
            }
            woken = WOKEN;
        }
    }

    /// Joins the queue, in front if it was in it before, unless the word is another than was
    /// seen; returns whether it did.
    fn join(&self, own: &Waiter<P>, seen: *mut Waiter<P>, woken: usize) -> bool {
        let address = ptr::from_ref(own).cast_mut();
        own.asleep.store(1, Ordering::Relaxed);
        if !has(seen, QUEUED) {
            own.next.store(address, Ordering::Relaxed);
            let marks = (seen.addr() & !woken) | QUEUED;
            let new = address.map_addr(|own| own | marks);
            // X6: pairs with X7 and X8.
            return self
                .word
                .compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        }
        let busy = seen.map_addr(|word| (word & !woken) | BUSY);
        // X7: pairs with X2, X6 and X9.
        let taken = self
            .word
            .compare_exchange(seen, busy, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        // SAFETY: the queue is ours, and who is in it sleeps.
        let last = unsafe { &*last_of(seen) };
        own.next
            .store(last.next.load(Ordering::Relaxed), Ordering::Relaxed);
        last.next.store(address, Ordering::Relaxed);
        let last = if woken == 0 { address } else { last_of(seen) };
        let mut now = busy;
        loop {
            let marks = now.addr() & MARKS & !BUSY;
            let new = last.map_addr(|last| last | marks);
            // X9: pairs with X7 and X8.
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

    #[cold]
    #[inline(never)]
    fn release_slowly(&self) {
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if !must_wake(seen) {
                if self.release(seen) {
                    return;
                }
                P::relax();
            } else if has(seen, BUSY) {
                self.await_queue(AGGRESSIVE);
            } else {
                let busy = seen.map_addr(|word| word | BUSY);
                // X8: pairs with X2, X6 and X9.
                let taken =
                    self.word
                        .compare_exchange(seen, busy, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    return self.wake_first(last_of(seen));
                }
            }
        }
    }

    /// Releases it if it is as it was seen, and nobody need be woken.
    #[inline(always)]
    fn release(&self, seen: *mut Waiter<P>) -> bool {
        // X3: pairs with X1.
        self.word
            .compare_exchange(
                seen,
                seen.map_addr(|word| word & !HELD),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Takes the first out of the queue, which is ours, releases the lock and wakes it.
    fn wake_first(&self, last: *mut Waiter<P>) {
        // SAFETY: who is in the queue sleeps until it is woken.
        let behind = unsafe { &*last };
        let first = behind.next.load(Ordering::Relaxed);
        // SAFETY: as above.
        let waiter = unsafe { &*first };
        let rest = if first == last {
            ptr::without_provenance_mut(WOKEN)
        } else {
            behind
                .next
                .store(waiter.next.load(Ordering::Relaxed), Ordering::Relaxed);
            last.map_addr(|last| last | QUEUED | WOKEN)
        };
        // X2: pairs with X1, X7 and X8. While it is held and the queue is busy, nobody else
        // writes the word.
        self.word.store(rest, Ordering::Release);
        let asleep = &raw const waiter.asleep;
        // X5: pairs with X4. From here on the waiter may be gone.
        waiter.asleep.store(0, Ordering::Release);
        // SAFETY: it lies on the waiter's stack, which is mapped while its thread may run.
        unsafe { P::wake_at(asleep) };
    }
}

impl<P: Platform, const READS: u32> Default for AbseilMutex<P, READS> {
    fn default() -> Self {
        Self {
            word: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: only a compare-and-swap that finds it free takes it.
unsafe impl<P: Platform, const READS: u32> RawLock<P> for AbseilMutex<P, READS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "abseil-mutex",
        summary: "Abseil's Mutex, as described: one woken waiter at a time",
        parks: true,
        bytes_per_waiter: 64,
        paper: "absl::Mutex of Abseil, its exclusive side; comments of 2023",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        let seen = self.word.load(Ordering::Relaxed);
        if has(seen, HELD) || !self.take(seen, 0) {
            self.wait();
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
            self.release_slowly();
        }
    }
}

crate::lock_api_impl::context_free!(AbseilMutex, READS: u32);
