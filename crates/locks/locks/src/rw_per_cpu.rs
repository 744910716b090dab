//! A reader-writer lock with a count of readers for each CPU.

use crate::line::CacheLine;
use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, Ordering, Platform};
use crate::qspinlock::QSpinlock;
use crate::raw::{Fairness, Info, RawLock};

/// Readers that a count has room for. It is never passed, even if each CPU adds
/// one before it sees that there is no room.
const ROOM: u32 = 1 << 31;

/// Says why a reader has not entered.
enum Refused {
    Closed,
    NoRoom,
}

/// A reader-writer lock whose readers count themselves on a cache line of their
/// CPU; a writer closes the lock and waits for all of them.
///
/// ```
/// use locklab_locks::rw::PerCpuRwLock;
///
/// static COUNT: PerCpuRwLock<u32> = PerCpuRwLock::new(0);
/// *COUNT.write() += 1;
/// assert_eq!(*COUNT.read(), 1);
/// ```
///
/// # Differences from `std::sync::RwLock`
///
/// [`PerCpuRwLock`](crate::rw::PerCpuRwLock) lists them.
///
/// # Properties
///
/// **Paper:** W. C. Hsieh and W. E. Weihl, "Scalable Reader-Writer Locks for
/// Parallel Systems", IPPS 1992, for the idea of a part of the lock for each
/// CPU; in the form of the description of Linux's per-CPU reader-writer
/// semaphore (`Documentation/locking/percpu-rw-semaphore.rst`, 2012), whose
/// readers count themselves and whose writers stop newcomers and wait for the
/// counts. That one waits for a grace period of RCU so that readers need no
/// fence; here a reader has a fence, and a writer need not wait for anything
/// but readers.
///
/// A reader that finds the lock closed takes its count back and queues with the
/// writers; at the head of that queue there is no writer, and it counts itself
/// again. CPUs without an entry, those beyond the first `CPUS`, share a count.
///
/// **Size:** 64 bytes for each of `CPUS` CPUs, and 128: 32,896 with 512. **Per
/// waiter:** nothing (the queue uses the CPU's nodes). **Fairness:** writers, and
/// readers that have found the lock closed, are served first come, first served;
/// readers that come while writers queue, but none has closed the lock, enter
/// past them. A CPU without a queue node waits for the queue as in
/// [`crate::QSpinlock`], which says how long that can be: for ever. **Take it** for one lock that all CPUs read all the time and hardly
/// any writes: a reader costs one fence and no line of another CPU, a writer
/// reads a line of every CPU. [`Bravo`](crate::rw::Bravo) has the same readers with one
/// table for all locks, where there are many.
///
/// A count has room for 2^31 readers, including leaked guards:
/// [`RwPerCpu::read`] panics beyond that, and [`RwPerCpu::try_read`] returns
/// `false`. A reader releases on the CPU that acquired. The release of a writer lets
/// readers in before it calls the next of the queue, and so touches the lock
/// after a reader may hold it.
#[repr(C)]
pub struct RwPerCpu<P: Platform = NativePlatform, const CPUS: usize = 512> {
    /// 1 while a writer holds it or waits for readers.
    closed: P::U32,
    queue: QSpinlock<P>,
    /// Number of readers of the CPUs without an entry.
    others: CacheLine<P::U32>,
    /// Number of readers of each CPU, which it alone writes.
    readers: [CacheLine<P::U32>; CPUS],
}

impl<P: Platform, const CPUS: usize> RwPerCpu<P, CPUS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            closed: P::U32::ZERO,
            queue: QSpinlock::new(),
            others: CacheLine(P::U32::ZERO),
            readers: [const { CacheLine(P::U32::ZERO) }; CPUS],
        }
    }

    /// Returns the count of this CPU, if it has one of its own.
    #[inline(always)]
    fn own_count(&self) -> Option<&P::U32> {
        P::try_cpu()
            .and_then(|cpu| self.readers.get(cpu))
            .map(|line| &line.0)
    }

    /// Adds one to the count of this CPU; returns whether there was room.
    #[inline(always)]
    fn come(&self) -> bool {
        let Some(count) = self.own_count() else {
            let room = self.others.fetch_add(1, Ordering::Relaxed) < ROOM;
            if !room {
                self.others.fetch_sub(1, Ordering::Relaxed);
            }
            return room;
        };
        let readers = count.load(Ordering::Relaxed);
        if readers < ROOM {
            count.store(readers + 1, Ordering::Relaxed);
        }
        readers < ROOM
    }

    /// Takes back a count. Who was refused has nothing to publish; what this
    /// CPU read before, the fence C1 publishes.
    #[inline(always)]
    fn go_away(&self) {
        match self.own_count() {
            Some(count) => count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed),
            None => {
                self.others.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts this CPU as a reader, unless the lock is closed.
    #[inline(always)]
    fn enter(&self) -> Result<(), Refused> {
        if !self.come() {
            return Err(Refused::NoRoom);
        }
        // C1: pairs with C4: a writer sees our count, or we see that it has
        // closed the lock.
        P::fence(Ordering::SeqCst);
        // C2: pairs with C7.
        if self.closed.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.go_away();
        Err(Refused::Closed)
    }

    /// Acquires for reading: other readers may hold it too.
    ///
    /// # Panics
    /// If 2^31 readers of this CPU hold the lock already.
    #[inline(always)]
    pub fn read(&self) {
        if let Err(refused) = self.enter() {
            self.wait_to_read(&refused);
        }
    }

    /// Acquires for reading if no writer holds the lock or waits for its
    /// readers; returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        self.enter().is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self, refused: &Refused) {
        assert!(
            matches!(refused, Refused::Closed),
            "a reader-writer lock is held by 2^31 readers of one CPU: guards have been leaked"
        );
        // SAFETY: no context; unlocked below.
        unsafe { self.queue.lock(&()) };
        // Writers hold the queue as long as they hold the lock: the next one
        // sees our count. There is room: this CPU has just taken one back, or
        // as many CPUs as there are never fill the rest.
        self.come();
        // SAFETY: we hold it.
        unsafe { self.queue.unlock(&()) };
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading, acquired on this CPU.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        // C3: pairs with C5 and C6: the reader has read before a writer writes.
        match self.own_count() {
            Some(count) => count.store(count.load(Ordering::Relaxed) - 1, Ordering::Release),
            None => {
                self.others.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// Makes the writer a reader, without any other holder in between; readers
    /// that wait enter as well.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self) {
        // The next writer comes after us through the queue, and sees the count;
        // no reader is counted now, so there is room.
        self.come();
        // SAFETY: of the caller.
        unsafe { RawLock::unlock(self, &()) }
    }

    /// Sends newcomers to the queue. The caller holds the queue.
    #[inline(always)]
    fn close(&self) {
        self.closed.store(1, Ordering::Relaxed);
        // C4: pairs with C1.
        P::fence(Ordering::SeqCst);
    }

    fn counts(&self) -> impl Iterator<Item = &P::U32> {
        self.readers
            .iter()
            .chain([&self.others])
            .map(|line| &line.0)
    }
}

impl<P: Platform, const CPUS: usize> Default for RwPerCpu<P, CPUS> {
    fn default() -> Self {
        Self {
            closed: P::U32::new(0),
            queue: QSpinlock::default(),
            others: CacheLine(P::U32::new(0)),
            readers: core::array::from_fn(|_| CacheLine(P::U32::new(0))),
        }
    }
}

// SAFETY: writers hold the queue. A reader has its count while the lock is open,
// or while it holds the queue; a writer closes the lock and waits for each count
// before it goes on.
unsafe impl<P: Platform, const CPUS: usize> RawLock<P> for RwPerCpu<P, CPUS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "rw-per-cpu",
        summary: "a count of readers on each CPU; here its exclusive mode",
        fairness: Fairness::Bounded("the queue is FIFO; readers pass writers behind its head"),
        cpu_numbers: true,
        touches_after_release: true,
        paper: "Hsieh and Weihl 1992 (IPPS); Linux 2012",
        readers_share: true,
        promises: "announced, readers wait, readers try behind, reader asks, readers of each \
            count, writer tries, readers of one count, reader without number",
        orderings_of: Some("locks/src/rw_per_cpu.rs"),
        structure_of: &["locks/src/rw_per_cpu.rs"],
        ..Info::BASE
    };

    /// Returns a lock that admits one more reader of each count.
    fn about_to_wrap() -> Self {
        Self {
            others: CacheLine(P::U32::new(ROOM - 1)),
            readers: core::array::from_fn(|_| CacheLine(P::U32::new(ROOM - 1))),
            ..Self::default()
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // SAFETY: no context; unlocked in `unlock`.
        unsafe { self.queue.lock(&()) };
        self.close();
        for count in self.counts() {
            // C5: pairs with C3.
            count.spin_until(Ordering::Acquire, |readers| readers == 0);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // SAFETY: no context; unlocked in `unlock` or below.
        if !unsafe { self.queue.try_lock(&()) } {
            return false;
        }
        self.close();
        // C6: pairs with C3.
        let free = self
            .counts()
            .all(|count| count.load(Ordering::Acquire) == 0);
        if !free {
            // Relaxed: the fence C4 comes before it, and with C2 orders what
            // writers before us wrote.
            self.closed.store(0, Ordering::Relaxed);
            // SAFETY: we hold it.
            unsafe { self.queue.unlock(&()) };
        }
        free
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        let counted = || {
            self.counts()
                .any(|count| count.load(Ordering::Relaxed) != 0)
        };
        Some(self.closed.load(Ordering::Relaxed) != 0 || counted())
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // C7: pairs with C2.
        self.closed.store(0, Ordering::Release);
        // SAFETY: of the caller.
        unsafe { self.queue.unlock(&()) };
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

crate::lock_api_impl::shared!(RwPerCpu, CPUS: usize);
