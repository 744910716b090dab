//! Threads that sleep in order, in a queue found by the address of their lock.
//!
//! The queues of all locks are in the platform's table ([`Platform::sleepers`]), so that a
//! lock needs a bit for "somebody sleeps" and no more: the address-keyed queue of WebKit's
//! WTF::ParkingLot (F. Pizlo, "Locking in WebKit", 2016), which the crate parking_lot and,
//! in another form, Go's semaphores have too.
//!
//! It must know no lock: what a wake-up means, the caller says while the queue is locked.

use crate::platform::{Atomic, Ordering, Platform};
use crate::sleepers::{SleepQueue, Sleeper};
use core::ptr;

/// The longest time from one fair handoff to the next, in units of 1,024 ns: one
/// millisecond. It is drawn evenly, so about half of this on average.
const FAIR: usize = 1_000_000 / 1024;

/// States of the word that protects a queue, as those of [`locklab_locks::Futex`].
const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// Says what becomes of a sleeper that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is woken.
    Wake,
    /// It sleeps on; the next is looked at.
    Skip,
    /// It sleeps on, and so do all behind it.
    Stop,
}

/// Holds what a waker knows of the queue, which is locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Says whether anybody is woken.
    pub(crate) woken: bool,
    /// Says whether others sleep on for the same address.
    pub(crate) more: bool,
    /// Says whether the last handoff that was fair is long ago.
    pub(crate) fair: bool,
}

/// The queue of an address, locked.
struct Locked<'a, P: Platform>(&'a SleepQueue<P>);

impl<'a, P: Platform> Locked<'a, P> {
    /// Locks the queue of `address`: a word in three states, as [`locklab_locks::Futex`]. `None`
    /// if the platform has no place for sleepers.
    fn new(address: usize) -> Option<Self> {
        // SAFETY: this module keeps the queues.
        let queue = unsafe { P::sleepers(address)?.queue() };
        // Z1: pairs with Z3.
        let free = queue
            .lock
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        if free.is_err() {
            // Z2: pairs with Z3.
            while queue.lock.swap(AWAITED, Ordering::Acquire) != FREE {
                P::wait(&queue.lock, AWAITED);
            }
        }
        Some(Self(queue))
    }

    /// Puts a thread at the end, or first.
    fn push(&self, sleeper: &Sleeper<P>, first: bool) {
        let pointer = ptr::from_ref(sleeper).cast_mut();
        let head = self.0.first.load(Ordering::Relaxed);
        if head.is_null() {
            self.0.last.store(pointer, Ordering::Relaxed);
        }
        if first || head.is_null() {
            sleeper.next.store(head, Ordering::Relaxed);
            self.0.first.store(pointer, Ordering::Relaxed);
            return;
        }
        // SAFETY: who is in the queue stays in place until it is taken out.
        let last = unsafe { &*self.0.last.load(Ordering::Relaxed) };
        last.next.store(pointer, Ordering::Relaxed);
        self.0.last.store(pointer, Ordering::Relaxed);
    }

    /// Takes those out who sleep for `address` and are chosen; says whether others sleep
    /// on for it. They are linked one behind the other, in their order.
    fn take(
        &self,
        address: usize,
        mut choose: impl FnMut(u32) -> Choice,
    ) -> (*mut Sleeper<P>, bool) {
        let null: *mut Sleeper<P> = ptr::null_mut();
        let (mut taken, mut last_taken) = (null, null);
        let (mut before, mut more, mut stopped) = (null, false, false);
        let mut at = self.0.first.load(Ordering::Relaxed);
        // SAFETY: as in `push`.
        while let Some(sleeper) = unsafe { at.as_ref() } {
            let next = sleeper.next.load(Ordering::Relaxed);
            let here = sleeper.address.load(Ordering::Relaxed) == address;
            let choice = match here && !stopped {
                true => choose(sleeper.wants.load(Ordering::Relaxed)),
                false => Choice::Skip,
            };
            stopped |= choice == Choice::Stop;
            if choice == Choice::Wake {
                // SAFETY: as in `push`, here and below.
                match unsafe { before.as_ref() } {
                    Some(before) => before.next.store(next, Ordering::Relaxed),
                    None => self.0.first.store(next, Ordering::Relaxed),
                }
                if next.is_null() {
                    self.0.last.store(before, Ordering::Relaxed);
                }
                sleeper.next.store(null, Ordering::Relaxed);
                // SAFETY: as above.
                match unsafe { last_taken.as_ref() } {
                    Some(last) => last.next.store(at, Ordering::Relaxed),
                    None => taken = at,
                }
                last_taken = at;
            } else {
                more |= here;
                before = at;
                if stopped && more {
                    break;
                }
            }
            at = next;
        }
        (taken, more)
    }

    /// Returns whether this handoff is to be fair, and if so draws when the next one is.
    fn is_fair(&self) -> bool {
        let now = (P::now() >> 10) as usize;
        let fair_at = self.0.fair_at.load(Ordering::Relaxed);
        if (now.wrapping_sub(fair_at) as isize) < 0 {
            return false;
        }
        // A congruence of 32 bits, of which the high half is used (D. E. Knuth, "The Art
        // of Computer Programming", volume 2, section 3.3.4).
        let drawn = self.0.drawn.load(Ordering::Relaxed);
        let drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0.drawn.store(drawn, Ordering::Relaxed);
        let until = 1 + (drawn >> 16) as usize % FAIR;
        self.0
            .fair_at
            .store(now.wrapping_add(until), Ordering::Relaxed);
        true
    }
}

impl<P: Platform> Drop for Locked<'_, P> {
    fn drop(&mut self) {
        // Z3: pairs with Z1 and Z2.
        if self.0.lock.swap(FREE, Ordering::Release) == AWAITED {
            P::wake(&self.0.lock);
        }
    }
}

/// Sleeps for `address`, at the end of the queue or before all others, if `still` says
/// that this is right when the queue is locked. Returns what the waker has told, or `None`
/// if the caller has not slept.
#[cold]
#[inline(never)]
pub(crate) fn sleep<P: Platform>(
    address: usize,
    wants: u32,
    first: bool,
    still: impl FnOnce() -> bool,
) -> Option<u32> {
    let Some(locked) = Locked::<P>::new(address) else {
        P::relax();
        return None;
    };
    if !still() {
        return None;
    }
    let sleeper = Sleeper::<P>::new(address, wants);
    locked.push(&sleeper, first);
    drop(locked);
    // Z4: pairs with Z5.
    while sleeper.asleep.load(Ordering::Acquire) != 0 {
        P::wait(&sleeper.asleep, 1);
    }
    Some(sleeper.told.load(Ordering::Relaxed))
}

/// Wakes those who sleep for `address` and whom `choose` chooses by what they want.
/// `tell` is called once, while the queue is locked, and returns the answer they get.
#[cold]
#[inline(never)]
pub(crate) fn wake<P: Platform>(
    address: usize,
    choose: impl FnMut(u32) -> Choice,
    tell: impl FnOnce(Found) -> u32,
) {
    let Some(locked) = Locked::<P>::new(address) else {
        tell(Found {
            woken: false,
            more: false,
            fair: false,
        });
        return;
    };
    let (mut at, more) = locked.take(address, choose);
    let woken = !at.is_null();
    let told = tell(Found {
        woken,
        more,
        fair: woken && locked.is_fair(),
    });
    drop(locked);
    // SAFETY: a sleeper that was taken out stays in place until `asleep` is cleared.
    while let Some(sleeper) = unsafe { at.as_ref() } {
        at = sleeper.next.load(Ordering::Relaxed);
        sleeper.told.store(told, Ordering::Relaxed);
        let asleep = &raw const sleeper.asleep;
        // Z5: pairs with Z4. From here on the sleeper may be gone.
        sleeper.asleep.store(0, Ordering::Release);
        // SAFETY: it lies on the sleeper's stack, which is mapped while its thread may run.
        unsafe { P::wake_at(asleep) };
    }
}

/// Returns a choice of the first only.
pub(crate) fn first_only() -> impl FnMut(u32) -> Choice {
    let mut chosen = false;
    move |_| match core::mem::replace(&mut chosen, true) {
        false => Choice::Wake,
        true => Choice::Stop,
    }
}
