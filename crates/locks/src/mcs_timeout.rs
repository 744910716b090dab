//! An MCS lock whose waiters may give up.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Fairness, Info, RawLock, TimedLock};
use core::ptr;

/// In no queue.
const IDLE: u32 = 0;
/// Its owner waits.
const WAITING: u32 = 1;
/// Its owner has given up.
const GIVEN_UP: u32 = 2;
/// Has the lock; or a release is passing over it.
const GRANTED: u32 = 3;

/// Reads between two looks at the clock.
const READS: u32 = 64;

/// A waiter's place in the queue of an [`McsTimeout`] lock. After a timeout
/// it stays in place, and is used for no other lock, until
/// [`McsTimeoutNode::is_idle`].
#[repr(C, align(64))]
pub struct McsTimeoutNode<P: Platform = NativePlatform> {
    next: P::Ptr<McsTimeoutNode<P>>,
    state: P::U32,
}

impl<P: Platform> McsTimeoutNode<P> {
    /// A node that is in no queue.
    pub const fn new() -> Self {
        Self {
            next: P::Ptr::ZERO,
            state: P::U32::ZERO,
        }
    }

    /// Whether the node is in no queue, and may go.
    pub fn is_idle(&self) -> bool {
        // A1: pairs with A8.
        self.state.load(Ordering::Acquire) == IDLE
    }

    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }
}

impl<P: Platform> Default for McsTimeoutNode<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            state: P::U32::new(IDLE),
        }
    }
}

/// An abortable MCS lock: the tail of its queue, null when free.
///
/// **Paper:** M. L. Scott and W. N. Scherer III, "Scalable Queue-Based Spin Locks
/// with Timeout", PPoPP 2001, for the problem; the protocol, in which a node
/// that was given up stays in the queue until a release passes over it, is
/// that of M. Chabbi, A. Amer, S. Wen and X. Liu, "An Efficient
/// Abortable-locking Protocol for Multi-level NUMA Systems", PPoPP 2017.
///
/// **Size:** one pointer. **Per waiter:** one 64-byte node, which after a timeout
/// stays in use until a release has passed over it. **Fairness:** first come,
/// first served; who comes back before the queue has passed over it has kept
/// its place. Giving up takes one compare-and-swap and never waits.
#[repr(transparent)]
pub struct McsTimeout<P: Platform = NativePlatform> {
    tail: P::Ptr<McsTimeoutNode<P>>,
}

/// What [`McsTimeout::enter`] found.
enum Entered {
    Holder,
    Waiter,
}

impl<P: Platform> McsTimeout<P> {
    /// A free lock.
    pub const fn new() -> Self {
        Self { tail: P::Ptr::ZERO }
    }

    /// Takes a place in the queue, or the old one again.
    fn enter(&self, node: &McsTimeoutNode<P>) -> Entered {
        loop {
            // A2: pairs with A8: the release that passed over the node has
            // done with it.
            match node.state.load(Ordering::Acquire) {
                IDLE => break,
                GIVEN_UP => {
                    if node
                        .state
                        .compare_exchange(GIVEN_UP, WAITING, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok()
                    {
                        return Entered::Waiter;
                    }
                }
                // A release is passing over it: soon idle.
                _ => {
                    node.state
                        .spin_until(Ordering::Relaxed, |state| state != GRANTED);
                }
            }
        }
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.state.store(WAITING, Ordering::Relaxed);
        // A3: Acquire pairs with A7 (free at once); Release: the node is reset
        // before a successor links to it.
        let predecessor = self.tail.swap(node.address(), Ordering::AcqRel);
        if predecessor.is_null() {
            node.state.store(GRANTED, Ordering::Relaxed);
            return Entered::Holder;
        }
        // SAFETY: whoever releases the predecessor's node, its owner or one
        // that passes over it, waits for this link.
        let predecessor = unsafe { &*predecessor };
        // A4: pairs with A6.
        predecessor.next.store(node.address(), Ordering::Release);
        Entered::Waiter
    }

    /// Leaves the queue from `node` on: the first waiter that has not given
    /// up gets the lock.
    fn release(&self, node: &McsTimeoutNode<P>) {
        let mut node = node;
        loop {
            // A6: pairs with A4.
            let mut next = node.next.load(Ordering::Acquire);
            if next.is_null() {
                // A7: pairs with A3 of a CPU that finds the lock free.
                if self
                    .tail
                    .compare_exchange(
                        node.address(),
                        ptr::null_mut(),
                        Ordering::Release,
                        Ordering::Relaxed,
                    )
                    .is_ok()
                {
                    // A8: pairs with A1 and A2.
                    node.state.store(IDLE, Ordering::Release);
                    return;
                }
                // A6': pairs with A4.
                next = node
                    .next
                    .spin_until(Ordering::Acquire, |next| !next.is_null());
            }
            // A8: pairs with A1 and A2. The last use of this node.
            node.state.store(IDLE, Ordering::Release);
            // SAFETY: the next in line stays: it waits, or it has given up
            // and is bound to its place until we set it idle.
            let next = unsafe { &*next };
            // A9: Release pairs with A5. What was there says whether its owner
            // still waits.
            if next.state.swap(GRANTED, Ordering::Release) == WAITING {
                return;
            }
            node = next;
        }
    }
}

impl<P: Platform> Default for McsTimeout<P> {
    fn default() -> Self {
        Self {
            tail: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: as MCS; a node that was given up is passed over by the release that
// comes to it, which then acts for it, so there is one releaser at a time.
unsafe impl<P: Platform> RawLock<P> for McsTimeout<P> {
    type Ctx = McsTimeoutNode<P>;

    const INFO: Info = Info {
        name: "mcs-timeout",
        summary: "MCS whose waiters may give up; releases pass over them",
        fairness: Fairness::Fifo,
        timeout: true,
        bytes_per_waiter: 64,
        paper: "Scott and Scherer 2001; Chabbi et al. 2017",
        ..Info::BASE
    };

    #[inline]
    unsafe fn lock(&self, node: &McsTimeoutNode<P>) {
        if let Entered::Waiter = self.enter(node) {
            // A5: pairs with A9.
            node.state
                .spin_until(Ordering::Acquire, |state| state == GRANTED);
        }
    }

    #[inline]
    unsafe fn try_lock(&self, node: &McsTimeoutNode<P>) -> bool {
        // A2': as A2. A node that is still in the queue cannot try.
        if node.state.load(Ordering::Acquire) != IDLE {
            return false;
        }
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // A3': as A3.
        let free = self
            .tail
            .compare_exchange(
                ptr::null_mut(),
                node.address(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok();
        if free {
            node.state.store(GRANTED, Ordering::Relaxed);
        }
        free
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.tail.load(Ordering::Relaxed).is_null())
    }

    #[inline]
    unsafe fn unlock(&self, node: &McsTimeoutNode<P>) {
        self.release(node);
    }
}

// SAFETY: `true` with an empty queue or after a grant.
unsafe impl<P: Platform> TimedLock<P> for McsTimeout<P> {
    unsafe fn lock_until(&self, node: &McsTimeoutNode<P>, deadline: u64) -> bool {
        if let Entered::Holder = self.enter(node) {
            return true;
        }
        loop {
            // A5': pairs with A9.
            let state = node
                .state
                .spin(Ordering::Acquire, Patience::Reads(READS), |state| {
                    if state == GRANTED {
                        Poll::Done
                    } else {
                        Poll::Relax(1)
                    }
                });
            if state == GRANTED {
                return true;
            }
            if P::now() >= deadline {
                // Fails only if the lock has just come.
                // A5'': pairs with A9.
                return node
                    .state
                    .compare_exchange(WAITING, GIVEN_UP, Ordering::Relaxed, Ordering::Acquire)
                    .is_err();
            }
        }
    }
}
