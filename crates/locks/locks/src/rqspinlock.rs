//! The resilient queued spinlock: its waiters detect deadlocks, and give up.

use crate::held_locks::{HELD_LOCKS, HeldLocks, HeldTable};
use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::qnode::{NESTING, QueueNode};
use crate::qspinlock::{LOCKED, LOCKED_MASK, PENDING, QSpinlock, node_of};
use crate::raw::{Fairness, Info, RawLock, TimedLock};
use core::fmt;
use core::ptr;

/// Reads of the lock between two checks: some 10 to 200 us, by processor.
const READS: u32 = 4_096;

/// Sets how long [`RqSpinlock::lock_or_fail`] waits, in nanoseconds: 250 ms.
const TIMEOUT: u64 = 250_000_000;

/// A lock word with a queue, to which a waiter can only join.
const QUEUE: u32 = 1 << 16;

/// The part of [`HeldLocks::state`] that counts entries.
const ENTRIES: usize = HELD_LOCKS;
const _: () = assert!((ENTRIES + 1).is_power_of_two());

/// A queued spinlock whose acquisition can fail, where that of
/// [`crate::QSpinlock`] would hang: the word and its protocol are the same.
///
/// ```
/// use locklab_locks::kernel::RqSpinlockMutex;
///
/// static COUNT: RqSpinlockMutex<u32> = RqSpinlockMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`RqSpinlockMutex`](crate::kernel::RqSpinlockMutex) lists them.
///
/// # Properties
///
/// **Paper:** K. K. Dwivedi, "Resilient Queued Spin Lock", patch series for
/// bpf-next, January to March 2025 (Linux 6.15). A waiter of
/// [`RqSpinlock::lock_or_fail`] gives up when its own CPU holds the lock or
/// waits for it (AA), when the CPU that holds it waits for a lock that this one
/// holds (ABBA), and after 250 ms. Each CPU has a table of the locks that it
/// holds ([`Platform::held_locks`]), in which waiters look every 4,096 reads.
/// Differs from that series in who pays for a waiter that gives up at the head
/// of the queue: here its successor becomes the head, and waits for as long as
/// it would have; there all that have queued give up with it.
///
/// **Size:** 4 bytes. **Per waiter:** nothing (each CPU owns four 16-byte nodes and
/// a table of 256 bytes). **Fairness:** that of [`crate::QSpinlock`]: first come,
/// first served once queued. Who gives up loses its place. A waiter that has
/// others before it in the queue gives up when it has become the head; they
/// came before it, so with one timeout for all they give up before it. Behind
/// one that waits without limit ([`RawLock::lock`]) it may wait as long as that.
/// A CPU without a queue node waits as in [`crate::QSpinlock`], and can starve, or
/// run into its timeout: beside four threads with a node it had none of 682,047
/// acquisitions in 5 s (see there how that was measured).
///
/// **Take it** where a lock may be requested by code that nobody can prove free of
/// deadlocks (an interrupt that cannot be masked, a program of a user in a
/// kernel) and that has something else to do when it does not get it.
///
/// **Limits:** cycles of three locks and more, locks beyond the 31st of a CPU, CPUs
/// without a table, and a lock that an interrupt finds its CPU in the middle of
/// acquiring or releasing, end by the timeout; it never comes where
/// [`Platform::now`] stands still. In an ABBA deadlock one waiter at least is
/// refused, sometimes both, unless each of the two stands in its queue behind
/// one that waits without limit ([`RawLock::lock`]): a waiter detects deadlocks
/// on the lock word and at the head of the queue, and between them waits for
/// its turn. What interrupted code waits for counts as held by
/// its CPU. The lock is released by the CPU that has acquired it, in any order
/// with others.
///
/// ```
/// use locklab_locks::{kernel::AcquireError, RqSpinlock, lock_api::Mutex};
///
/// static COUNT: Mutex<RqSpinlock, u32> = Mutex::new(1);
///
/// fn count() -> Result<u32, AcquireError> {
///     // SAFETY: the guard belongs to this acquisition.
///     let mut count = unsafe {
///         COUNT.raw().lock_or_fail()?;
///         COUNT.make_guard_unchecked()
///     };
///     *count += 1;
///     Ok(*count)
/// }
///
/// assert_eq!(count(), Ok(2));
/// let held = COUNT.lock();
/// assert_eq!(count(), Err(AcquireError::Deadlock));
/// drop(held);
/// assert_eq!(count(), Ok(3));
/// ```
#[repr(transparent)]
pub struct RqSpinlock<P: Platform = NativePlatform>(QSpinlock<P>);

/// Says why an [`RqSpinlock`] was not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcquireError {
    /// This CPU holds the lock or waits for it, or its holder waits for a lock
    /// that this CPU holds.
    Deadlock,
    /// The time is over.
    Timeout,
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadlock => "the lock was not acquired: waiting for it would be a deadlock",
            Self::Timeout => "the lock was not acquired: it was not released in time",
        })
    }
}

impl core::error::Error for AcquireError {}

fn table<P: Platform>(held: &HeldLocks<P>) -> &HeldTable<P> {
    // SAFETY: this is that lock, and writes to its own CPU's only.
    unsafe { held.table() }
}

/// Returns the table of this CPU, if it has one.
#[inline(always)]
fn own_table<P: Platform>() -> Option<&'static HeldTable<P>> {
    P::try_cpu().and_then(P::held_locks).map(table)
}

/// Returns the entries from the first that the running code may change: those before
/// belong to code that it has interrupted while that waited.
#[inline(always)]
fn own_entries<P: Platform>(table: &HeldTable<P>) -> &[P::Usize] {
    &table.locks[table.state.load(Ordering::Relaxed) & ENTRIES..]
}

/// Enters a lock that this CPU has acquired; the entries in use come first. An
/// interrupt at any place here leaves the table as it found it.
#[inline]
fn enter_held<P: Platform>(lock: usize) {
    let Some(table) = own_table::<P>() else {
        return;
    };
    let mut free = own_entries(table).iter();
    if let Some(entry) = free.find(|entry| entry.load(Ordering::Relaxed) == 0) {
        // R1: pairs with R4: who sees the lock here sees that a wait before it
        // has ended.
        entry.store(lock, Ordering::Release);
    }
}

/// Removes a lock that this CPU is about to release; the last entry in use takes
/// its place.
#[inline]
fn remove_held<P: Platform>(lock: usize) {
    let Some(table) = own_table::<P>() else {
        return;
    };
    let (mut found, mut last) = (None, None);
    for entry in own_entries(table) {
        match entry.load(Ordering::Relaxed) {
            0 => break,
            held if held == lock => found = Some(entry),
            held => last = Some((entry, held)),
        }
    }
    let Some(mut entry) = found else { return };
    if let Some((behind, held)) = last
        && ptr::from_ref(behind) > ptr::from_ref(entry)
    {
        entry.store(held, Ordering::Relaxed);
        entry = behind;
    }
    entry.store(0, Ordering::Relaxed);
}

/// Returns whether a lock is in one of these entries.
fn contain<P: Platform>(entries: &[P::Usize], lock: usize) -> bool {
    // R4: pairs with R1.
    let mut held = entries.iter().map(|entry| entry.load(Ordering::Acquire));
    held.any(|held| held == lock)
}

/// A wait of this CPU, which its table shows.
struct Wait<P: Platform> {
    lock: usize,
    /// Says when to give up, in nanoseconds of [`Platform::now`].
    deadline: u64,
    /// None where this CPU has no table, or no room in it.
    table: Option<&'static HeldTable<P>>,
    /// The entries of the code that this has interrupted.
    before: usize,
    /// The entry of this wait: all before it are in use.
    entry: usize,
}

impl<P: Platform> Wait<P> {
    /// Enters that this CPU waits for `lock`.
    fn begin(lock: usize, deadline: u64) -> Self {
        let (mut before, mut entry) = (0, 0);
        let table = own_table::<P>().filter(|table| {
            before = table.state.load(Ordering::Relaxed) & ENTRIES;
            let mut entries = own_entries(table).iter();
            let used = entries.position(|entry| entry.load(Ordering::Relaxed) == 0);
            entry = before + used.unwrap_or(0);
            used.is_some()
        });
        if let Some(table) = table {
            table.locks[entry].store(lock, Ordering::Relaxed);
            // R2: pairs with R3.
            Self::set_entries(table, entry + 1, Ordering::Release);
        }
        Self {
            lock,
            deadline,
            table,
            before,
            entry,
        }
    }

    /// Ends it: what was waited for is held now, or is not waited for any more.
    fn end(self, acquired: bool) {
        let Some(table) = self.table else { return };
        if !acquired {
            table.locks[self.entry].store(0, Ordering::Relaxed);
        }
        Self::set_entries(table, self.before, Ordering::Relaxed);
    }

    /// Stores the number of entries. Every state is a new one, until the count of
    /// changes wraps.
    fn set_entries(table: &HeldTable<P>, entries: usize, order: Ordering) {
        let state = table.state.load(Ordering::Relaxed) | ENTRIES;
        table.state.store(state.wrapping_add(1) | entries, order);
    }

    /// Returns whether a CPU that holds our lock waits for one that this CPU holds. That
    /// stays so until one of the two gives up, so it need not be seen all at once, but
    /// within one wait of the other.
    fn is_deadlock(&self) -> bool {
        let Some(own) = self.table else { return false };
        (0..).map_while(P::held_locks).map(table).any(|other| {
            // R3: pairs with R2: the entries are those of this wait.
            let state = other.state.load(Ordering::Acquire);
            let Some(last) = (state & ENTRIES).checked_sub(1) else {
                return false;
            };
            let awaited = other.locks[last].load(Ordering::Relaxed);
            contain::<P>(&own.locks[..self.entry], awaited)
                && contain::<P>(&other.locks[..last], self.lock)
                // The newest state, as no load is bound to see.
                && other
                    .state
                    .compare_exchange(state, state, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Waits until `done`, and returns the word for which it was.
    fn spin(&self, word: &P::U32, done: impl Fn(u32) -> bool) -> Result<u32, AcquireError> {
        loop {
            // R5: pairs with Q9.
            let value = word.spin(Ordering::Acquire, Patience::Reads(READS), |word| {
                if done(word) {
                    Poll::Done
                } else {
                    Poll::Relax(1)
                }
            });
            if done(value) {
                return Ok(value);
            }
            if self.is_deadlock() {
                return Err(AcquireError::Deadlock);
            }
            if P::now() >= self.deadline {
                return Err(AcquireError::Timeout);
            }
        }
    }
}

impl<P: Platform> RqSpinlock<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self(QSpinlock::new())
    }

    /// Acquires the lock, to be released by [`RawLock::unlock`], or gives up.
    ///
    /// # Errors
    /// [`AcquireError::Deadlock`] if waiting would be a deadlock of one lock or
    /// of two, [`AcquireError::Timeout`] after 250 ms; the lock is then as if
    /// this CPU had not come. A lock that is free is always acquired.
    #[inline(always)]
    pub fn lock_or_fail(&self) -> Result<(), AcquireError> {
        self.acquire(None)
    }

    #[inline(always)]
    fn acquire(&self, deadline: Option<u64>) -> Result<(), AcquireError> {
        match self.0.take_if_free() {
            Ok(()) => {
                enter_held::<P>(self.name());
                Ok(())
            }
            Err(word) => self.wait_or_fail(word, deadline),
        }
    }

    /// Returns what a table calls this lock.
    #[inline(always)]
    fn name(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, word: u32) {
        let wait = Wait::<P>::begin(self.name(), u64::MAX);
        self.0.wait(word);
        wait.end(true);
    }

    #[cold]
    #[inline(never)]
    fn wait_or_fail(&self, word: u32, deadline: Option<u64>) -> Result<(), AcquireError> {
        let deadline = deadline.unwrap_or_else(|| P::now().saturating_add(TIMEOUT));
        let wait = Wait::begin(self.name(), deadline);
        let own = wait.table.map_or(&[][..], |own| &own.locks[..wait.entry]);
        let acquired = if contain::<P>(own, wait.lock) {
            Err(AcquireError::Deadlock)
        } else {
            self.wait_as_pending(word, &wait)
                .unwrap_or_else(|| self.wait_with_queue(&wait))
        };
        wait.end(acquired.is_ok());
        acquired
    }

    /// Tries to be the one waiter that needs no node; returns `None` where
    /// there is one, or a queue.
    fn wait_as_pending(&self, word: u32, wait: &Wait<P>) -> Option<Result<(), AcquireError>> {
        if word & !LOCKED_MASK != 0 {
            return None;
        }
        let word = &self.0.word;
        // R6: as Q2.
        let old = word.fetch_or(PENDING, Ordering::Acquire);
        if old & !LOCKED_MASK != 0 {
            if old & PENDING == 0 {
                // A queue has formed: the bit is ours, and nobody who sees a
                // queue relies on it.
                word.fetch_and(!PENDING, Ordering::Relaxed);
            }
            return None;
        }
        if old & LOCKED_MASK != 0
            && let Err(error) = wait.spin(word, |word| word & LOCKED_MASK == 0)
        {
            // The head of the queue waits for the holder alone again.
            word.fetch_and(!PENDING, Ordering::Relaxed);
            return Some(Err(error));
        }
        // This is as in `QSpinlock`: nobody else takes the lock meanwhile.
        word.store_low_half(LOCKED as u16, Ordering::Relaxed);
        Some(Ok(()))
    }

    fn wait_with_queue(&self, wait: &Wait<P>) -> Result<(), AcquireError> {
        let in_use = |cpu| P::queue_nodes(cpu).in_use() as usize;
        if P::try_cpu().is_none_or(|cpu| in_use(cpu) >= NESTING) {
            // Without a node, as `QSpinlock` does there.
            loop {
                wait.spin(&self.0.word, |word| word == 0)?;
                if self.0.take_if_free().is_ok() {
                    return Ok(());
                }
            }
        }
        let mut acquired = Ok(());
        self.0.wait_and_queue(QUEUE, |_, tail, node| {
            acquired = self.wait_in_queue(tail, node, wait);
        });
        acquired
    }

    fn wait_in_queue(
        &self,
        tail: u16,
        node: &'static QueueNode<P>,
        wait: &Wait<P>,
    ) -> Result<(), AcquireError> {
        let word = &self.0.word;
        // R7: as Q4: our node is reset before a successor links itself to it.
        let before = word.swap_high_half(tail, Ordering::AcqRel);
        if before != 0 {
            // R8: as Q5: pairs with R9 and Q8.
            node_of::<P>(before)
                .next
                .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
            // R8': pairs with R9' and Q8': we are the head.
            node.granted
                .spin_until(Ordering::Acquire, |granted| granted != 0);
        }
        let free = wait.spin(word, |word| word & (LOCKED_MASK | PENDING) == 0);
        let acquired = free.map(|_| ());
        let mut old = free.unwrap_or_else(|_| word.load(Ordering::Relaxed));
        while (old >> 16) as u16 == tail {
            // Nobody is behind us: the queue goes.
            // Whoever has set pending since the lock was free has seen the
            // queue, and takes the bit back.
            let new = match free {
                Ok(_) => LOCKED | old & PENDING,
                Err(_) => old & 0xffff,
            };
            match word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return acquired,
                Err(now) => old = now,
            }
        }
        if free.is_ok() {
            word.store_low_byte(LOCKED as u8, Ordering::Relaxed);
        }
        // R9: pairs with R8 and Q5.
        let next = node
            .next
            .spin_until(Ordering::Acquire, |next| !next.is_null());
        // SAFETY: a node of the platform, which live for ever.
        let next = unsafe { &*next };
        // R9': pairs with R8' and Q6: the next is the head, whether or not the
        // lock is ours.
        next.granted.store(1, Ordering::Release);
        acquired
    }
}

impl<P: Platform> Default for RqSpinlock<P> {
    fn default() -> Self {
        Self(QSpinlock::default())
    }
}

// SAFETY: as `QSpinlock`, whose protocol it is. Who gives up has not set the
// locked byte, and takes back only what is its own: the pending bit, the tail
// that names it, or its place at the head, which goes to its successor.
unsafe impl<P: Platform> RawLock<P> for RqSpinlock<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "rqspinlock",
        summary: "qspinlock whose waiters detect deadlocks and give up",
        fairness: Fairness::Fifo,
        timeout: true,
        held_locks: true,
        cpu_numbers: true,
        paper: "Dwivedi 2025 (bpf-next, Linux 6.15)",
        promises: "resilient, interrupted, without node, queue advances",
        orderings_of: Some("locks/src/rqspinlock.rs"),
        structure_of: &["locks/src/rqspinlock.rs"],
        ..Info::BASE
    };

    /// Waits without limit, and detects nothing; others see what it holds and
    /// waits for.
    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        match self.0.take_if_free() {
            Ok(()) => enter_held::<P>(self.name()),
            Err(word) => self.wait(word),
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        let acquired = unsafe { self.0.try_lock(ctx) };
        if acquired {
            enter_held::<P>(self.name());
        }
        acquired
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.0.is_locked()
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &()) {
        remove_held::<P>(self.name());
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(ctx) }
    }
}

// SAFETY: `true` to who has acquired.
unsafe impl<P: Platform> TimedLock<P> for RqSpinlock<P> {
    /// Gives up early if waiting would be a deadlock, and late if others are
    /// before it in the queue: see the type.
    unsafe fn lock_until(&self, _: &(), deadline: u64) -> bool {
        self.acquire(Some(deadline)).is_ok()
    }
}

crate::lock_api_impl::context_free!(RqSpinlock);
crate::lock_api_impl::fair!(RqSpinlock);
