//! The waiters of a condition variable: a list, first come first woken, each
//! sleeping on a word of its own.
//!
//! The list is guarded by the catalogue's futex. A waiter is memory of the
//! waiting thread, and once it has been woken it accesses the condition
//! variable no more, so that both may end as soon as they may. A thread that
//! wakes must never access a waiter after it has said that it is woken.

use core::ptr;
use locklab_locks::platform::{Atomic, Ordering};
use locklab_locks::{Futex, Platform, RawLock};

/// Describes what wakes a waiter by an address alone.
///
/// # Safety
/// [`WakeAt::wake_at`] does not access the word, and does not unwind.
pub unsafe trait WakeAt<P: Platform> {
    /// Ends the sleep of the one thread that sleeps on the word that is, or
    /// was, at this address.
    #[track_caller]
    fn wake_at(word: *const P::U32);
}

/// The waiters of one condition variable. If zero, there are none.
#[repr(C)]
pub struct Waiters<P: Platform> {
    /// Held by whoever changes the list of waiters.
    lock: Futex<P>,
    /// A word of whoever has the list, where there would be a gap.
    pub tag: P::U32,
    first: P::Ptr<Waiter<P>>,
    last: P::Ptr<Waiter<P>>,
}

/// A thread that waits on a condition variable.
pub struct Waiter<P: Platform> {
    /// 1 once it has been woken and is in no list.
    woken: P::U32,
    next: P::Ptr<Waiter<P>>,
    previous: P::Ptr<Waiter<P>>,
}

impl<P: Platform> Default for Waiter<P> {
    fn default() -> Self {
        Self {
            woken: P::U32::new(0),
            next: P::Ptr::new(ptr::null_mut()),
            previous: P::Ptr::new(ptr::null_mut()),
        }
    }
}

impl<P: Platform> Waiter<P> {
    /// Waits until it is woken; `sleep` returns once the word may no longer be
    /// 0, and whether that is because the time is over. Returns `false` if it
    /// is, and the waiter is to be taken off the list ([`Waiters::leave`]).
    pub fn wait(&self, mut sleep: impl FnMut(&P::U32) -> bool) -> bool {
        // B2: pairs with B1.
        while self.woken.load(Ordering::Acquire) == 0 {
            if sleep(&self.woken) {
                return false;
            }
        }
        true
    }
}

impl<P: Platform> Waiters<P> {
    /// Returns an empty list, with the word that whoever has the list keeps there.
    pub fn new(tag: u32) -> Self {
        Self {
            lock: Futex::default(),
            tag: P::U32::new(tag),
            first: P::Ptr::new(ptr::null_mut()),
            last: P::Ptr::new(ptr::null_mut()),
        }
    }

    fn locked<T>(&self, f: impl FnOnce() -> T) -> T {
        // SAFETY: its context is nothing.
        unsafe { self.lock.lock(&()) };
        let result = f();
        // SAFETY: locked above.
        unsafe { self.lock.unlock(&()) };
        result
    }

    /// Appends a waiter.
    ///
    /// # Safety
    /// The waiter is in no list, and stays in place until it is woken or has
    /// left.
    pub unsafe fn append(&self, waiter: &Waiter<P>) {
        let this = ptr::from_ref(waiter).cast_mut();
        self.locked(|| {
            let last = self.last.load(Ordering::Relaxed);
            waiter.previous.store(last, Ordering::Relaxed);
            // SAFETY: what is in the list is alive, here and below.
            match unsafe { last.as_ref() } {
                Some(last) => last.next.store(this, Ordering::Relaxed),
                None => self.first.store(this, Ordering::Relaxed),
            }
            self.last.store(this, Ordering::Relaxed);
        });
    }

    /// Takes a waiter off the list; `false` if it has been woken.
    ///
    /// # Safety
    /// It was appended to this list.
    pub unsafe fn leave(&self, waiter: &Waiter<P>) -> bool {
        self.locked(|| {
            let listed = waiter.woken.load(Ordering::Relaxed) == 0;
            if listed {
                self.remove(waiter);
            }
            listed
        })
    }

    /// Removes a waiter that is in the list; requires the lock.
    fn remove(&self, waiter: &Waiter<P>) {
        let next = waiter.next.load(Ordering::Relaxed);
        let previous = waiter.previous.load(Ordering::Relaxed);
        // SAFETY: as in `append`.
        unsafe {
            match previous.as_ref() {
                Some(previous) => previous.next.store(next, Ordering::Relaxed),
                None => self.first.store(next, Ordering::Relaxed),
            }
            match next.as_ref() {
                Some(next) => next.previous.store(previous, Ordering::Relaxed),
                None => self.last.store(previous, Ordering::Relaxed),
            }
        }
    }

    /// Returns whether there is nobody to wake. A waiter appends itself before it
    /// releases the mutex, so a thread that has acquired that since sees it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed).is_null()
    }

    /// Wakes the first waiter, or all.
    pub fn wake<W: WakeAt<P>>(&self, all: bool) {
        self.locked(|| {
            loop {
                let first = self.first.load(Ordering::Relaxed);
                // SAFETY: as in `append`.
                let Some(waiter) = (unsafe { first.as_ref() }) else {
                    break;
                };
                self.remove(waiter);
                let woken = &raw const waiter.woken;
                // From here on the waiter may no longer exist.
                // B1: pairs with B2.
                waiter.woken.store(1, Ordering::Release);
                W::wake_at(woken);
                if !all {
                    break;
                }
            }
        });
    }

    /// Waits until no thread that has woken another still has the list.
    pub fn settle(&self) {
        self.locked(|| ());
    }

    /// Forgets the waiters and whoever has the list: they are in another
    /// process.
    ///
    /// # Safety
    /// No thread of this process has used the list since the fork, and none
    /// does until this returns.
    pub unsafe fn forget(&self) {
        let lock = (&raw const self.lock).cast_mut();
        // SAFETY: of the caller; memory of atomics can be written.
        unsafe { lock.write(Futex::new()) };
        self.first.store(ptr::null_mut(), Ordering::Relaxed);
        self.last.store(ptr::null_mut(), Ordering::Relaxed);
    }
}
