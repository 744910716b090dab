//! Spin, then park: a waiting policy that any lock can use.

use crate::native::{AtomicU32, Host, Native};
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::qnode::QueueNodes;
use crate::sleepers::Sleepers;
use crate::visible_reader::VisibleReader;
use core::marker::PhantomData;
use core::sync::atomic::compiler_fence;

/// Limits how often a waiter reads before it sleeps. A relax takes some 40 cycles,
/// so this is about as long as a sleep and its wake-up take; a waiter then
/// never loses more than twice the minimum (A. R. Karlin et al.,
/// "Empirical Studies of Competitive Spinning for a Shared-Memory
/// Multiprocessor", SOSP 1991).
pub const SPINS: u32 = 1024;

const BUCKETS: usize = 256;

/// The place where the waiters of some words sleep.
#[repr(align(64))]
#[derive(Default)]
pub struct Bucket<U> {
    /// Number of threads that sleep here or are about to.
    parked: U,
    /// The word they sleep on; it changes with each wake-up.
    epoch: U,
}

impl<U: Atomic<u32>> Bucket<U> {
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: Self = Self {
        parked: U::ZERO,
        epoch: U::ZERO,
    };

    /// Makes a bucket in which no thread sleeps.
    pub fn new() -> Self {
        Self {
            parked: U::new(0),
            epoch: U::new(0),
        }
    }

    /// Returns the number of threads that sleep here or are about to: for the checker.
    #[doc(hidden)]
    pub fn parked(&self) -> u32 {
        self.parked.load(Ordering::Relaxed)
    }
}

static LOT: [Bucket<AtomicU32>; BUCKETS] = [const { Bucket::EMPTY }; BUCKETS];

/// See [`ParkingWorld::parked`].
static PARKED: AtomicU32 = AtomicU32::new(0);

/// Bit in [`ParkingWorld::parked`]: there is no heavy fence, which keeps every
/// writer off the fast path.
pub const NO_HEAVY_FENCE: u32 = 1 << 31;

/// Describes what the parking lot is built on and how its sleepers sleep: a program,
/// a kernel ([`ParkingHost`]), or a model checker.
///
/// # Safety
/// - [`ParkingWorld::parked`] and [`ParkingWorld::bucket`] always return the
///   same word and, for one address, the same bucket;
/// - [`ParkingWorld::queue_nodes`] and [`ParkingWorld::wake_all`] keep the
///   promises of [`Platform`], and no function unwinds.
///
/// Fences that are too weak cost a wake-up (a waiter sleeps for
/// ever), never exclusion.
pub unsafe trait ParkingWorld: Sized + Send + Sync + 'static {
    /// The platform whose words are watched.
    type Base: Platform;

    /// Returns the number of sleepers in all buckets, and [`NO_HEAVY_FENCE`].
    fn parked() -> &'static Word<Self>;

    /// Returns the bucket of the waiters for the word at this address.
    fn bucket(address: *const ()) -> &'static Bucket<Word<Self>>;

    /// Executes the writer's half of a pair of fences that together are a full one: it
    /// keeps the compiler from moving accesses, and costs nothing.
    #[track_caller]
    fn light_fence();

    /// Executes the sleeper's half: a full fence, on every CPU of the program. Where
    /// there is none, [`NO_HEAVY_FENCE`] is set and this may do nothing.
    fn heavy_fence();

    /// Works as [`Platform::wait`].
    #[track_caller]
    fn wait(word: &Word<Self>, expected: u32);

    /// Ends every wait on `word`.
    #[track_caller]
    fn wake_all(word: &Word<Self>);

    /// Works as [`Platform::queue_nodes`], for this platform.
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Parking<Self>>;

    /// Works as [`Platform::visible_readers`], for this platform. None by default.
    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Parking<Self>>] {
        &[]
    }

    /// Works as [`Platform::sleepers`], for this platform. None by default.
    #[inline(always)]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Parking<Self>>> {
        let _ = address;
        None
    }
}

/// A 32-bit word of the platform below.
pub(crate) type Word<W> = <<W as ParkingWorld>::Base as Platform>::U32;

/// A host whose threads can sleep in a parking lot.
///
/// # Safety
/// [`ParkingHost::parking_queue_nodes`] keeps the promise of
/// [`Platform::queue_nodes`]; [`ParkingHost::wake_all`] uses only the address
/// of `word`; no function unwinds.
pub unsafe trait ParkingHost: Host {
    /// Executes a full fence on every CPU that runs a thread of this program, as Linux's
    /// `membarrier`. Returns `false` if there is no such fence, now or later
    /// (see [`Parking::start`]), and then every writer fences for itself.
    fn heavy_fence() -> bool;

    /// Ends every [`Host::wait`] on `word`.
    fn wake_all(word: &AtomicU32);

    /// Works as [`Host::queue_nodes`], for this platform.
    fn parking_queue_nodes(cpu: usize) -> &'static QueueNodes<Parking<Self>>;

    /// Works as [`Host::visible_readers`], for this platform. None by default.
    #[inline(always)]
    fn parking_visible_readers() -> &'static [VisibleReader<Parking<Self>>] {
        &[]
    }

    /// Works as [`Host::sleepers`], for this platform. None by default.
    #[inline(always)]
    fn parking_sleepers(address: usize) -> Option<&'static Sleepers<Parking<Self>>> {
        let _ = address;
        None
    }
}

// SAFETY: one static counter, one static table; the rest is the promise of `H`.
unsafe impl<H: ParkingHost> ParkingWorld for H {
    type Base = Native<H>;

    #[inline(always)]
    fn parked() -> &'static AtomicU32 {
        &PARKED
    }

    #[inline(always)]
    fn bucket(address: *const ()) -> &'static Bucket<AtomicU32> {
        // This is Fibonacci hashing: nodes lie a power of two apart.
        let hash = (address as usize as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &LOT[(hash >> 56) as usize % BUCKETS]
    }

    #[inline(always)]
    fn light_fence() {
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn heavy_fence() {
        <H as ParkingHost>::heavy_fence();
    }

    #[inline(always)]
    fn wait(word: &AtomicU32, expected: u32) {
        <H as Host>::wait(word, expected);
    }

    #[inline(always)]
    fn wake_all(word: &AtomicU32) {
        <H as ParkingHost>::wake_all(word);
    }

    #[inline(always)]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Parking<Self>> {
        H::parking_queue_nodes(cpu)
    }

    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Parking<Self>>] {
        H::parking_visible_readers()
    }

    #[inline(always)]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Parking<Self>>> {
        H::parking_sleepers(address)
    }
}

/// The platform below `W`, on which waiters spin and then sleep.
///
/// [`Parking`] is a platform with one difference: a waiter that has
/// read its word [`SPINS`] times in vain sleeps, and whoever writes the word
/// wakes it. No algorithm is written again: `Mcs<Parking<H>>` is the MCS lock
/// that parks. (A lock that waits by writing, as `Tas` does, has no
/// word to sleep on and continues to spin.)
///
/// Sleepers and writers meet in a parking lot: a table of buckets, found by the
/// address of the word, in the manner of futexes (H. Franke, R. Russell and
/// M. Kirkwood, "Fuss, Futexes and Furwocks", Ottawa Linux Symposium 2002)
/// but for words of any size.
///
/// The cost for writers: after each write, one load of a counter that is zero
/// unless a thread sleeps. The write and that load must not be reordered, which
/// would take a full fence in every unlock; instead the sleeper pays, by
/// [`ParkingWorld::heavy_fence`] on all CPUs of the program, just before its
/// last check.
///
/// A lock whose waiters all watch one word (ticket) wakes them all at each
/// handoff: combine parking with queue locks.
pub struct Parking<W>(PhantomData<W>);

impl<H: ParkingHost> Parking<H> {
    /// Finds out whether there is a heavy fence. To be called before the first
    /// lock of this platform is used: a writer that has already used the fast
    /// path cannot fence afterwards.
    pub fn start() {
        if !<H as ParkingHost>::heavy_fence() {
            PARKED.fetch_or(NO_HEAVY_FENCE, Ordering::Relaxed);
        }
    }

    /// Empties the parking lot in a newly forked process: the sleepers stayed
    /// in the parent.
    pub fn forget_sleepers() {
        PARKED.fetch_and(NO_HEAVY_FENCE, Ordering::Relaxed);
        for bucket in &LOT {
            bucket.parked.store(0, Ordering::Relaxed);
        }
    }
}

/// An atomic word whose writers wake the threads that sleep on it.
#[repr(transparent)]
pub struct Watched<A, W>(A, PhantomData<W>);

impl<A, W: ParkingWorld> Watched<A, W> {
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// Wakes sleepers after each write, if there are any.
    #[inline(always)]
    fn written(&self) {
        // W5: pairs with W3: the write before, the load after. It costs the
        // writer nothing, because the sleeper pays for both.
        W::light_fence();
        if W::parked().load(Ordering::Relaxed) != 0 {
            Self::wake(self.address());
        }
    }

    // Takes the address only: after the write that released a lock, the
    // memory of the word may be gone.
    #[cold]
    #[inline(never)]
    fn wake(address: *const ()) {
        if W::parked().load(Ordering::Relaxed) & NO_HEAVY_FENCE != 0 {
            // W1: pairs with W3's own fence: the write before the load below.
            W::Base::fence(Ordering::SeqCst);
        }
        let bucket = W::bucket(address);
        if bucket.parked.load(Ordering::Relaxed) != 0 {
            // Relaxed, and so is the sleeper's read: who sees this epoch sees
            // the write, because the fence between the write and this (W5 or
            // W1) then comes before the one between that read and the last
            // look (W3).
            bucket.epoch.fetch_add(1, Ordering::Relaxed);
            W::wake_all(&bucket.epoch);
        }
    }

    /// Sleeps until a write, unless `done` holds at a last check.
    #[cold]
    #[inline(never)]
    fn park(&self, mut done: impl FnMut() -> bool) {
        let bucket = W::bucket(self.address());
        bucket.parked.fetch_add(1, Ordering::Relaxed);
        W::parked().fetch_add(1, Ordering::Relaxed);
        let epoch = bucket.epoch.load(Ordering::Relaxed);
        // W3: either the last look below sees a write, or its writer sees our
        // two counts: the fence falls before or after the write on the
        // writer's CPU. Pairs with W5; without a heavy fence with W1.
        W::heavy_fence();
        W::Base::fence(Ordering::SeqCst);
        if !done() {
            W::wait(&bucket.epoch, epoch);
        }
        W::parked().fetch_sub(1, Ordering::Relaxed);
        bucket.parked.fetch_sub(1, Ordering::Relaxed);
    }
}

// SAFETY: each method is that of `A`; what follows a write changes no word.
unsafe impl<T: Copy, A: Atomic<T>, W: ParkingWorld> Atomic<T> for Watched<A, W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self = Self(A::ZERO, PhantomData);

    #[inline(always)]
    fn new(value: T) -> Self {
        Self(A::new(value), PhantomData)
    }

    #[inline(always)]
    fn load(&self, order: Ordering) -> T {
        self.0.load(order)
    }

    #[inline(always)]
    fn store(&self, value: T, order: Ordering) {
        self.0.store(value, order);
        self.written();
    }

    #[inline(always)]
    fn swap(&self, value: T, order: Ordering) -> T {
        let old = self.0.swap(value, order);
        self.written();
        old
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        let result = self.0.compare_exchange(current, new, success, failure);
        if result.is_ok() {
            self.written();
        }
        result
    }

    #[inline(always)]
    fn spin(&self, order: Ordering, patience: Patience, mut poll: impl FnMut(T) -> Poll) -> T {
        if patience != Patience::Forever {
            return self.0.spin(order, patience, poll);
        }
        loop {
            let mut done = false;
            let value = self.0.spin(order, Patience::Reads(SPINS), |value| {
                let next = poll(value);
                done |= next == Poll::Done;
                next
            });
            if done {
                return value;
            }
            // Only the reads above acquire: they come next if this one saw
            // what they wait for.
            self.park(|| poll(self.0.load(Ordering::Relaxed)) == Poll::Done);
        }
    }
}

// SAFETY: as `Atomic`.
unsafe impl<T: Copy, A: AtomicInt<T>, W: ParkingWorld> AtomicInt<T> for Watched<A, W> {
    #[inline(always)]
    fn fetch_add(&self, value: T, order: Ordering) -> T {
        let old = self.0.fetch_add(value, order);
        self.written();
        old
    }

    #[inline(always)]
    fn fetch_sub(&self, value: T, order: Ordering) -> T {
        let old = self.0.fetch_sub(value, order);
        self.written();
        old
    }

    #[inline(always)]
    fn fetch_and(&self, value: T, order: Ordering) -> T {
        let old = self.0.fetch_and(value, order);
        self.written();
        old
    }

    #[inline(always)]
    fn fetch_or(&self, value: T, order: Ordering) -> T {
        let old = self.0.fetch_or(value, order);
        self.written();
        old
    }
}

// SAFETY: as `Atomic`.
unsafe impl<A: LockWord, W: ParkingWorld> LockWord for Watched<A, W> {
    #[inline(always)]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        self.0.store_low_byte(value, order);
        self.written();
    }

    #[inline(always)]
    fn store_low_half(&self, value: u16, order: Ordering) {
        self.0.store_low_half(value, order);
        self.written();
    }

    #[inline(always)]
    fn increment_low_half(&self, order: Ordering) {
        self.0.increment_low_half(order);
        self.written();
    }

    #[inline(always)]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let old = self.0.swap_high_half(value, order);
        self.written();
        old
    }
}

// SAFETY: the words are `Watched`; the rest is the platform below, and the
// promise of `W` for the queue nodes.
unsafe impl<W: ParkingWorld> Platform for Parking<W> {
    type U8 = Watched<<W::Base as Platform>::U8, W>;
    type U32 = Watched<Word<W>, W>;
    type Usize = Watched<<W::Base as Platform>::Usize, W>;
    type Ptr<T: 'static> = Watched<<W::Base as Platform>::Ptr<T>, W>;

    #[inline(always)]
    fn fence(order: Ordering) {
        W::Base::fence(order);
    }

    #[inline(always)]
    fn interrupt_fence() {
        W::Base::interrupt_fence();
    }

    #[inline(always)]
    fn relax() {
        W::Base::relax();
    }

    #[inline(always)]
    fn cpu() -> usize {
        W::Base::cpu()
    }

    #[inline(always)]
    fn try_cpu() -> Option<usize> {
        W::Base::try_cpu()
    }

    #[inline(always)]
    fn node() -> usize {
        W::Base::node()
    }

    #[inline(always)]
    fn now() -> u64 {
        W::Base::now()
    }

    #[inline(always)]
    fn wait(word: &Self::U32, expected: u32) {
        W::Base::wait(&word.0, expected);
    }

    #[inline(always)]
    fn wake(word: &Self::U32) {
        W::Base::wake(&word.0);
    }

    #[inline(always)]
    fn wake_if_any(word: &Self::U32) -> bool {
        W::Base::wake_if_any(&word.0)
    }

    #[inline(always)]
    unsafe fn wake_at(word: *const Self::U32) {
        // SAFETY: the caller's promise, for the same word in a transparent wrapper.
        unsafe { W::Base::wake_at(word.cast()) };
    }

    #[inline(always)]
    fn wake_all(word: &Self::U32) {
        W::Base::wake_all(&word.0);
    }

    #[inline(always)]
    fn yield_cpu() {
        W::Base::yield_cpu();
    }

    #[inline(always)]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Self>> {
        W::sleepers(address)
    }

    #[inline(always)]
    fn preferences(bound: u32) -> u32 {
        W::Base::preferences(bound)
    }

    #[inline(always)]
    fn virtualized() -> bool {
        W::Base::virtualized()
    }

    #[inline(always)]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        W::queue_nodes(cpu)
    }

    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Self>] {
        W::visible_readers()
    }
}
