//! The reader-writer lock of Rust's standard library on Linux, as it is described.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Patience, Platform, Poll};
use crate::raw::{Info, RawLock};

/// Each reader adds one, up to [`MOST`]; [`WRITER`] in these bits is a writer.
const READER: u32 = 1;
const COUNT: u32 = (1 << 30) - 1;
const WRITER: u32 = COUNT;
const MOST: u32 = COUNT - 1;
/// Readers sleep on the state.
const READERS_WAIT: u32 = 1 << 30;
/// Writers sleep on the other word.
const WRITERS_WAIT: u32 = 1 << 31;
/// Number of reads of a waiter before it sleeps, with a pause after each but the last.
const READS: u32 = 101;

/// A state of a count and two bits for who sleeps, and a word on which writers sleep.
/// Readers that come while a writer waits wait too, so that the lock prefers writers, but
/// for readers that a release has chosen. Waiters spin while nobody sleeps.
///
/// **Follows:** `std::sync::RwLock` of Rust 1.62 and later on Linux, from M. Bos, "Rust
/// Atomics and Locks", O'Reilly 2023, chapter 9, and the announcement of that version. The
/// poison flag is not part of it.
///
/// **Size:** 8 bytes. **Per waiter:** nothing. **Fairness:** none; writers go first.
///
/// # Panics
/// If 2^30 - 2 readers hold it.
#[repr(C)]
pub struct StdRw<P: Platform = NativePlatform> {
    state: P::U32,
    /// Changes with each wake-up of a writer.
    writers: P::U32,
}

/// Whether a reader may enter.
fn is_readable(state: u32) -> bool {
    state & COUNT < MOST && state & (READERS_WAIT | WRITERS_WAIT) == 0
}

impl<P: Platform> StdRw<P> {
    /// A free lock.
    pub const fn new() -> Self {
        Self {
            state: P::U32::ZERO,
            writers: P::U32::ZERO,
        }
    }

    #[inline(always)]
    fn change(&self, seen: u32, new: u32) -> Result<u32, u32> {
        // V1: pairs with V3, V4 and V5.
        self.state
            .compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Acquires for reading.
    #[inline(always)]
    pub fn read(&self) {
        if !self.read_if(self.state.load(Ordering::Relaxed)) {
            self.wait_to_read();
        }
    }

    #[inline(always)]
    fn read_if(&self, seen: u32) -> bool {
        is_readable(seen) && self.change(seen, seen + READER).is_ok()
    }

    /// Acquires for reading if no writer holds it and nobody waits; returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        let mut seen = self.state.load(Ordering::Relaxed);
        while is_readable(seen) {
            match self.change(seen, seen + READER) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        // V3: pairs with V1.
        let left = self.state.fetch_sub(READER, Ordering::Release) - READER;
        // Readers wait only behind a writer.
        if left & COUNT == 0 && left & WRITERS_WAIT != 0 {
            self.wake(left);
        }
    }

    /// Makes the writer a reader, without any other holder in between; readers that wait
    /// enter as well.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        // V5: pairs with V1.
        let state = self.state.fetch_sub(WRITER - READER, Ordering::Release);
        if state & READERS_WAIT != 0 {
            self.let_readers_in();
        }
    }

    #[cold]
    #[inline(never)]
    fn let_readers_in(&self) {
        self.state.fetch_sub(READERS_WAIT, Ordering::Relaxed);
        P::wake_all(&self.state);
    }

    /// Returns the state once `done` holds, or after all reads.
    fn watch(&self, done: impl Fn(u32) -> bool) -> u32 {
        let patience = Patience::Reads(READS);
        self.state.spin(Ordering::Relaxed, patience, |state| {
            if done(state) {
                Poll::Done
            } else {
                Poll::Relax(1)
            }
        })
    }

    /// Spins until no writer holds it, or somebody waits.
    fn spin_to_read(&self) -> u32 {
        self.watch(|state| state & COUNT != WRITER || state & (READERS_WAIT | WRITERS_WAIT) != 0)
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self) {
        let mut seen = self.spin_to_read();
        let mut slept = false;
        loop {
            // After a downgrade the writer that waits is not next.
            let readers = seen & COUNT;
            let downgraded = slept
                && (1..MOST).contains(&readers)
                && seen & (READERS_WAIT | WRITERS_WAIT) == WRITERS_WAIT;
            if is_readable(seen) || downgraded {
                match self.change(seen, seen + READER) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            assert!(
                seen & COUNT != MOST,
                "a reader-writer lock is held by 2^30 - 2 readers: guards have been leaked"
            );
            if seen & READERS_WAIT == 0
                && let Err(now) = self.mark(seen, READERS_WAIT)
            {
                seen = now;
                continue;
            }
            P::wait(&self.state, seen | READERS_WAIT);
            slept = true;
            seen = self.spin_to_read();
        }
    }

    /// Says that some wait.
    fn mark(&self, seen: u32, wait: u32) -> Result<u32, u32> {
        // Nothing is published by it.
        self.state
            .compare_exchange(seen, seen | wait, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Spins until it is free, or a writer waits.
    fn spin_to_write(&self) -> u32 {
        self.watch(|state| state & COUNT == 0 || state & WRITERS_WAIT != 0)
    }

    #[cold]
    #[inline(never)]
    fn wait_to_write(&self) {
        let mut seen = self.spin_to_write();
        // Who has slept does not know whether others sleep.
        let mut others = 0;
        loop {
            if seen & COUNT == 0 {
                match self.change(seen, seen | WRITER | others) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            if seen & WRITERS_WAIT == 0
                && let Err(now) = self.mark(seen, WRITERS_WAIT)
            {
                seen = now;
                continue;
            }
            others = WRITERS_WAIT;
            // V2: pairs with V6: who finds the word as it was before that wake-up finds
            // the state as it was, too, or does not sleep.
            let writers = self.writers.load(Ordering::Acquire);
            seen = self.state.load(Ordering::Relaxed);
            if seen & COUNT == 0 || seen & WRITERS_WAIT == 0 {
                continue;
            }
            P::wait(&self.writers, writers);
            seen = self.spin_to_write();
        }
    }

    /// Wakes a writer, or else all readers, of a lock that is free.
    #[cold]
    #[inline(never)]
    fn wake(&self, mut state: u32) {
        // Nothing is published by these: the release was before.
        let relaxed = Ordering::Relaxed;
        if state == WRITERS_WAIT {
            match self.state.compare_exchange(state, 0, relaxed, relaxed) {
                Ok(_) => {
                    self.wake_writer();
                    return;
                }
                // A reader may have come to wait.
                Err(now) => state = now,
            }
        }
        if state == READERS_WAIT | WRITERS_WAIT {
            let left = self
                .state
                .compare_exchange(state, READERS_WAIT, relaxed, relaxed);
            // Others have it, and will wake in their turn.
            if left.is_err() || self.wake_writer() {
                return;
            }
            // No writer slept; so the readers must not.
            state = READERS_WAIT;
        }
        if state == READERS_WAIT
            && self
                .state
                .compare_exchange(state, 0, relaxed, relaxed)
                .is_ok()
        {
            P::wake_all(&self.state);
        }
    }

    fn wake_writer(&self) -> bool {
        // V6: pairs with V2.
        self.writers.fetch_add(1, Ordering::Release);
        P::wake_if_any(&self.writers)
    }
}

impl<P: Platform> Default for StdRw<P> {
    fn default() -> Self {
        Self {
            state: P::U32::new(0),
            writers: P::U32::new(0),
        }
    }
}

// SAFETY: a writer enters by a compare-and-swap that finds no holder, a reader by one that
// finds no writer.
unsafe impl<P: Platform> RawLock<P> for StdRw<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "std-rwlock",
        summary: "Rust's RwLock, as described: writers go first",
        parks: true,
        readers_share: true,
        shared_memory: true,
        touches_after_release: true,
        paper: "std::sync::RwLock of Rust 1.62 on Linux; Bos 2023",
        promises: "writer tries, reader asks, loses races",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if self.change(0, WRITER).is_err() {
            self.wait_to_write();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        let mut seen = self.state.load(Ordering::Relaxed);
        while seen & COUNT == 0 {
            match self.change(seen, seen | WRITER) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.state.load(Ordering::Relaxed) & COUNT != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // V4: pairs with V1.
        let left = self.state.fetch_sub(WRITER, Ordering::Release) - WRITER;
        if left != 0 {
            self.wake(left);
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

crate::lock_api_impl::shared!(StdRw);
