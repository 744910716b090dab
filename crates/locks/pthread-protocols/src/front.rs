//! A word in front of a queue: whoever runs may pass those that wait.
//!
//! A lock that is handed over to whoever came first is handed to threads that
//! sleep, or whose caches are cold, while the thread that has just released it
//! runs and wants it again. So a word is put in front of the lock, and it is the
//! word that is held. A thread that finds it free takes it; one that does not
//! acquires the lock behind, as the *head* of its queue, and waits for the word
//! there. The order of the lock is the order in which threads become the head.
//! (D. Dice and A. Kogan, "Fissile Locks", 2020, have the shape.)
//!
//! The head counts who passes it. After [`PASSES`] acquisitions, or when its own
//! patience is over, those that come go to the queue, and the head is next. A
//! head that has waited for long sleeps, and may be passed again until it runs.
//!
//! It must never let a thread pass once those are too many, and never touch
//! the words after the release: their memory may be gone.

use locklab_locks::Platform;
use locklab_locks::platform::{Atomic, Ordering, Patience, Poll};

// Of `word`.
const FREE: u32 = 0;
const HELD: u32 = 1;

// This is a value of `passed`: otherwise so many have passed the head, and one.
const NO_HEAD: u32 = 0;
/// Nobody passes the head.
const CLOSED: u32 = u32::MAX;

/// Counts how many acquisitions in a row may pass the head. With the shortest critical
/// sections they take as long as a wake-up, some 50 µs.
pub const PASSES: u32 = 1024;

/// Sets how often the head looks at the word before nobody may pass it.
const READS: u32 = 128;

/// The most pauses between two of these looks: so late the head may notice that
/// the word is free.
const PAUSES: u32 = 16;

/// The pauses before the first of them that counts: long enough for a thread that
/// does nothing else to get the line back and acquire some dozen times.
const FIRST_PAUSES: u32 = 8;

/// The number of passes during a pause from which on a thread does nothing else. The
/// head lets it go on for [`BATCH`] acquisitions, because each change of the holder
/// takes as long as dozens of them.
const AT_ONCE: u32 = 2;

/// See [`AT_ONCE`].
const BATCH: u32 = 256;

/// Sets how often it looks then, before it lets others pass and sleeps.
const CLOSED_READS: u32 = 1024;

/// The word that is held, and who passes the head of the queue behind it. The
/// head waits on the platform `P`.
pub struct Front<'a, P: Platform> {
    word: &'a P::U32,
    passed: &'a P::U32,
}

impl<'a, P: Platform> Front<'a, P> {
    /// Returns the front of two words that are zero.
    #[inline(always)]
    pub fn new(word: &'a P::U32, passed: &'a P::U32) -> Self {
        Self { word, passed }
    }

    #[inline(always)]
    fn take(&self) -> bool {
        // K1: pairs with K2.
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Enters if nobody is inside and the head of the queue, if there is one,
    /// may be passed; returns whether it did.
    #[inline(always)]
    pub fn try_enter(&self) -> bool {
        if self.passed.load(Ordering::Relaxed) == NO_HEAD {
            self.take()
        } else {
            self.pass()
        }
    }

    #[cold]
    #[inline(never)]
    fn pass(&self) -> bool {
        // Who reads this before the head closes the lock, and takes the word
        // after it, passes still: one for each thread that is here.
        if self.passed.load(Ordering::Relaxed) > P::preferences(PASSES) || !self.take() {
            return false;
        }
        // The head is not inside, so nobody but it writes this beside us. What it
        // writes then it writes again, as long as it waits.
        let passed = self.passed.load(Ordering::Relaxed);
        if passed != NO_HEAD && passed != CLOSED {
            self.passed.store(passed + 1, Ordering::Relaxed);
        }
        true
    }

    /// Enters as the head of the queue, which the caller is until it has
    /// returned; returns how many have passed it.
    pub fn enter_as_head(&self) -> u32 {
        let mut counted = NO_HEAD + 1;
        self.passed.store(counted, Ordering::Relaxed);
        while !self.wait_open() {
            counted = counted.max(self.count());
            if self.wait_closed() {
                break;
            }
            if counted <= P::preferences(PASSES) {
                self.passed.store(counted, Ordering::Relaxed);
            }
            self.word.spin_until(Ordering::Relaxed, |word| word == FREE);
            if self.take() {
                break;
            }
        }
        // Ours alone while the word is ours.
        counted = counted.max(self.count());
        self.passed.store(NO_HEAD, Ordering::Relaxed);
        counted - 1
    }

    /// Returns the count, if it is one.
    fn count(&self) -> u32 {
        match self.passed.load(Ordering::Relaxed) {
            CLOSED => NO_HEAD,
            passed => passed,
        }
    }

    /// Waits where others may pass, for as long as patience lasts.
    fn wait_open(&self) -> bool {
        let (mut pauses, mut seen, mut looked) = (FIRST_PAUSES, self.count(), false);
        self.wait_for(READS, |word| {
            let passed = self.count();
            let more = passed.saturating_sub(seen);
            seen = passed;
            let at_once = more >= AT_ONCE * pauses && passed < BATCH;
            // The first look tells nothing of who passes.
            if word == FREE && looked && !at_once {
                return Poll::Done;
            }
            if looked {
                pauses = (2 * pauses).min(PAUSES);
            }
            looked = true;
            Poll::Relax(pauses)
        })
    }

    /// Waits where nobody may pass.
    fn wait_closed(&self) -> bool {
        self.wait_for(CLOSED_READS, |word| {
            // A thread that has passed meanwhile may have written its count.
            if self.passed.load(Ordering::Relaxed) != CLOSED {
                self.passed.store(CLOSED, Ordering::Relaxed);
            }
            match word {
                FREE => Poll::Done,
                _ => Poll::Relax(1),
            }
        })
    }

    /// Takes the word when `poll` says so, unless so many looks are in vain.
    fn wait_for(&self, reads: u32, mut poll: impl FnMut(u32) -> Poll) -> bool {
        let mut left = reads;
        while left > 0 {
            let mut done = false;
            self.word
                .spin(Ordering::Relaxed, Patience::Reads(left), |word| {
                    left = left.saturating_sub(1);
                    let next = poll(word);
                    done = next == Poll::Done;
                    next
                });
            if !done {
                return false;
            }
            if self.take() {
                return true;
            }
        }
        false
    }

    /// Leaves as the holder.
    #[inline(always)]
    pub fn leave(&self) {
        // K2: pairs with K1.
        self.word.store(FREE, Ordering::Release);
    }

    /// Forgets the head of the queue, in a newly forked process, where there is
    /// no queue.
    pub fn forget_head(&self) {
        self.passed.store(NO_HEAD, Ordering::Relaxed);
    }

    /// Returns whether a thread is inside.
    #[must_use]
    pub fn is_held(&self) -> bool {
        // K1': as K1: who finds it free is the last to use it.
        self.word.load(Ordering::Acquire) != FREE
    }
}
