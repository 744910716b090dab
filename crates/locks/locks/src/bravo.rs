//! BRAVO: readers of a reader-writer lock that write no shared line.

use crate::native::NativePlatform;
use crate::phase_fair::PhaseFair;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Info, RawLock};
use core::ptr;
use lock_api::{RawRwLock, RawRwLockDowngrade};

/// No bias is set again for this many times the duration of a revocation, so
/// that a writer is slowed down by a tenth at most.
const INHIBIT: u64 = 9;

/// Any reader-writer lock, biased towards readers while no writer comes.
///
/// **Paper:** D. Dice and A. Kogan, "BRAVO: Biased Locking for Reader-Writer
/// Locks", USENIX ATC 2019.
///
/// While the lock is biased, a reader only enters itself in the table of
/// visible readers ([`Platform::visible_readers`]), which all locks share. A
/// writer, having acquired `L`, revokes the bias and waits for the readers in
/// the table. After a revocation no reader may set the bias again for nine
/// times as long as it took. In the paper readers hash into the table; here
/// each CPU has one entry, which no other CPU writes, and acquires `L` if it
/// reads another lock of this kind already, or has no entry (a program's
/// threads beyond the first 512).
///
/// **Size:** that of `L` and two words. **Per waiter:** that of `L`; 64 bytes
/// for each CPU, whatever the number of locks. **Fairness:** that of `L`,
/// except that readers enter past a writer until it has acquired `L`, and a
/// writer waits for the readers twice at most. **Take it** where writers are
/// rare and CPUs are many: a reader costs one fence and no line of another CPU,
/// a writer after readers scans the whole table. A reader that used the table
/// touches nothing of the lock after its release; otherwise the rule of `L`
/// applies.
///
/// Without a clock ([`Platform::now`] stands still) the bias is set again at
/// once, and every writer pays. A reader's guard that was leaked keeps its
/// CPU's entry: a writer of a lock that is later made at the same address waits
/// for ever.
#[repr(C)]
pub struct Bravo<L, P: Platform = NativePlatform> {
    lock: L,
    /// 1 while readers need not acquire `lock`.
    biased: P::U32,
    /// The time until which it is not biased again, in nanoseconds modulo the
    /// size of a word. Written under `lock`.
    inhibited: P::Usize,
}

/// BRAVO over the phase-fair lock, as the paper measures it over one of its
/// kind (BRAVO-BA).
///
/// ```
/// use locklab_locks::rw::BravoRwLock;
///
/// static COUNT: BravoRwLock<u32> = BravoRwLock::new(0);
/// *COUNT.write() += 1;
/// assert_eq!(*COUNT.read(), 1);
/// ```
///
/// # Differences from `std::sync::RwLock`
///
/// [`BravoRwLock`](crate::rw::BravoRwLock) lists them.
pub type BravoPhaseFair<P = NativePlatform> = Bravo<PhaseFair<P>, P>;

impl<L: RawRwLock, P: Platform> Bravo<L, P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            lock: L::INIT,
            biased: P::U32::ZERO,
            inhibited: P::Usize::ZERO,
        }
    }

    fn around(lock: L) -> Self {
        Self {
            lock,
            biased: P::U32::new(0),
            inhibited: P::Usize::new(0),
        }
    }

    fn name(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Returns the entry in which this CPU publishes what it reads.
    #[inline(always)]
    fn own_entry() -> Option<&'static P::Usize> {
        let table = P::visible_readers();
        // SAFETY: this is that lock, and the entry this CPU's.
        Some(unsafe { table.get(P::try_cpu()?)?.lock() })
    }

    /// Acquires for reading: other readers may hold it too.
    #[inline(always)]
    pub fn read(&self) {
        if !self.read_biased() {
            self.lock.lock_shared();
            self.bias();
        }
    }

    /// Acquires for reading if no writer holds the lock, and `L` would admit
    /// the reader at once if it is not biased; returns whether it did.
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        if self.read_biased() {
            return true;
        }
        let entered = self.lock.try_lock_shared();
        if entered {
            self.bias();
        }
        entered
    }

    #[inline(always)]
    fn read_biased(&self) -> bool {
        if self.biased.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Some(entry) = Self::own_entry() else {
            return false;
        };
        if entry.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // V1: pairs with V6 and V7 of a lock whose reader this CPU was before.
        entry.store(self.name(), Ordering::Release);
        // V2: pairs with V5: a writer sees our entry, or we its taking the
        // bias away.
        P::fence(Ordering::SeqCst);
        // V3: pairs with V4: what writers before the bias wrote.
        if self.biased.load(Ordering::Acquire) != 0 {
            return true;
        }
        // Relaxed: the fence V2 comes before it, and is all the Release that
        // V6 and V7 of a lock that this CPU read before need.
        entry.store(0, Ordering::Relaxed);
        false
    }

    /// Biases the lock if that is worthwhile. The caller reads under `L`.
    fn bias(&self) {
        if self.biased.load(Ordering::Relaxed) == 0
            && !P::visible_readers().is_empty()
            && (P::now() as usize).wrapping_sub(self.inhibited.load(Ordering::Relaxed)) as isize
                >= 0
        {
            // V4: pairs with V3.
            self.biased.store(1, Ordering::Release);
        }
    }

    /// Releases one reader.
    ///
    /// # Safety
    /// The caller holds the lock for reading.
    #[inline(always)]
    pub unsafe fn read_unlock(&self) {
        if let Some(entry) = Self::own_entry()
            && entry.load(Ordering::Relaxed) == self.name()
        {
            // V9: pairs with V6 and V7: the reader has read before a writer
            // writes.
            entry.store(0, Ordering::Release);
            return;
        }
        // A CPU that holds it twice may come here first: a reader is a reader.
        // SAFETY: of the caller.
        unsafe { self.lock.unlock_shared() }
    }

    /// Makes the writer a reader, without any other holder in between.
    ///
    /// # Safety
    /// The caller holds the lock for writing.
    #[inline(always)]
    pub unsafe fn downgrade(&self)
    where
        L: RawRwLockDowngrade,
    {
        // SAFETY: of the caller.
        unsafe { self.lock.downgrade() }
    }

    /// Revokes the bias. The caller holds `L` for writing.
    fn take_bias(&self) {
        self.biased.store(0, Ordering::Relaxed);
        // V5: pairs with V2.
        P::fence(Ordering::SeqCst);
    }

    #[cold]
    #[inline(never)]
    fn revoke(&self) {
        let begun = P::now();
        self.take_bias();
        for reader in P::visible_readers() {
            // SAFETY: this is that lock, and only reads.
            let lock = unsafe { reader.lock() };
            // V6: pairs with V9.
            lock.spin_until(Ordering::Acquire, |lock| lock != self.name());
        }
        let now = P::now();
        let until = now.wrapping_add(now.wrapping_sub(begun).wrapping_mul(INHIBIT));
        self.inhibited.store(until as usize, Ordering::Relaxed);
    }

    /// Revokes the bias if no reader is inside, and returns whether it did.
    #[cold]
    #[inline(never)]
    fn try_revoke(&self) -> bool {
        self.take_bias();
        let alone = P::visible_readers().iter().all(|reader| {
            // SAFETY: this is that lock, and only reads.
            let lock = unsafe { reader.lock() };
            // V7: pairs with V9.
            lock.load(Ordering::Acquire) != self.name()
        });
        if !alone {
            // The entries count again. Relaxed: the fence V5 comes before it,
            // and with V3 orders what writers before us wrote.
            self.biased.store(1, Ordering::Relaxed);
        }
        alone
    }
}

impl<L: RawRwLock + Default, P: Platform> Default for Bravo<L, P> {
    fn default() -> Self {
        Self::around(L::default())
    }
}

// SAFETY: `L` excludes those that acquire it. A reader that does not has its
// entry in the table while the lock is biased, and a writer takes the bias away
// and waits for the entry before it goes on.
unsafe impl<P: Platform, L: RawLock<P, Ctx = ()> + RawRwLock> RawLock<P> for Bravo<L, P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "bravo",
        summary: "BRAVO over phase-fair; here its exclusive mode",
        shared_memory: false,
        cpu_numbers: true,
        paper: "Dice and Kogan 2019 (ATC)",
        readers_share: true,
        promises: "biased, wraps, reader without number",
        orderings_of: Some("locks/src/bravo.rs"),
        structure_of: &["locks/src/bravo.rs"],
        ..L::INFO
    };

    const COUNTS: bool = L::COUNTS;

    fn about_to_wrap() -> Self {
        Self::around(L::about_to_wrap())
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        self.lock.lock_exclusive();
        // Relaxed: set by a reader under `L`.
        if self.biased.load(Ordering::Relaxed) != 0 {
            self.revoke();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        if !self.lock.try_lock_exclusive() {
            return false;
        }
        let alone = self.biased.load(Ordering::Relaxed) == 0 || self.try_revoke();
        if !alone {
            // SAFETY: just acquired.
            unsafe { self.lock.unlock_exclusive() };
        }
        alone
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        // Also while a writer has taken the bias away: its attempt may be in vain.
        let visible = P::visible_readers().iter().any(|reader| {
            // SAFETY: this is that lock, and only reads.
            let lock = unsafe { reader.lock() };
            lock.load(Ordering::Relaxed) == self.name()
        });
        Some(visible || RawRwLock::is_locked(&self.lock))
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // SAFETY: of the caller.
        unsafe { self.lock.unlock_exclusive() }
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

// SAFETY: readers and the writer exclude each other, as above; a guard stays
// with its CPU.
unsafe impl<P: Platform, L: RawLock<P, Ctx = ()> + RawRwLock> RawRwLock for Bravo<L, P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();
    type GuardMarker = lock_api::GuardNoSend;

    crate::lock_api_impl::shared_methods!();
}

// SAFETY: `L` leaves a reader where the writer was.
unsafe impl<P: Platform, L> RawRwLockDowngrade for Bravo<L, P>
where
    L: RawLock<P, Ctx = ()> + RawRwLockDowngrade,
{
    #[inline(always)]
    unsafe fn downgrade(&self) {
        // SAFETY: of the caller.
        unsafe { Self::downgrade(self) }
    }
}

#[cfg(all(test, feature = "std", not(miri)))]
mod tests {
    use super::*;
    use crate::native::NativePlatform as N;
    use crate::{QSpinlock, RwQueued};

    fn biased<L>(lock: &Bravo<L, N>) -> bool {
        lock.biased.load(Ordering::Relaxed) != 0
    }

    fn elsewhere<T: Send>(f: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(f).join().unwrap())
    }

    /// Returns what a reader does to the lock inside, by whether that is locked.
    fn bias_comes_and_goes<L>(lock: &Bravo<L, N>)
    where
        L: RawLock<N, Ctx = ()> + RawRwLock,
    {
        let writer_enters = || {
            elsewhere(|| {
                // SAFETY: released if acquired.
                unsafe {
                    let entered = lock.try_lock(&());
                    if entered {
                        lock.unlock(&());
                    }
                    entered
                }
            })
        };
        // SAFETY: released once for each time acquired.
        unsafe {
            lock.read();
            assert!(biased(lock), "by the first reader");
            assert!(RawRwLock::is_locked(&lock.lock));
            // Another lock is shown in this CPU's entry by the next reader.
            lock.read();
            assert!(!writer_enters() && biased(lock));
            lock.read();
            lock.read_unlock();
            assert!(!writer_enters());
            lock.read_unlock();
            assert!(!writer_enters(), "the first reader is still inside");
            lock.read_unlock();
            assert_eq!(RawLock::is_locked(lock), Some(false));

            assert!(lock.try_read());
            assert!(!RawRwLock::is_locked(&lock.lock), "only shown");
            assert_eq!(RawLock::is_locked(lock), Some(true));
            assert!(elsewhere(|| {
                let entered = lock.try_read();
                lock.read_unlock();
                entered
            }));
            lock.read_unlock();

            lock.lock(&());
            assert!(!biased(lock) && !elsewhere(|| lock.try_read()));
            lock.unlock(&());
            assert!(lock.inhibited.load(Ordering::Relaxed) > 0);
            lock.inhibited.store(usize::MAX >> 1, Ordering::Relaxed);
            lock.read();
            assert!(!biased(lock), "not before the time");
            lock.read_unlock();
        }
        assert_eq!(RawLock::is_locked(lock), Some(false));
    }

    #[test]
    fn the_bias_comes_with_readers_and_goes_with_a_writer() {
        bias_comes_and_goes(&BravoPhaseFair::<N>::new());
        bias_comes_and_goes(&Bravo::<RwQueued, N>::new());
    }

    /// A CPU shows one lock at a time.
    #[test]
    fn two_locks_are_read_at_once() {
        let locks = [const { BravoPhaseFair::<N>::new() }; 2];
        // SAFETY: released once for each time acquired.
        unsafe {
            for _ in 0..2 {
                locks[0].read();
                locks[1].read();
                for lock in &locks {
                    assert!(!elsewhere(|| lock.try_lock(&())));
                }
                locks[0].read_unlock();
                assert!(!elsewhere(|| locks[1].try_lock(&())));
                locks[1].read_unlock();
            }
            for lock in &locks {
                assert!(lock.try_lock(&()));
                lock.downgrade();
                assert!(!lock.try_lock(&()));
                lock.read_unlock();
            }
        }
    }

    /// A writer waits for the readers that it sees in the table.
    #[test]
    fn readers_and_writers_exclude_each_other() {
        static LOCK: lock_api::RwLock<BravoPhaseFair, [u32; 2]> = lock_api::RwLock::new([0; 2]);
        static TURNS: lock_api::Mutex<QSpinlock, u32> = lock_api::Mutex::new(0);
        std::thread::scope(|scope| {
            for n in 0..4 {
                scope.spawn(move || {
                    for turn in 0..500 {
                        if (turn + n) % 50 == 0 {
                            let mut data = LOCK.write();
                            data[0] += 1;
                            std::thread::yield_now();
                            data[1] += 1;
                            *TURNS.lock() += 1;
                        } else {
                            let data = LOCK.read();
                            assert_eq!(data[0], data[1], "a writer is inside");
                        }
                    }
                });
            }
        });
        assert_eq!(*LOCK.read(), [*TURNS.lock(); 2]);
    }
}
