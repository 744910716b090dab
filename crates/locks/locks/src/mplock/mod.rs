//! The big lock: one recursive lock over a whole kernel, or over processes
//! that share memory.
//!
//! It follows the interface of OpenBSD's kernel lock (`__mp_lock`), as
//! described in the thread of 21 December 2025 on its tech list: a CPU may
//! acquire the lock again, and may release all its levels at once before it
//! sleeps. Four queues implement the one interface; their purpose is to show
//! what the layout and the queue cost.
//!
//! All of them hold indices and never pointers, and memory of zeros is a free
//! lock, so that each works in memory that processes map at different
//! addresses. [`Platform::cpu`] must then differ among all the processes.
//!
//! Never use it behind `lock_api::Mutex`: two guards of a recursive lock would
//! be two exclusive references to one value.

use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Info, RawLock};
use core::marker::PhantomData;

mod anderson;
mod clh;
mod mcs;
mod ticket;

pub use anderson::AndersonQueue;
pub use clh::ClhQueue;
pub use mcs::McsQueue;
pub use ticket::{Packed, Padded, TicketQueue};

/// The lock that OpenBSD ships: a ticket lock, the states of eight CPUs on a
/// line.
///
/// ```
/// use locklab_locks::kernel::{BigLock, MplockTicket};
/// use locklab_locks::RawLock;
///
/// static KERNEL: MplockTicket = MplockTicket::new();
/// // SAFETY: each release is of an acquisition of this thread.
/// unsafe {
///     KERNEL.lock(&());
///     KERNEL.lock(&());
///     assert_eq!(KERNEL.release_all(), 2);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - Its holder may acquire it again, and releases all levels at once. Waiters spin.
pub type MplockTicket<P = crate::NativePlatform, const MAXCPUS: usize = 512> =
    Mplock<TicketQueue<P, Packed<P>, MAXCPUS>, P>;
/// [`MplockTicket`] with each CPU's state on a line of its own.
///
/// ```
/// use locklab_locks::kernel::{BigLock, MplockTicketPadded};
/// use locklab_locks::RawLock;
///
/// static KERNEL: MplockTicketPadded = MplockTicketPadded::new();
/// // SAFETY: each release is of an acquisition of this thread.
/// unsafe {
///     KERNEL.lock(&());
///     KERNEL.lock(&());
///     assert_eq!(KERNEL.release_all(), 2);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - Its holder may acquire it again, and releases all levels at once. Waiters spin.
pub type MplockTicketPadded<P = crate::NativePlatform, const MAXCPUS: usize = 512> =
    Mplock<TicketQueue<P, Padded<P>, MAXCPUS>, P>;
/// The big lock on Anderson's array.
///
/// ```
/// use locklab_locks::kernel::{BigLock, MplockAnderson};
/// use locklab_locks::RawLock;
///
/// static KERNEL: MplockAnderson = MplockAnderson::new();
/// // SAFETY: each release is of an acquisition of this thread.
/// unsafe {
///     KERNEL.lock(&());
///     KERNEL.lock(&());
///     assert_eq!(KERNEL.release_all(), 2);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - Its holder may acquire it again, and releases all levels at once. Waiters spin.
pub type MplockAnderson<P = crate::NativePlatform, const MAXCPUS: usize = 512> =
    Mplock<AndersonQueue<P, MAXCPUS>, P>;
/// The big lock on a CLH queue.
///
/// ```
/// use locklab_locks::kernel::{BigLock, MplockClh};
/// use locklab_locks::RawLock;
///
/// static KERNEL: MplockClh = MplockClh::new();
/// // SAFETY: each release is of an acquisition of this thread.
/// unsafe {
///     KERNEL.lock(&());
///     KERNEL.lock(&());
///     assert_eq!(KERNEL.release_all(), 2);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - Its holder may acquire it again, and releases all levels at once. Waiters spin.
pub type MplockClh<P = crate::NativePlatform, const MAXCPUS: usize = 512> =
    Mplock<ClhQueue<P, MAXCPUS>, P>;
/// The big lock on an MCS queue.
///
/// ```
/// use locklab_locks::kernel::{BigLock, MplockMcs};
/// use locklab_locks::RawLock;
///
/// static KERNEL: MplockMcs = MplockMcs::new();
/// // SAFETY: each release is of an acquisition of this thread.
/// unsafe {
///     KERNEL.lock(&());
///     KERNEL.lock(&());
///     assert_eq!(KERNEL.release_all(), 2);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - Its holder may acquire it again, and releases all levels at once. Waiters spin.
pub type MplockMcs<P = crate::NativePlatform, const MAXCPUS: usize = 512> =
    Mplock<McsQueue<P, MAXCPUS>, P>;

/// A recursive lock whose levels its holder can release all at once.
///
/// `lock`, `try_lock` and `unlock` are those of [`RawLock`]; an `unlock`
/// undoes one `lock`.
pub trait BigLock<P: Platform>: RawLock<P, Ctx = ()> {
    /// Makes the lock free, whatever its memory contained: for memory that was
    /// not made by `new` or `default`.
    ///
    /// # Safety
    /// No CPU uses the lock.
    unsafe fn init(&self);

    /// Returns whether this CPU holds the lock. The answer stays valid until the caller
    /// itself changes it: no other CPU can.
    fn held(&self) -> bool;

    /// Releases every level that this CPU holds, and returns how many there
    /// were: 0 if it does not hold the lock.
    ///
    /// # Safety
    /// Does the same as [`RawLock::unlock`], for each of the levels.
    unsafe fn release_all(&self) -> u32;

    /// Acquires the lock `depth` times: the inverse of
    /// [`BigLock::release_all`].
    ///
    /// # Safety
    /// Does the same as [`RawLock::lock`].
    unsafe fn acquire_count(&self, depth: u32) {
        for _ in 0..depth {
            // SAFETY: the caller's promise is the same.
            unsafe { self.lock(&()) };
        }
    }
}

/// The queue of a big lock: its CPUs are numbered, and it stores a recursion
/// depth and a place for each of them.
///
/// # Safety
/// An implementation admits one CPU at a time between `enter` and `leave`,
/// and orders what they do, as [`RawLock`].
pub unsafe trait Queue<P: Platform>: Default + Send + Sync + 'static {
    /// Name of the lock on this queue.
    const NAME: &'static str;
    /// Summary of the lock on this queue.
    const SUMMARY: &'static str;
    /// What [`Info::promises`] is of the lock on this queue.
    #[doc(hidden)]
    const PROMISES: &'static str = "";
    /// Paper of the lock on this queue.
    const PAPER: &'static str;
    /// Says whether `try_enter` can succeed.
    const TRY: bool;
    /// The greatest number of CPUs: a power of two.
    const MAXCPUS: usize;
    /// Means what [`RawLock::COUNTS`] means.
    #[doc(hidden)]
    const COUNTS: bool = false;

    /// Does what [`RawLock::about_to_wrap`] does.
    #[doc(hidden)]
    fn about_to_wrap() -> Self {
        Self::default()
    }

    /// A free queue, as a constant.
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self;

    /// Makes the queue empty.
    ///
    /// # Safety
    /// No CPU uses it.
    unsafe fn init(&self);

    /// Returns how often `cpu` has acquired the lock. No other CPU accesses it.
    fn depth(&self, cpu: usize) -> &P::U32;

    /// Takes a place for `cpu`, and waits until it is served.
    ///
    /// # Safety
    /// This is `cpu`, and it has no place.
    unsafe fn enter(&self, cpu: usize);

    /// Takes a place for `cpu` if it would be served at once.
    ///
    /// # Safety
    /// Does the same as [`Queue::enter`].
    unsafe fn try_enter(&self, cpu: usize) -> bool;

    /// Returns whether the place of `cpu`, which has one, is served.
    fn served(&self, cpu: usize) -> bool;

    /// Gives up the place and serves the next CPU.
    ///
    /// # Safety
    /// This is `cpu`, and its place is served.
    unsafe fn leave(&self, cpu: usize);
}

/// A recursive lock on a [`Queue`].
///
/// The depth is written before the CPU waits and before it releases, together
/// with its place: a kernel that acquires the lock in interrupt handlers too
/// disables interrupts around each call.
#[repr(C)]
pub struct Mplock<Q, P = crate::NativePlatform> {
    queue: Q,
    platform: PhantomData<P>,
}

impl<P: Platform, Q: Queue<P>> Mplock<Q, P> {
    const POWER_OF_TWO: () = assert!(
        Q::MAXCPUS.is_power_of_two() && Q::MAXCPUS >= 2,
        "the number of CPUs is a power of two, two at least"
    );

    /// Returns a free lock.
    pub const fn new() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            queue: Q::FREE,
            platform: PhantomData,
        }
    }
}

impl<P: Platform, Q: Queue<P>> Default for Mplock<Q, P> {
    fn default() -> Self {
        const { Self::POWER_OF_TWO };
        Self {
            queue: Q::default(),
            platform: PhantomData,
        }
    }
}

// SAFETY: a CPU has a place while its depth is not zero, and holds the lock
// once the queue serves it.
unsafe impl<P: Platform, Q: Queue<P>> RawLock<P> for Mplock<Q, P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: Q::NAME,
        summary: Q::SUMMARY,
        fairness: crate::raw::Fairness::Fifo,
        recursive: true,
        try_lock: Q::TRY,
        shared_memory: true,
        max_cpus: Q::MAXCPUS,
        paper: Q::PAPER,
        cpu_numbers: true,
        promises: Q::PROMISES,
        ..Info::BASE
    };

    const COUNTS: bool = Q::COUNTS;

    fn about_to_wrap() -> Self {
        Self {
            queue: Q::about_to_wrap(),
            platform: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        let cpu = P::cpu();
        let depth = self.queue.depth(cpu);
        let before = depth.load(Ordering::Relaxed);
        depth.store(before + 1, Ordering::Relaxed);
        if before == 0 {
            // SAFETY: depth 0: this CPU has no place.
            unsafe { self.queue.enter(cpu) };
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        if !Q::TRY {
            return false;
        }
        let cpu = P::cpu();
        let depth = self.queue.depth(cpu);
        let before = depth.load(Ordering::Relaxed);
        // SAFETY: depth 0: this CPU has no place.
        if before == 0 && !unsafe { self.queue.try_enter(cpu) } {
            return false;
        }
        depth.store(before + 1, Ordering::Relaxed);
        true
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        let cpu = P::cpu();
        let depth = self.queue.depth(cpu);
        let after = depth.load(Ordering::Relaxed) - 1;
        depth.store(after, Ordering::Relaxed);
        if after == 0 {
            // SAFETY: the caller holds the lock.
            unsafe { self.queue.leave(cpu) };
        }
    }
}

impl<P: Platform, Q: Queue<P>> BigLock<P> for Mplock<Q, P> {
    unsafe fn init(&self) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.queue.init() };
    }

    #[inline(always)]
    fn held(&self) -> bool {
        let cpu = P::cpu();
        // A depth alone may be that of a wait, seen from an interrupt.
        self.queue.depth(cpu).load(Ordering::Relaxed) != 0 && self.queue.served(cpu)
    }

    unsafe fn release_all(&self) -> u32 {
        let cpu = P::cpu();
        let depth = self.queue.depth(cpu);
        let levels = depth.load(Ordering::Relaxed);
        if levels != 0 {
            depth.store(0, Ordering::Relaxed);
            // SAFETY: the caller holds the lock, or there is nothing to do.
            unsafe { self.queue.leave(cpu) };
        }
        levels
    }
}
