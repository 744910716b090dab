//! The MCS lock: a queue of waiters, each spinning on its own node.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use core::ptr;

/// A waiter's place in the queue of an [`Mcs`] lock. It neither moves nor is
/// used for another lock between `lock` and the end of `unlock`.
#[repr(C, align(64))]
pub struct McsNode<P: Platform = NativePlatform> {
    /// The waiter behind this one.
    next: P::Ptr<McsNode<P>>,
    /// 0 while its owner must wait; only a waiting owner sets it to 0.
    granted: P::U32,
}

impl<P: Platform> McsNode<P> {
    /// Returns a node that is in no queue.
    pub const fn new() -> Self {
        Self {
            next: P::Ptr::ZERO,
            granted: P::U32::ZERO,
        }
    }

    /// Returns whether a waiter has linked itself behind this node: for the release, and
    /// for a composition (the cohort locks).
    #[inline(always)]
    pub(crate) fn has_successor(&self) -> bool {
        !self.next.load(Ordering::Relaxed).is_null()
    }
}

impl<P: Platform> Default for McsNode<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            granted: P::U32::new(0),
        }
    }
}

/// An MCS lock: the tail of its queue of waiters, null when free.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Mcs;
///
/// static COUNT: NodeMutex<Mcs, u32> = NodeMutex::new(Mcs::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`McsMutex`](crate::queue::McsMutex) lists them.
///
/// # Properties
///
/// **Paper:** J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable
/// Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991,
/// section 2.4 (the variant with compare-and-swap).
///
/// **Size:** one pointer. **Per waiter:** one 64-byte node, free again after
/// the unlock.
/// **Fairness:** first come, first served from the swap on. A handoff touches
/// one line of one waiter, whatever the number of waiters.
#[repr(transparent)]
pub struct Mcs<P: Platform = NativePlatform> {
    tail: P::Ptr<McsNode<P>>,
}

impl<P: Platform> Mcs<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { tail: P::Ptr::ZERO }
    }

    /// Waits behind a predecessor. Public for the C header, whose fast
    /// path has swapped the tail.
    ///
    /// # Safety
    /// `node` has just replaced `predecessor`, not null, as a tail.
    #[doc(hidden)]
    #[cold]
    pub unsafe fn wait(predecessor: *mut McsNode<P>, node: &McsNode<P>) {
        // SAFETY: the caller's promise is the same.
        unsafe { Self::wait_behind(node, predecessor) }
    }

    /// Does what [`Self::wait`] does. The arguments are in this order so that the fast
    /// path need not move them between registers.
    #[cold]
    #[inline(never)]
    unsafe fn wait_behind(node: &McsNode<P>, predecessor: *mut McsNode<P>) {
        // Nobody grants before M3 names us.
        node.granted.store(0, Ordering::Relaxed);
        // SAFETY: the predecessor's unlock does not return before it has
        // seen its `next` set, which is the store below; until then its node
        // stays in place (contract of `lock`).
        let predecessor = unsafe { &*predecessor };
        // M3: pairs with M6: `granted` = 0 comes before the grant.
        predecessor
            .next
            .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
        // M4: pairs with M7: all that the predecessor did.
        node.granted
            .spin_until(Ordering::Acquire, |granted| granted != 0);
    }

    /// Hands the lock to a successor that is linked or about to be. Public
    /// for the C header, whose fast path has found one or has failed to empty
    /// the queue.
    ///
    /// # Safety
    /// `node` is the holder's, and another has replaced it as the tail.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub unsafe fn hand_over(node: &McsNode<P>) {
        // M6: pairs with M3. A swap (M2) that put us out of the tail is
        // always followed by that store.
        let next = node
            .next
            .spin_until(Ordering::Acquire, |next| !next.is_null());
        // SAFETY: the successor waits until the store below.
        let next = unsafe { &*next };
        // M7: pairs with M4.
        next.granted.store(1, Ordering::Release);
    }
}

impl<P: Platform> Default for Mcs<P> {
    fn default() -> Self {
        Self {
            tail: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: the swap of the tail orders the waiters in a queue; each enters
// when its predecessor grants, the first when the tail was null.
unsafe impl<P: Platform> RawLock<P> for Mcs<P> {
    type Ctx = McsNode<P>;

    const INFO: Info = Info {
        name: "mcs",
        summary: "a queue of waiters, each spinning on its own node",
        fairness: Fairness::Fifo,
        bytes_per_waiter: 64,
        paper: "Mellor-Crummey and Scott 1991",
        promises: "short-lived",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, node: &McsNode<P>) {
        // M1: no other CPU knows the node yet.
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // M2: Acquire pairs with M5 (free at once); Release makes M1 visible
        // to a successor, whose swap reads ours and then writes our `next`.
        let predecessor = self
            .tail
            .swap(ptr::from_ref(node).cast_mut(), Ordering::AcqRel);
        if !predecessor.is_null() {
            // SAFETY: just swapped.
            unsafe { Self::wait_behind(node, predecessor) };
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, node: &McsNode<P>) -> bool {
        // M1': as M1.
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // M2': as M2.
        self.tail
            .compare_exchange(
                ptr::null_mut(),
                ptr::from_ref(node).cast_mut(),
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
    unsafe fn unlock(&self, node: &McsNode<P>) {
        // As published, `next` first: with a successor linked the tail is not
        // touched. To try the tail first would move its line, which those
        // who come are swapping, in every handoff.
        // M5: pairs with M2 of a CPU that finds the lock free.
        if node.has_successor()
            || self
                .tail
                .compare_exchange(
                    ptr::from_ref(node).cast_mut(),
                    ptr::null_mut(),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_err()
        {
            // SAFETY: we hold the lock, and the tail is not our node.
            unsafe { Self::hand_over(node) };
        }
    }
}

// SAFETY: `unlock` waits until its successor no longer needs the node.
unsafe impl<P: Platform> crate::mutex::StackContext for Mcs<P> {}
// SAFETY: it names contexts of waiters only.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Mcs<P> {}
