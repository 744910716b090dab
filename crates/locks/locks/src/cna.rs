//! CNA: an MCS lock that hands over within a NUMA node, in one word.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, Overtakes, RawLock};
use core::ptr;

/// Handoffs within a NUMA node before the waiters of other nodes go first.
const LOCAL: u32 = 256;

/// A waiter's place in the queue of a [`Cna`] lock; stays in place from
/// `lock` to the end of `unlock`.
///
/// Only `next` and `grant` are touched by two CPUs at once. The others are
/// written by their owner before it links, and then by holders.
#[repr(C, align(64))]
pub struct CnaNode<P: Platform = NativePlatform> {
    next: P::Ptr<CnaNode<P>>,
    /// Null while the owner must wait; [`alone`] for the lock with an empty
    /// second queue; otherwise the lock, and the head of the second queue.
    grant: P::Ptr<CnaNode<P>>,
    /// Points, in the head of the second queue, to the last node of that queue.
    second_tail: P::Ptr<CnaNode<P>>,
    numa: P::Usize,
    /// Number of handoffs within the NUMA node up to this one.
    local: P::U32,
}

impl<P: Platform> CnaNode<P> {
    /// Returns a node that is in no queue.
    pub const fn new() -> Self {
        Self {
            next: P::Ptr::ZERO,
            grant: P::Ptr::ZERO,
            second_tail: P::Ptr::ZERO,
            numa: P::Usize::ZERO,
            local: P::U32::ZERO,
        }
    }

    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }
}

impl<P: Platform> Default for CnaNode<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            grant: P::Ptr::new(ptr::null_mut()),
            second_tail: P::Ptr::new(ptr::null_mut()),
            numa: P::Usize::new(0),
            local: P::U32::new(0),
        }
    }
}

/// Returns the grant that means "and no second queue"; no node has this address.
fn alone<P: Platform>() -> *mut CnaNode<P> {
    ptr::without_provenance_mut(1)
}

/// A compact NUMA-aware lock: the tail of its main queue, null when free.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Cna;
///
/// static COUNT: NodeMutex<Cna, u32> = NodeMutex::new(Cna::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`CnaMutex`](crate::queue::CnaMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice and A. Kogan, "Compact NUMA-aware Locks", EuroSys 2019.
///
/// **Size:** one pointer, whatever the number of NUMA nodes. **Per waiter:** one
/// 64-byte node. **Fairness:** the holder passes the lock to the first waiter of
/// its own NUMA node and moves those it skips to a second queue, which goes
/// before the main one after at most 256 handoffs in a row within one
/// node (the paper flushes it at random; a count bounds the wait and makes
/// runs repeatable). Within a NUMA node: first come, first served.
#[repr(transparent)]
pub struct Cna<P: Platform = NativePlatform> {
    tail: P::Ptr<CnaNode<P>>,
}

impl<P: Platform> Cna<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { tail: P::Ptr::ZERO }
    }

    /// Waits until the predecessor hands the lock to `own`.
    ///
    /// # Safety
    /// `predecessor` was the tail that `own` has replaced.
    #[cold]
    #[inline(never)]
    unsafe fn wait(predecessor: *mut CnaNode<P>, own: &CnaNode<P>) {
        own.numa.store(P::node(), Ordering::Relaxed);
        // SAFETY: the predecessor stays until it has seen the link.
        let predecessor = unsafe { &*predecessor };
        // C2: pairs with C5, C6: our fields are set before a holder reads
        // them.
        predecessor.next.store(own.address(), Ordering::Release);
        // C3: pairs with C7.
        own.grant
            .spin_until(Ordering::Acquire, |grant| !grant.is_null());
    }

    /// Releases the lock, to a waiter if there is one.
    ///
    /// # Safety
    /// `own` is the holder's node.
    #[inline(always)]
    unsafe fn release(&self, own: &CnaNode<P>) {
        let second = own.grant.load(Ordering::Relaxed);
        // C5: pairs with C2; what a holder linked came with the lock.
        let mut next = own.next.load(Ordering::Acquire);
        if next.is_null() {
            let empty = second == alone();
            // With a second queue its last becomes the tail, and its head
            // gets the lock.
            let tail = if empty {
                ptr::null_mut()
            } else {
                // SAFETY: a waiter, who stays until granted.
                unsafe { (*second).second_tail.load(Ordering::Relaxed) }
            };
            // C4: pairs with C1 of a CPU that finds the lock free, or
            // queues behind the old second queue.
            if self
                .tail
                .compare_exchange(own.address(), tail, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                if !empty {
                    // SAFETY: as above.
                    unsafe { Self::grant(second, alone(), 0) };
                }
                return;
            }
            // C5': pairs with C2.
            next = own
                .next
                .spin_until(Ordering::Acquire, |next| !next.is_null());
        }
        // SAFETY: all nodes reached from `own` are of waiters, who stay.
        unsafe { Self::hand_over(own, next, second) };
    }

    /// Hands the lock to a waiter of the holder's NUMA node, or else to the first one.
    ///
    /// # Safety
    /// `own` is the holder's node, `next` the one behind it, `second` the
    /// second queue or [`alone`].
    #[cold]
    #[inline(never)]
    unsafe fn hand_over(own: &CnaNode<P>, next: *mut CnaNode<P>, second: *mut CnaNode<P>) {
        let local = own.local.load(Ordering::Relaxed);
        if local < P::preferences(LOCAL) {
            // SAFETY: of the caller.
            if let Some((heir, second)) = unsafe { Self::same_node(own, next, second) } {
                // SAFETY: `heir` waits.
                unsafe { Self::grant(heir, second, local + 1) };
                return;
            }
        }
        if second == alone() {
            // SAFETY: `next` waits.
            unsafe { Self::grant(next, alone(), 0) };
        } else {
            // The second queue goes before the main one.
            // SAFETY: `second` and its last wait.
            unsafe {
                let last = (*second).second_tail.load(Ordering::Relaxed);
                // Read by holders only (C5, C6), who have the lock from the
                // grant below or from grants after it: C7 and C3 order this
                // store, and the fields of `next` that C5 showed us, before
                // them. No Release, unlike C2, whose writer is no holder.
                (*last).next.store(next, Ordering::Relaxed);
                Self::grant(second, alone(), 0);
            }
        }
    }

    /// Finds the first waiter of the holder's NUMA node and moves those before
    /// it to the end of the second queue. Returns the waiter and the head of
    /// the second queue.
    ///
    /// # Safety
    /// Does the same as [`Self::hand_over`].
    unsafe fn same_node(
        own: &CnaNode<P>,
        next: *mut CnaNode<P>,
        second: *mut CnaNode<P>,
    ) -> Option<(*mut CnaNode<P>, *mut CnaNode<P>)> {
        let numa = own.numa.load(Ordering::Relaxed);
        // SAFETY: of the caller: linked nodes are of waiters, who stay.
        let first = unsafe { (*next).numa.load(Ordering::Relaxed) };
        if first == numa {
            return Some((next, second));
        }
        let mut last_skipped = next;
        loop {
            // C6: pairs with C2.
            // SAFETY: as above.
            let heir = unsafe { (*last_skipped).next.load(Ordering::Acquire) };
            if heir.is_null() {
                return None;
            }
            // SAFETY: as above.
            let its_numa = unsafe { (*heir).numa.load(Ordering::Relaxed) };
            if its_numa != numa {
                last_skipped = heir;
                continue;
            }
            // SAFETY: as above. None of the skipped is the tail: `heir`
            // stands behind them.
            unsafe {
                (*last_skipped)
                    .next
                    .store(ptr::null_mut(), Ordering::Relaxed);
                let head = if second == alone() {
                    next
                } else {
                    let last = (*second).second_tail.load(Ordering::Relaxed);
                    // Private to holders, as in `hand_over`.
                    (*last).next.store(next, Ordering::Relaxed);
                    second
                };
                (*head).second_tail.store(last_skipped, Ordering::Relaxed);
                return Some((heir, head));
            }
        }
    }

    /// Hands the lock, and the second queue, to `heir`.
    ///
    /// # Safety
    /// `heir` waits.
    unsafe fn grant(heir: *mut CnaNode<P>, second: *mut CnaNode<P>, local: u32) {
        // SAFETY: of the caller.
        let heir = unsafe { &*heir };
        heir.local.store(local, Ordering::Relaxed);
        // C7: pairs with C3.
        heir.grant.store(second, Ordering::Release);
    }

    fn prepare(own: &CnaNode<P>) {
        own.next.store(ptr::null_mut(), Ordering::Relaxed);
        own.grant.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// Marks the node of a holder that found the lock free.
    fn entered_free(own: &CnaNode<P>) {
        own.grant.store(alone(), Ordering::Relaxed);
        own.local.store(0, Ordering::Relaxed);
        own.numa.store(P::node(), Ordering::Relaxed);
    }
}

impl<P: Platform> Default for Cna<P> {
    fn default() -> Self {
        Self {
            tail: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: every waiter is in the main or the second queue, and a release
// grants exactly one of them, or frees the lock when both are empty.
unsafe impl<P: Platform> RawLock<P> for Cna<P> {
    type Ctx = CnaNode<P>;

    const INFO: Info = Info {
        name: "cna",
        summary: "MCS that hands over within a NUMA node; one word",
        fairness: Fairness::Bounded(
            "after 256 handoffs within one NUMA node the others come first",
        ),
        overtakes: Some(Overtakes::InAll(LOCAL)),
        numa_aware: true,
        bytes_per_waiter: 64,
        paper: "Dice and Kogan 2019",
        promises: "short-lived, short-lived in one node, prefers again, in order within a node, \
            prefers its node",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, own: &CnaNode<P>) {
        Self::prepare(own);
        // C1: Acquire pairs with C4; Release: our node is reset before a
        // successor links to it.
        let predecessor = self.tail.swap(own.address(), Ordering::AcqRel);
        if predecessor.is_null() {
            Self::entered_free(own);
        } else {
            // SAFETY: just replaced.
            unsafe { Self::wait(predecessor, own) };
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, own: &CnaNode<P>) -> bool {
        Self::prepare(own);
        // C1': as C1.
        let free = self
            .tail
            .compare_exchange(
                ptr::null_mut(),
                own.address(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok();
        if free {
            Self::entered_free(own);
        }
        free
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.tail.load(Ordering::Relaxed).is_null())
    }

    #[inline(always)]
    unsafe fn unlock(&self, own: &CnaNode<P>) {
        // SAFETY: the caller holds the lock with this node.
        unsafe { self.release(own) }
    }
}

// SAFETY: when `unlock` returns, no other CPU knows the node: the successor
// has linked, and links and queues that named it have been replaced.
unsafe impl<P: Platform> crate::mutex::StackContext for Cna<P> {}
// SAFETY: it names contexts of waiters only.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Cna<P> {}
