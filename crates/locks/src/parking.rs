//! Spin, then park: a way to wait that any lock can be given.
//!
//! [`Parking`] is the native platform with one difference: a waiter that has
//! read its word [`SPINS`] times in vain sleeps, and whoever writes the word
//! wakes it. No algorithm is written again: `Mcs<Parking<H>>` is the MCS lock
//! that parks. (A lock that waits by writing, as [`crate::Tas`] does, has no
//! word to sleep on and goes on spinning.)
//!
//! Sleepers meet writers in a parking lot: a table of buckets, found by the
//! address of the word, in the manner of futexes (H. Franke, R. Russell and
//! M. Kirkwood, "Fuss, Futexes and Furwocks", Ottawa Linux Symposium 2002)
//! but here so that words of any size can be slept on.
//!
//! Cost for who writes: after each write, one load of a counter that is not
//! zero only while someone sleeps. The write and that load must not trade
//! places, which would take a full fence in every unlock; instead the sleeper
//! pays, by [`ParkingHost::heavy_fence`] on all CPUs of the program, just
//! before it looks for the last time.
//!
//! A lock whose waiters all watch one word (ticket) wakes them all at each
//! handoff: park behind queues.

use crate::native::Host;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::qnode::QueueNodes;
use core::marker::PhantomData;
use core::sync::atomic::{self, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, compiler_fence};

/// How often a waiter reads before it sleeps. A relax takes some 40 cycles,
/// so this is about as long as a sleep and its wake-up cost; a waiter then
/// never loses more than twice what it had to (A. R. Karlin et al.,
/// "Empirical Studies of Competitive Spinning for a Shared-Memory
/// Multiprocessor", SOSP 1991).
pub const SPINS: u32 = 1024;

const BUCKETS: usize = 256;

/// Where the waiters of some words sleep.
#[repr(align(64))]
struct Bucket {
    /// How many sleep here or are about to.
    parked: AtomicU32,
    /// Changes with each wake-up; what they sleep on.
    epoch: AtomicU32,
}

static LOT: [Bucket; BUCKETS] = [const {
    Bucket {
        parked: AtomicU32::new(0),
        epoch: AtomicU32::new(0),
    }
}; BUCKETS];

/// How many sleep anywhere; and [`NO_HEAVY_FENCE`], which keeps every writer
/// off the short way.
static PARKED: AtomicU32 = AtomicU32::new(0);
const NO_HEAVY_FENCE: u32 = 1 << 31;

fn bucket(address: *const ()) -> &'static Bucket {
    // Fibonacci hashing: nodes lie a power of two apart.
    let hash = (address as usize as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &LOT[(hash >> 56) as usize % BUCKETS]
}

/// A host whose threads can sleep together.
pub trait ParkingHost: Host {
    /// A full fence on every CPU that runs a thread of this program, as
    /// Linux's `membarrier`; `false` if there is no such thing, now or ever
    /// after (see [`Parking::start`]), and then every writer fences for itself.
    fn heavy_fence() -> bool;

    /// Ends every [`Host::wait`] on `word`.
    fn wake_all(word: &AtomicU32);

    /// As [`Host::queue_nodes`], for this platform.
    fn parking_queue_nodes(cpu: usize) -> &'static QueueNodes<Parking<Self>>;
}

/// Real hardware, told about by `H`, on which waiters spin and then sleep.
pub struct Parking<H>(PhantomData<H>);

impl<H: ParkingHost> Parking<H> {
    /// Finds out whether there is a heavy fence. To be called before the
    /// first lock of this platform is used: a writer that has gone the short
    /// way cannot be told later that it should have fenced.
    pub fn start() {
        if !H::heavy_fence() {
            PARKED.fetch_or(NO_HEAVY_FENCE, Ordering::Relaxed);
        }
    }

    /// Empties the parking lot, in a process just forked: the sleepers stayed
    /// behind.
    pub fn forget_sleepers() {
        PARKED.fetch_and(NO_HEAVY_FENCE, Ordering::Relaxed);
        for bucket in &LOT {
            bucket.parked.store(0, Ordering::Relaxed);
        }
    }
}

/// An atomic word whose writers wake those who sleep on it.
#[repr(transparent)]
pub struct Watched<A, H>(A, PhantomData<H>);

impl<A, H: ParkingHost> Watched<A, H> {
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// After each write.
    #[inline(always)]
    fn written(&self) {
        // The order of the write before and the load after is the sleeper's
        // work (W3); the compiler must leave it too.
        compiler_fence(Ordering::SeqCst);
        if PARKED.load(Ordering::Relaxed) != 0 {
            Self::wake(self.address());
        }
    }

    // Takes the address only: after the write that released a lock, the
    // memory of the word may be gone.
    #[cold]
    #[inline(never)]
    fn wake(address: *const ()) {
        if PARKED.load(Ordering::Relaxed) & NO_HEAVY_FENCE != 0 {
            // W1: pairs with W3's own fence: the write before the load below.
            atomic::fence(Ordering::SeqCst);
        }
        let bucket = bucket(address);
        if bucket.parked.load(Ordering::Relaxed) != 0 {
            // W2: pairs with W4: who sees this epoch sees the write.
            bucket.epoch.fetch_add(1, Ordering::Release);
            H::wake_all(&bucket.epoch);
        }
    }

    /// Sleeps until a write, unless `done` after a last look.
    #[cold]
    #[inline(never)]
    fn park(&self, mut done: impl FnMut() -> bool) {
        let bucket = bucket(self.address());
        bucket.parked.fetch_add(1, Ordering::Relaxed);
        PARKED.fetch_add(1, Ordering::Relaxed);
        // W4: pairs with W2.
        let epoch = bucket.epoch.load(Ordering::Acquire);
        // W3: either the last look below sees a write, or its writer sees our
        // two counts: the fence falls before or after the write on the
        // writer's CPU. Without a heavy fence pairs with W1.
        H::heavy_fence();
        atomic::fence(Ordering::SeqCst);
        if !done() {
            H::wait(&bucket.epoch, epoch);
        }
        PARKED.fetch_sub(1, Ordering::Relaxed);
        bucket.parked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: Copy, A: Atomic<T>, H: ParkingHost> Atomic<T> for Watched<A, H> {
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
            self.park(|| poll(self.0.load(order)) == Poll::Done);
        }
    }
}

impl<T: Copy, A: AtomicInt<T>, H: ParkingHost> AtomicInt<T> for Watched<A, H> {
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

impl<A: LockWord, H: ParkingHost> LockWord for Watched<A, H> {
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

impl<H: ParkingHost> Platform for Parking<H> {
    type U8 = Watched<AtomicU8, H>;
    type U32 = Watched<AtomicU32, H>;
    type Usize = Watched<AtomicUsize, H>;
    type Ptr<T: 'static> = Watched<AtomicPtr<T>, H>;

    #[inline(always)]
    fn fence(order: Ordering) {
        atomic::fence(order);
    }

    #[inline(always)]
    fn relax() {
        core::hint::spin_loop();
    }

    #[inline(always)]
    fn cpu() -> usize {
        H::cpu()
    }

    #[inline(always)]
    fn node() -> usize {
        H::node()
    }

    #[inline(always)]
    fn now() -> u64 {
        H::now()
    }

    #[inline(always)]
    fn wait(word: &Self::U32, expected: u32) {
        H::wait(&word.0, expected);
    }

    #[inline(always)]
    fn wake(word: &Self::U32) {
        H::wake(&word.0);
    }

    #[inline(always)]
    fn virtualized() -> bool {
        H::virtualized()
    }

    #[inline(always)]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        H::parking_queue_nodes(cpu)
    }
}
