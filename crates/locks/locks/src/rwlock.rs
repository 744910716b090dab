//! A queued reader-writer lock: a word, and a queue for waiters.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Platform};
use crate::qspinlock::QSpinlock;
use crate::raw::{Fairness, Info, RawLock};

const WRITER: u32 = 1;
const WRITER_MASK: u32 = 0xff;
/// A writer is the head of the queue: readers that arrive now queue behind it.
const WRITER_WAITS: u32 = 1 << 8;
const READER: u32 = 1 << 9;
/// Half of the readers that the word can count: no more are admitted, so that
/// the count never wraps to zero, even if CPUs add to it before they see this
/// bit.
const TOO_MANY: u32 = 1 << 31;
/// Any of these bits keeps a reader from entering at once.
const NOT_AT_ONCE: u32 = WRITER_MASK | WRITER_WAITS | TOO_MANY;

/// A queued reader-writer lock: a word (bits 0 to 7 a writer holds it, bit 8
/// a writer is next, bits 9 and up the number of readers) and a queue.
///
/// ```
/// use locklab_locks::rw::QueuedRwLock;
///
/// static COUNT: QueuedRwLock<u32> = QueuedRwLock::new(0);
/// *COUNT.write() += 1;
/// assert_eq!(*COUNT.read(), 1);
/// ```
///
/// # Differences from `std::sync::RwLock`
///
/// [`QueuedRwLock`](crate::rw::QueuedRwLock) lists them.
///
/// # Properties
///
/// **Paper:** J. M. Mellor-Crummey and M. L. Scott, "Scalable Reader-Writer
/// Synchronization for Shared-Memory Multiprocessors", PPoPP 1991, for the
/// fair queue of readers and writers; the compact form, one word and one
/// queued spinlock, after W. Long's description (Linux, 2014).
///
/// **Size:** 8 bytes. **Per waiter:** nothing (the queue uses the CPU's nodes).
/// **Fairness:** readers and writers that find the lock taken queue and are
/// served first come, first served; only the head of the queue polls the
/// word. Readers that arrive while only readers hold it, and no writer waits,
/// enter at once. A CPU without a queue node waits for the queue as in
/// [`crate::QSpinlock`], which says how long that can be: for ever.
///
/// [`RawLock`] is its exclusive mode. At most 2^22 readers hold it at once,
/// including leaked guards: [`RwQueued::read`] panics beyond that, and
/// [`RwQueued::try_read`] returns `false`.
#[repr(C)]
pub struct RwQueued<P: Platform = NativePlatform> {
    word: P::U32,
    queue: QSpinlock<P>,
}

impl<P: Platform> RwQueued<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            word: P::U32::ZERO,
            queue: QSpinlock::new(),
        }
    }

    /// Acquires for reading: other readers may hold it too.
    ///
    /// # Panics
    /// If 2^22 readers hold the lock already.
    #[inline(always)]
    pub fn read(&self) {
        // X1: pairs with X7 and X8.
        let word = self.word.fetch_add(READER, Ordering::Acquire);
        if word & NOT_AT_ONCE != 0 {
            self.wait_to_read();
        }
    }

    /// Acquires for reading if no writer holds the lock or waits, and fewer
    /// than 2^22 readers hold it; returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        if self.word.load(Ordering::Relaxed) & NOT_AT_ONCE != 0 {
            return false;
        }
        // X1': pairs with X7 and X8.
        let word = self.word.fetch_add(READER, Ordering::Acquire);
        let entered = word & NOT_AT_ONCE == 0;
        if !entered {
            // Never a reader; nothing to publish.
            self.word.fetch_sub(READER, Ordering::Relaxed);
        }
        entered
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        // X6: pairs with X3, X3', X5: the reader has read before a writer
        // writes.
        self.word.fetch_sub(READER, Ordering::Release);
    }

    /// Makes the writer a reader, without any other holder in between; readers
    /// that wait enter as well.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        // X8: as X7, and one reader more: the difference carries out of the
        // writer's byte, which is 1.
        self.word.fetch_add(READER - WRITER, Ordering::Release);
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self) {
        // Not yet a reader: out of the writer's way, into the queue.
        self.word.fetch_sub(READER, Ordering::Relaxed);
        // SAFETY: no context; unlocked below.
        unsafe { self.queue.lock(&()) };
        // We are the head: no writer waits, one may hold.
        let word = self.word.fetch_add(READER, Ordering::Relaxed);
        if word & TOO_MANY != 0 {
            self.word.fetch_sub(READER, Ordering::Relaxed);
        } else {
            // X2: pairs with X7 and X8.
            self.word
                .spin_until(Ordering::Acquire, |word| word & WRITER_MASK == 0);
        }
        // SAFETY: we hold it.
        unsafe { self.queue.unlock(&()) };
        assert!(
            word & TOO_MANY == 0,
            "a reader-writer lock is held by 2^22 readers: guards have been leaked"
        );
    }

    #[inline(always)]
    fn take_if_free(&self) -> bool {
        // X3: pairs with X6 and X7.
        self.word
            .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait_to_write(&self) {
        // SAFETY: no context; unlocked below.
        unsafe { self.queue.lock(&()) };
        // X3': as X3; read first, for readers and a writer need the line.
        if !self.word.take_if_zero(WRITER, Ordering::Acquire) {
            // From here on readers that come go to the queue.
            self.word.fetch_or(WRITER_WAITS, Ordering::Relaxed);
            loop {
                self.word
                    .spin_until(Ordering::Relaxed, |word| word == WRITER_WAITS);
                // X5: pairs with X6 and X7.
                if self
                    .word
                    .compare_exchange(WRITER_WAITS, WRITER, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
                {
                    break;
                }
            }
        }
        // SAFETY: we hold it.
        unsafe { self.queue.unlock(&()) };
    }
}

impl<P: Platform> Default for RwQueued<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
            queue: QSpinlock::default(),
        }
    }
}

// SAFETY: a writer enters when the word says no writer and no reader, by a
// compare-and-swap.
unsafe impl<P: Platform> RawLock<P> for RwQueued<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "rw-queued",
        summary: "queued reader-writer lock; here its exclusive mode",
        fairness: Fairness::Bounded("queued waiters are FIFO; the head races newcomers once"),
        paper: "Mellor-Crummey and Scott 1991 (PPoPP); Long 2014",
        cpu_numbers: true,
        readers_share: true,
        promises: "announced, readers wait, readers try behind, reader asks, readers at the \
            limit, refused beside another",
        orderings_of: Some("locks/src/rwlock.rs"),
        structure_of: &["locks/src/rwlock.rs"],
        ..Info::BASE
    };

    /// Returns a lock that admits one more reader.
    fn about_to_wrap() -> Self {
        Self {
            word: P::U32::new(TOO_MANY - READER),
            queue: QSpinlock::default(),
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take_if_free() {
            self.wait_to_write();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.word.load(Ordering::Relaxed) == 0 && self.take_if_free()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // X7: pairs with X1, X1', X2, X3, X3' and X5.
        self.word.store_low_byte(0, Ordering::Release);
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

crate::lock_api_impl::shared!(RwQueued);
