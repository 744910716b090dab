//! The place of a queue of threads that sleep, found by the address of what they wait for.
//!
//! A lock of one byte has no room for a queue, so the queues of all locks are in one
//! table of the platform, as in WebKit's WTF::ParkingLot (F. Pizlo, "Locking in WebKit",
//! 2016). What is in a queue and when belongs to the locks; here it only has its place.

use crate::platform::{Atomic, Platform};
use core::ptr;

/// The queue of those who sleep for the addresses that share this place, on a cache line
/// of its own.
///
/// Who takes a sleeper out of it loses a wake-up, so that needs `unsafe`:
///
/// ```compile_fail,E0616
/// use locklab_locks::platform::Platform;
/// use locklab_locks::NativePlatform;
/// let _ = &NativePlatform::sleepers(0).unwrap().queue;
/// ```
#[repr(C, align(64))]
pub struct Sleepers<P: Platform> {
    queue: SleepQueue<P>,
}

/// Holds one place of [`Sleepers`]; its lock protects the rest.
#[doc(hidden)]
#[repr(C)]
pub struct SleepQueue<P: Platform> {
    /// Protects the rest.
    pub lock: P::U32,
    /// The seed from which the time of the next fair handoff is drawn.
    pub drawn: P::U32,
    /// The first sleeper and the last, for whichever address.
    pub first: P::Ptr<Sleeper<P>>,
    pub last: P::Ptr<Sleeper<P>>,
    /// The time of the next fair handoff, in units of 1,024 ns.
    pub fair_at: P::Usize,
}

/// A thread in such a queue, on its own stack.
#[doc(hidden)]
#[repr(C)]
pub struct Sleeper<P: Platform> {
    pub next: P::Ptr<Sleeper<P>>,
    /// The address that it sleeps for.
    pub address: P::Usize,
    /// The wish that it has there, as its lock numbers wishes.
    pub wants: P::U32,
    /// The number that its waker has told it.
    pub told: P::U32,
    /// 1 while it sleeps.
    pub asleep: P::U32,
}

impl<P: Platform> Sleepers<P> {
    /// A place where nobody sleeps.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NONE: Self = Self {
        queue: SleepQueue {
            lock: P::U32::ZERO,
            drawn: P::U32::ZERO,
            first: P::Ptr::ZERO,
            last: P::Ptr::ZERO,
            fair_at: P::Usize::ZERO,
        },
    };

    /// Returns the queue.
    ///
    /// # Safety
    /// The caller is the one code that keeps these queues.
    #[doc(hidden)]
    #[inline(always)]
    pub const unsafe fn queue(&self) -> &SleepQueue<P> {
        &self.queue
    }
}

impl<P: Platform> Default for Sleepers<P> {
    fn default() -> Self {
        Self {
            queue: SleepQueue {
                lock: P::U32::new(0),
                drawn: P::U32::new(0),
                first: P::Ptr::new(ptr::null_mut()),
                last: P::Ptr::new(ptr::null_mut()),
                fair_at: P::Usize::new(0),
            },
        }
    }
}

/// Returns which of `places` entries, a power of two, is that of an address: Fibonacci
/// hashing, because locks lie a power of two apart.
#[doc(hidden)]
#[inline]
pub fn place_of(address: usize, places: usize) -> usize {
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 32) as usize & (places - 1)
}

impl<P: Platform> Sleeper<P> {
    /// Makes a thread that is in no queue.
    pub fn new(address: usize, wants: u32) -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            address: P::Usize::new(address),
            wants: P::U32::new(wants),
            told: P::U32::new(0),
            asleep: P::U32::new(1),
        }
    }
}
