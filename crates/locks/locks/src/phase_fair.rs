//! The phase-fair reader-writer lock: readers and writers alternate.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};

// The low byte of `entered`, which only the writer whose turn it is changes.
/// A writer holds the lock, or waits for the readers before it.
const WRITER: u32 = 2;
/// The bit that distinguishes consecutive writers; kept until the next one.
const PHASE: u32 = 1;
const LOW_BYTE: u32 = 0xff;

/// One reader in `entered` and `left`.
const READER: u32 = 1 << 8;
/// Each 4,096th reader checks whether there is room.
const SAMPLE: u32 = 0xfff * READER;
/// Half of the readers that can be counted.
const TOO_MANY: u32 = 1 << 31;

/// A phase-fair reader-writer lock with tickets (PF-T): two counts of readers,
/// and a ticket lock for writers.
///
/// ```
/// use locklab_locks::rw::PhaseFairRwLock;
///
/// static COUNT: PhaseFairRwLock<u32> = PhaseFairRwLock::new(0);
/// *COUNT.write() += 1;
/// assert_eq!(*COUNT.read(), 1);
/// ```
///
/// # Differences from `std::sync::RwLock`
///
/// [`PhaseFairRwLock`](crate::rw::PhaseFairRwLock) lists them.
///
/// # Properties
///
/// **Paper:** B. B. Brandenburg and J. H. Anderson, "Spin-Based Reader-Writer
/// Synchronization for Multiprocessor Real-Time Systems", Real-Time Systems
/// 46(1), 2010, section 4.2.
///
/// A writer whose turn it is ends the phase of readers: it waits for
/// those that have entered, and later arrivals wait for it, and for it alone.
/// In the paper the last bit of the ticket distinguishes one writer from the
/// next; here that bit stays in the word, so that a failed `try_lock`, whose
/// ticket no reader saw, does not skip a phase.
///
/// **Size:** 16 bytes. **Per waiter:** nothing. **Fairness:** a reader waits
/// for one writer at most, whatever their number; a writer for the writers
/// before it (first come, first served) and one phase of readers before each.
/// **Take it** where the wait of a reader must be bounded, and with few CPUs:
/// every reader writes the lock's line twice, every waiter spins on it.
/// [`crate::RwQueued`] has a queue for its waiters instead, and
/// [`Bravo`](crate::rw::Bravo) around this lock spares readers the writes.
/// The release of a writer lets readers in before it calls the next writer,
/// and so touches the lock after a reader may hold it.
///
/// [`RawLock`] is its exclusive mode. With 2^23 readers inside (leaked guards)
/// the program ends: twice that number could not be distinguished from none.
#[repr(C)]
pub struct PhaseFair<P: Platform = NativePlatform> {
    /// Number of readers that have arrived, above the low byte.
    entered: P::U32,
    /// Number of readers that have left, above a low byte of zeros.
    left: P::U32,
    /// Number of tickets drawn by writers.
    drawn: P::U32,
    /// The ticket whose turn it is.
    served: P::U32,
}

/// Aborts: a reader that is counted must be admitted, so this must not unwind.
#[cold]
#[cfg(feature = "std")]
fn too_many() -> ! {
    std::eprintln!("locklab: 2^23 readers hold a phase-fair lock: guards have been leaked");
    std::process::abort()
}

/// Does the same by a panic, which without `std` is the end.
#[cold]
#[cfg(not(feature = "std"))]
fn too_many() -> ! {
    panic!("2^23 readers hold a phase-fair lock: guards have been leaked");
}

impl<P: Platform> PhaseFair<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            entered: P::U32::ZERO,
            left: P::U32::ZERO,
            drawn: P::U32::ZERO,
            served: P::U32::ZERO,
        }
    }

    /// Acquires for reading: other readers may hold it too.
    ///
    /// Ends the program if 2^23 readers hold the lock.
    #[inline(always)]
    pub fn read(&self) {
        // F1: pairs with F7.
        let word = self.entered.fetch_add(READER, Ordering::Acquire);
        if word & WRITER != 0 || word & SAMPLE == SAMPLE {
            self.wait_to_read(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self, word: u32) {
        if word & SAMPLE == SAMPLE {
            self.check_room();
        }
        if word & WRITER != 0 {
            // The next writer has another phase, and waits for us.
            // F2: pairs with F7.
            self.entered.spin_until(Ordering::Acquire, |now| {
                (now ^ word) & (WRITER | PHASE) != 0
            });
        }
    }

    /// Acquires for reading if no writer holds the lock or is next; returns
    /// whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        let mut word = self.entered.load(Ordering::Relaxed);
        // A reader that has counted itself cannot take that back: a writer
        // would take its leaving for that of another. So this is no
        // `fetch_add`, and fails to enter only if a writer has come.
        while word & WRITER == 0 {
            // F1': pairs with F7.
            match self.entered.compare_exchange(
                word,
                word.wrapping_add(READER),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if word & SAMPLE == SAMPLE {
                        self.check_room();
                    }
                    return true;
                }
                Err(now) => word = now,
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
        // F3: pairs with F5, F5', F8 and F9: the reader has read before a writer
        // writes.
        self.left.fetch_add(READER, Ordering::Release);
    }

    /// Makes the writer a reader, without any other holder in between; readers
    /// that wait enter as well.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        // The next writer counts us.
        let word = self.entered.fetch_add(READER, Ordering::Relaxed);
        if word & SAMPLE == SAMPLE {
            self.check_room();
        }
        // SAFETY: of the caller.
        unsafe { RawLock::unlock(self, &()) }
    }

    #[cold]
    #[inline(never)]
    fn check_room(&self) {
        // F8: pairs with F3: `entered` has counted all that have left.
        let left = self.left.load(Ordering::Acquire);
        let inside = self.entered.load(Ordering::Relaxed).wrapping_sub(left);
        // The difference is right unless this CPU stood still in between while
        // millions left. Then the next sample will be.
        let stood_still = self.left.load(Ordering::Relaxed).wrapping_sub(left) > TOO_MANY >> 3;
        if inside >= TOO_MANY && !stood_still {
            too_many();
        }
    }

    /// Returns the value that a writer adds to `word`: itself, and the other phase.
    #[inline(always)]
    fn announcement(word: u32) -> u32 {
        if word & PHASE == 0 {
            WRITER + PHASE
        } else {
            WRITER - PHASE
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_writers(&self, ticket: u32) {
        // F4': pairs with F6.
        self.served
            .spin_until(Ordering::Acquire, |served| served == ticket);
    }

    #[cold]
    #[inline(never)]
    fn wait_for_readers(&self, entered: u32) {
        // F5': pairs with F3.
        self.left
            .spin_until(Ordering::Acquire, |left| left == entered);
    }
}

impl<P: Platform> Default for PhaseFair<P> {
    fn default() -> Self {
        Self {
            entered: P::U32::new(0),
            left: P::U32::new(0),
            drawn: P::U32::new(0),
            served: P::U32::new(0),
        }
    }
}

// SAFETY: one writer at a time has its turn; it enters when all readers that
// came before its announcement have left, and those after it wait for it.
unsafe impl<P: Platform> RawLock<P> for PhaseFair<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "phase-fair",
        summary: "readers and writers take turns; here its exclusive mode",
        fairness: Fairness::Bounded("writers are FIFO; a phase of readers between two of them"),
        shared_memory: true,
        touches_after_release: true,
        paper: "Brandenburg and Anderson 2010",
        readers_share: true,
        promises: "announced, readers wait, readers try behind, reader asks, one writer \
            between, readers wrap, writer tries, wraps",
        ..Info::BASE
    };

    const COUNTS: bool = true;

    fn about_to_wrap() -> Self {
        Self {
            entered: P::U32::new(!LOW_BYTE),
            left: P::U32::new(!LOW_BYTE),
            drawn: P::U32::new(u32::MAX),
            served: P::U32::new(u32::MAX),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        let ticket = self.drawn.fetch_add(1, Ordering::Relaxed);
        // F4: pairs with F6.
        if self.served.load(Ordering::Acquire) != ticket {
            self.wait_for_writers(ticket);
        }
        // The low byte changes by F7 and here only, both ordered by F6.
        let add = Self::announcement(self.entered.load(Ordering::Relaxed));
        let entered = self.entered.fetch_add(add, Ordering::Relaxed) & !LOW_BYTE;
        // F5: pairs with F3.
        if self.left.load(Ordering::Acquire) != entered {
            self.wait_for_readers(entered);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // F4'': pairs with F6.
        let turn = self.served.load(Ordering::Acquire);
        let next = turn.wrapping_add(1);
        if self.drawn.load(Ordering::Relaxed) != turn
            || self
                .drawn
                .compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        // Ours is the turn. F5'': pairs with F3.
        let left = self.left.load(Ordering::Acquire);
        let word = self.entered.load(Ordering::Relaxed);
        let free = word & !LOW_BYTE == left
            && self
                .entered
                .compare_exchange(
                    word,
                    word.wrapping_add(Self::announcement(word)),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok();
        if !free {
            // F6': pairs with F4, F4' and F4''.
            self.served.store(next, Ordering::Release);
        }
        free
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        // F9: pairs with F3: `entered` has counted all that have left, so that it is
        // another while the caller itself reads.
        let left = self.left.load(Ordering::Acquire);
        let entered = self.entered.load(Ordering::Relaxed);
        Some(entered & WRITER != 0 || entered & !LOW_BYTE != left)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        let phase = self.entered.load(Ordering::Relaxed) & PHASE;
        let next = self.served.load(Ordering::Relaxed).wrapping_add(1);
        // F7: pairs with F1, F1' and F2.
        self.entered.store_low_byte(phase as u8, Ordering::Release);
        // F6: pairs with F4, F4' and F4''.
        self.served.store(next, Ordering::Release);
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

crate::lock_api_impl::shared!(PhaseFair);

#[cfg(all(test, feature = "std", not(miri)))]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Waits until `word` is no longer `old`.
    fn changes(word: &crate::native::AtomicU32, old: u32) {
        while word.load(Ordering::Relaxed) == old {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_reader_waits_for_one_writer_only() {
        static LOCK: PhaseFair = PhaseFair::new();
        let order = Mutex::new(std::vec::Vec::new());
        // SAFETY: released once for each time acquired, here and below.
        unsafe { LOCK.lock(&()) };
        std::thread::scope(|scope| {
            let order = &order;
            let (drawn, entered) = (LOCK.drawn.load(Ordering::Relaxed), &LOCK.entered);
            scope.spawn(move || {
                // SAFETY: as above.
                unsafe { LOCK.lock(&()) };
                order.lock().unwrap().push("writer");
                // SAFETY: as above.
                unsafe { LOCK.unlock(&()) };
            });
            changes(&LOCK.drawn, drawn);
            let before = entered.load(Ordering::Relaxed);
            scope.spawn(move || {
                LOCK.read();
                // The writer, which came first, waits for us.
                std::thread::sleep(std::time::Duration::from_millis(5));
                order.lock().unwrap().push("reader");
                // SAFETY: as above.
                unsafe { LOCK.read_unlock() };
            });
            changes(entered, before);
            assert!(!LOCK.try_read(), "a writer holds it");
            // SAFETY: as above.
            unsafe { LOCK.unlock(&()) };
        });
        assert_eq!(*order.lock().unwrap(), ["reader", "writer"]);
        assert_eq!(LOCK.is_locked(), Some(false));
    }

    /// A `try_lock` that fails takes a ticket and is no writer: the next two
    /// writers still differ in their phase.
    #[test]
    fn a_try_that_fails_skips_no_phase() {
        let lock = PhaseFair::<NativePlatform>::new();
        let mut phases = std::vec::Vec::new();
        for _ in 0..4 {
            lock.read();
            // SAFETY: released once for each time acquired.
            unsafe {
                assert!(!lock.try_lock(&()));
                lock.read_unlock();
                lock.lock(&());
                phases.push(lock.entered.load(Ordering::Relaxed) & PHASE);
                assert!(!lock.try_lock(&()) && !lock.try_read());
                lock.downgrade();
                assert!(lock.try_read() && !lock.try_lock(&()));
                lock.read_unlock();
                lock.read_unlock();
                assert!(lock.try_lock(&()));
                lock.unlock(&());
            }
        }
        // The one that was tried in between has the other phase.
        assert_eq!(phases, [1, 1, 1, 1]);
    }

    #[test]
    fn readers_are_counted_over_the_wrap() {
        let lock = PhaseFair::<NativePlatform>::about_to_wrap();
        for _ in 0..3 {
            lock.read();
            // SAFETY: as above.
            unsafe {
                assert!(!lock.try_lock(&()));
                lock.read_unlock();
                lock.lock(&());
                lock.unlock(&());
            }
        }
        assert_eq!(lock.is_locked(), Some(false));
    }
}
