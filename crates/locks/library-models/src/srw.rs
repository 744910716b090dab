//! The slim reader-writer lock of Windows, as it is described.

mod waiter;

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::raw::{Info, RawLock};
use core::ptr;
use waiter::{Waiter, address};

const HELD: usize = 1;
/// Waiters are in the queue, and the rest of the word is the newest of them. Without it the
/// rest counts the readers inside: none if a writer is.
const QUEUED: usize = 2;
/// Somebody links the queue or takes waiters out of it.
const BUSY: usize = 4;
/// Several readers hold it, and the oldest waiter has their count.
const MANY: usize = 8;
/// Each reader adds one.
const READER: usize = waiter::MARKS + 1;
/// The word is full of readers from here on.
const MOST: usize = usize::MAX - (READER - 1);

/// Pauses after the first lost race for the word, and the most that they become; each time
/// up to as many more, by the clock.
const FEWEST: u32 = 64;
const LONGEST: u32 = 8192;

/// A word that is a count of readers, or the newest of a stack of waiters.
///
/// A waiter puts itself on the stack, links those below to their newer ones if nobody else
/// is about to, and pauses `PAUSES` times before it sleeps. A release wakes the oldest if
/// that is a writer, or all if it is a reader, and those try again: who comes while the lock
/// is free may be faster. A reader waits where anybody waits, unless the lock is free.
///
/// **Follows:** `SRWLOCK` of Windows 7 and later: the bits of its word from the symbols of
/// that system, the queue from the comment on queued locks in System Informer (wj32, 2010)
/// and from that of Rust's `rwlock/queue.rs`, which names it as its model; the number of
/// pauses and the growing ones after a lost race from descriptions of `RtlBackoff` and
/// `SRWLockSpinCount`. Microsoft promises only that it is neither fair nor in order.
/// Windows has no downgrade; here the writer becomes a reader, and nobody is woken.
///
/// **Size:** one pointer. **Per waiter:** 64 bytes of its stack. **Fairness:** none.
///
/// At most 2^60 - 1 readers hold it at once (2^28 - 1 where a word has 32 bits), including
/// leaked guards: [`Srw::read`] panics beyond that, and [`Srw::try_read`] returns `false`.
#[repr(transparent)]
pub struct Srw<P: Platform = NativePlatform, const PAUSES: u32 = 1024> {
    word: P::Ptr<Waiter<P>>,
}

impl<P: Platform, const PAUSES: u32> Srw<P, PAUSES> {
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
        if !self.try_read() {
            self.wait(false);
        }
    }

    /// Acquires for reading if it is free, or if readers hold it, nobody waits and there is
    /// room; returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        self.try_enter(false)
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen.addr() & QUEUED == 0 {
            let left = seen.addr() - READER;
            let left = if left == HELD { 0 } else { left };
            // W4: pairs with W1.
            match self.word.compare_exchange(
                seen,
                ptr::without_provenance_mut(left),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        self.leave_queued();
    }

    /// Makes the writer a reader, without any other holder in between.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        // W5: pairs with W1. Where some wait, a reader alone is held as a writer is.
        let _ = self.word.compare_exchange(
            ptr::without_provenance_mut(HELD),
            ptr::without_provenance_mut(HELD | READER),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    /// Takes it as long as it may be taken; returns whether it has it.
    #[inline(always)]
    fn try_enter(&self, writes: bool) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while let Some(new) = entered(seen, writes) {
            match self.enter(seen, new) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    #[inline(always)]
    fn enter(
        &self,
        seen: *mut Waiter<P>,
        new: *mut Waiter<P>,
    ) -> Result<*mut Waiter<P>, *mut Waiter<P>> {
        // W1: pairs with W2, W3, W4 and W5.
        self.word
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, writes: bool) {
        let own = Waiter::new(writes);
        let mut lost = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if let Some(new) = entered(seen, writes) {
                if self.enter(seen, new).is_ok() {
                    return;
                }
                back_off::<P>(&mut lost);
                continue;
            }
            let queued = seen.addr() & QUEUED != 0;
            assert!(
                writes || queued || seen.addr() < MOST,
                "a reader-writer lock has no room for a reader: guards have been leaked"
            );
            let readers = if queued { 0 } else { seen.addr() / READER };
            let (older, marks) = match (queued, readers) {
                (true, _) => (seen.map_addr(address), seen.addr() & waiter::MARKS | BUSY),
                (false, 0 | 1) => (ptr::null_mut(), HELD | QUEUED),
                (false, _) => (ptr::null_mut(), HELD | QUEUED | MANY),
            };
            own.prepare(older, readers);
            let new = ptr::from_ref(&own).cast_mut().map_addr(|own| own | marks);
            // W6: Release pairs with W6 to W10, which look at the queue; Acquire with W6 and W9.
            match self
                .word
                .compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => {
                    if queued && seen.addr() & BUSY == 0 {
                        self.link_queue(new);
                    }
                    own.sleep(PAUSES);
                }
                Err(_) => back_off::<P>(&mut lost),
            }
        }
    }

    /// Links the queue, which `BUSY` makes ours; wakes waiters if the lock was released.
    fn link_queue(&self, mut seen: *mut Waiter<P>) {
        while seen.addr() & HELD != 0 {
            // SAFETY: it is the queue, and ours.
            unsafe { waiter::link(seen.map_addr(address)) };
            match self.leave_queue(seen) {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
        self.wake(seen);
    }

    /// Leaves a lock that has waiters, as a writer or a reader.
    #[cold]
    #[inline(never)]
    fn leave_queued(&self) {
        // W7: pairs with W6.
        let mut seen = self.word.load(Ordering::Acquire);
        if seen.addr() & MANY != 0 {
            // SAFETY: nobody takes waiters out while readers hold it.
            let oldest = unsafe { &*waiter::oldest(seen.map_addr(address)) };
            // W2: pairs with itself: the last to leave has seen the others leave.
            if oldest.readers.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
        }
        loop {
            let new = seen.map_addr(|word| word & !(HELD | MANY) | BUSY);
            // W8: Acquire pairs with W6 and W9.
            // W3: Release pairs with W1.
            match self
                .word
                .compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                // Otherwise who is busy with the queue finds the lock released.
                Ok(_) if seen.addr() & BUSY == 0 => return self.wake(new),
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Wakes the oldest if it writes, or all, unless somebody holds the lock, whose release
    /// does it. `BUSY` makes the queue ours, and is taken away.
    fn wake(&self, mut seen: *mut Waiter<P>) {
        loop {
            if seen.addr() & HELD != 0 {
                match self.leave_queue(seen) {
                    Ok(()) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            let newest = seen.map_addr(address);
            // SAFETY: it is the queue, and ours.
            let oldest = unsafe { waiter::link(newest) };
            // SAFETY: it waits until it is woken.
            if newest != oldest && unsafe { &*oldest }.writes() {
                // SAFETY: as above.
                unsafe { waiter::take_out(newest, oldest) };
                while let Err(now) = self.leave_queue(seen) {
                    seen = now;
                }
                // SAFETY: it was taken out.
                return unsafe { waiter::wake(oldest, oldest) };
            }
            // W10: as a failure of W9. A success finds what was read with Acquire before, and leaves
            // no waiter for others to look at.
            match self.word.compare_exchange(
                seen,
                ptr::null_mut(),
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                // SAFETY: the queue was taken off the word.
                Ok(_) => return unsafe { waiter::wake(oldest, newest) },
                Err(now) => seen = now,
            }
        }
    }

    /// Gives the queue up to others; returns what it found if the word is another.
    fn leave_queue(&self, seen: *mut Waiter<P>) -> Result<(), *mut Waiter<P>> {
        let new = seen.map_addr(|word| word & !BUSY);
        // W9: Release pairs with W6 and W8; Acquire, of a failure, with W6.
        self.word
            .compare_exchange(seen, new, Ordering::Release, Ordering::Acquire)
            .map(drop)
    }
}

/// Returns what the word becomes when a writer or a reader enters, if it may.
#[inline(always)]
fn entered<P: Platform>(seen: *mut Waiter<P>, writes: bool) -> Option<*mut Waiter<P>> {
    let word = seen.addr();
    let counts = !writes && word & QUEUED == 0;
    let beside_readers = counts && (READER..MOST).contains(&word);
    let may = word & HELD == 0 || beside_readers;
    let reader = if counts { READER } else { 0 };
    may.then(|| seen.map_addr(|word| (word | HELD) + reader))
}

/// Pauses after a lost race, longer each time.
fn back_off<P: Platform>(lost: &mut u32) {
    *lost = match *lost {
        0 => FEWEST,
        before => LONGEST.min(before * 2),
    };
    P::relax_for(*lost + P::now() as u32 % *lost);
}

impl<P: Platform, const PAUSES: u32> Default for Srw<P, PAUSES> {
    fn default() -> Self {
        Self {
            word: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: a compare-and-swap takes it when it is free, or for a reader beside readers.
unsafe impl<P: Platform, const PAUSES: u32> RawLock<P> for Srw<P, PAUSES> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "srw",
        summary: "Windows' SRW lock, as described: the oldest is woken first",
        parks: true,
        readers_share: true,
        bytes_per_waiter: 64,
        paper: "SRWLOCK of Windows 7 and later; System Informer's queued lock",
        promises: "writer tries, readers try behind, reader asks, readers at the limit, loses \
            races",
        not_promised: "a place in the end",
        ..Info::BASE
    };

    /// Returns a lock that admits one more reader.
    fn about_to_wrap() -> Self {
        Self {
            word: P::Ptr::new(ptr::without_provenance_mut(MOST - READER + HELD)),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if self
            .enter(ptr::null_mut(), ptr::without_provenance_mut(HELD))
            .is_err()
        {
            self.wait(true);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.try_enter(true)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed).addr() & HELD != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // W3': pairs with W1.
        let freed = self.word.compare_exchange(
            ptr::without_provenance_mut(HELD),
            ptr::null_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if freed.is_err() {
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

crate::lock_api_impl::shared!(Srw, PAUSES: u32);
