//! Hemlock: a queue lock whose waiters keep one word each, for all locks.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use core::ptr;

/// Describes what a CPU supplies to [`Hemlock`]: its mailbox. While it holds or awaits a
/// lock with it, it stays in place.
#[repr(C, align(64))]
pub struct HemlockGrant<P: Platform = NativePlatform> {
    /// The lock that this CPU is handing over; null for none.
    grant: P::Ptr<Hemlock<P>>,
}

impl<P: Platform> HemlockGrant<P> {
    /// Returns an empty mailbox.
    pub const fn new() -> Self {
        Self {
            grant: P::Ptr::ZERO,
        }
    }
}

impl<P: Platform> Default for HemlockGrant<P> {
    fn default() -> Self {
        Self {
            grant: P::Ptr::new(ptr::null_mut()),
        }
    }
}

/// A Hemlock: the last CPU in its queue, null when free.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Hemlock;
///
/// static COUNT: NodeMutex<Hemlock, u32> = NodeMutex::new(Hemlock::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`HemlockMutex`](crate::queue::HemlockMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice and A. Kogan, "Hemlock: Compact and Scalable Mutual
/// Exclusion", SPAA 2021.
///
/// **Size:** one pointer. **Per waiter:** one word on a line of its own, which may
/// serve any number of locks that its CPU holds at once. **Fairness:** first
/// come, first served from the swap on. A waiter spins on its predecessor's
/// word, into which the predecessor writes the address of the lock that it
/// hands over; more than one successor may spin there only when the
/// predecessor holds several contended locks.
#[repr(transparent)]
pub struct Hemlock<P: Platform = NativePlatform> {
    tail: P::Ptr<HemlockGrant<P>>,
}

impl<P: Platform> Hemlock<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { tail: P::Ptr::ZERO }
    }

    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, predecessor: *mut HemlockGrant<P>) {
        // SAFETY: the predecessor's unlock waits until its mailbox is empty
        // again, which we see to below.
        let predecessor = unsafe { &*predecessor };
        // H2: pairs with H4: all that the predecessor did.
        predecessor
            .grant
            .spin_until(Ordering::Acquire, |lock| lock == self.address());
        // H3: pairs with H5. Nobody else empties a mailbox that names this
        // lock: it has one successor.
        predecessor.grant.store(ptr::null_mut(), Ordering::Release);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self, own: &HemlockGrant<P>) {
        // H4: pairs with H2.
        own.grant.store(self.address(), Ordering::Release);
        // H5: pairs with H3: the successor's last use of our mailbox comes
        // before whatever becomes of it.
        own.grant
            .spin_until(Ordering::Acquire, |lock| lock.is_null());
    }
}

impl<P: Platform> Default for Hemlock<P> {
    fn default() -> Self {
        Self {
            tail: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: the swap of the tail orders the CPUs in a queue; each enters when
// its predecessor hands over this lock, the first when the tail was null.
unsafe impl<P: Platform> RawLock<P> for Hemlock<P> {
    type Ctx = HemlockGrant<P>;

    const INFO: Info = Info {
        name: "hemlock",
        summary: "a queue lock with one mailbox a CPU for all its locks",
        fairness: Fairness::Fifo,
        bytes_per_waiter: 64,
        paper: "Dice and Kogan 2021",
        promises: "short-lived, one context",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, own: &HemlockGrant<P>) {
        // H1: Acquire pairs with H6 (free at once); Release makes the empty
        // mailbox visible to a successor, who reads it (H2).
        let predecessor = self
            .tail
            .swap(ptr::from_ref(own).cast_mut(), Ordering::AcqRel);
        if !predecessor.is_null() {
            self.wait(predecessor);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, own: &HemlockGrant<P>) -> bool {
        // H1': as H1. A mailbox may have been made just now, so its
        // initialisation must be published too.
        self.tail
            .compare_exchange(
                ptr::null_mut(),
                ptr::from_ref(own).cast_mut(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.tail.load(Ordering::Relaxed).is_null())
    }

    #[inline(always)]
    unsafe fn unlock(&self, own: &HemlockGrant<P>) {
        // H6: pairs with H1 of a CPU that finds the lock free.
        if self
            .tail
            .compare_exchange(
                ptr::from_ref(own).cast_mut(),
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_err()
        {
            self.hand_over(own);
        }
    }
}

// SAFETY: `unlock` waits until its successor has let go of the mailbox.
unsafe impl<P: Platform> crate::mutex::StackContext for Hemlock<P> {}
// SAFETY: the address that it writes is written at release, into a mailbox.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Hemlock<P> {}
