//! The CLH lock: a queue in which each waiter spins on its predecessor's
//! node, and leaves with that node instead of its own.

use crate::line::CacheLine;
use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use core::cell::Cell;
use core::ptr;

/// One place in the queue of a [`Clh`] lock; 0 once its user has released
/// the lock.
#[repr(C, align(64))]
pub struct ClhNode<P: Platform = NativePlatform> {
    held: P::U32,
}

/// Describes what a CPU supplies to a [`Clh`] lock: its first node, and a record of which
/// node it owns now. Nodes migrate among the handles and locks that meet, so all of these
/// stay in place until all are idle, and are then dropped together.
#[repr(C)]
pub struct ClhHandle<P: Platform = NativePlatform> {
    own: ClhNode<P>,
    now: CacheLine<Place<P>>,
}

/// Private to its CPU, and on a line of its own.
struct Place<P: Platform> {
    /// The node of the next acquisition, or of the current one; null
    /// for the handle's own.
    node: Cell<*const ClhNode<P>>,
    /// The node before it, which becomes ours at unlock.
    before: Cell<*const ClhNode<P>>,
}

impl<P: Platform> ClhHandle<P> {
    /// Returns a handle that is in no queue.
    pub const fn new() -> Self {
        Self {
            own: ClhNode { held: P::U32::ZERO },
            now: CacheLine(Place {
                node: Cell::new(ptr::null()),
                before: Cell::new(ptr::null()),
            }),
        }
    }

    /// Returns the node of the first acquisition. Out of line, so that all others pass
    /// without a taken branch.
    #[cold]
    #[inline(never)]
    fn begin(&self) -> *const ClhNode<P> {
        self.now.node.set(&raw const self.own);
        &raw const self.own
    }
}

impl<P: Platform> Default for ClhHandle<P> {
    fn default() -> Self {
        Self {
            own: ClhNode {
                held: P::U32::new(0),
            },
            now: CacheLine(Place {
                node: Cell::new(ptr::null()),
                before: Cell::new(ptr::null()),
            }),
        }
    }
}

/// A CLH lock: the node of the last arrival, null if there was none yet.
///
/// ```
/// use locklab_locks::RawLock;
/// use locklab_locks::queue::{Clh, ClhHandle};
///
/// let (lock, handle): (Clh, ClhHandle) = Default::default();
/// // SAFETY: one thread; the two stay in place, and go together.
/// unsafe {
///     lock.lock(&handle);
///     lock.unlock(&handle);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - A waiter spins, on the node of the one before it; nodes circulate among threads, so that no
///   guard or closure here can keep them.
///
/// # Properties
///
/// **Papers:** T. S. Craig, "Building FIFO and Priority-Queuing Spin Locks from
/// Atomic Swap", University of Washington TR 93-02-02, 1993; P. Magnusson,
/// A. Landin and E. Hagersten, "Queue Locks on Cache Coherent
/// Multiprocessors", IPPS 1994.
///
/// **Size:** two 64-byte lines, one of them the node that circulates for the
/// lock. **Per waiter:** one 64-byte node and the 64-byte handle that names it.
/// **Fairness:** first come, first served from the swap on. A handoff touches
/// one line; unlock is one store and never looks for a successor.
#[repr(C)]
pub struct Clh<P: Platform = NativePlatform> {
    tail: CacheLine<P::Ptr<ClhNode<P>>>,
    /// The node that the first arrival finds before it.
    first: ClhNode<P>,
}

impl<P: Platform> Clh<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            tail: CacheLine(P::Ptr::ZERO),
            first: ClhNode { held: P::U32::ZERO },
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(before: &ClhNode<P>) {
        // C4: pairs with C5.
        before.held.spin_until(Ordering::Acquire, |held| held == 0);
    }
}

impl<P: Platform> Default for Clh<P> {
    fn default() -> Self {
        Self {
            tail: CacheLine(P::Ptr::new(ptr::null_mut())),
            first: ClhNode {
                held: P::U32::new(0),
            },
        }
    }
}

// SAFETY: the swap of the tail orders the waiters; each enters when its
// predecessor has released.
unsafe impl<P: Platform> RawLock<P> for Clh<P> {
    type Ctx = ClhHandle<P>;

    const INFO: Info = Info {
        name: "clh",
        summary: "a queue of waiters, each spinning on the node before it",
        fairness: Fairness::Fifo,
        // A waiter that has swapped itself in cannot leave, and reading the
        // tail first proves nothing: nodes come back.
        try_lock: false,
        bytes_per_waiter: 128,
        paper: "Craig 1993; Magnusson, Landin and Hagersten 1994",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, handle: &ClhHandle<P>) {
        let mut node = handle.now.node.get();
        if node.is_null() {
            node = handle.begin();
        }
        // C1: the node is ours: nobody waits on it any more.
        // SAFETY: nodes stay in place as long as any lock or handle that met
        // (contract of `lock`).
        unsafe { &*node }.held.store(1, Ordering::Relaxed);
        // C2: pairs with itself: Release makes C1 visible to the one behind
        // us, whose Acquire it is; without, it could see the 0 of the node's
        // last use.
        let mut before = self
            .tail
            .swap(node.cast_mut(), Ordering::AcqRel)
            .cast_const();
        if before.is_null() {
            before = &raw const self.first;
        }
        handle.now.before.set(before);
        // SAFETY: as above.
        let before = unsafe { &*before };
        // C3: pairs with C5.
        if before.held.load(Ordering::Acquire) != 0 {
            Self::wait(before);
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, handle: &ClhHandle<P>) {
        let node = handle.now.node.get();
        // The node before ours has no user left: ours from now on. (Our own
        // belongs to the one behind us as soon as C5 is seen.)
        handle.now.node.set(handle.now.before.get());
        // C5: pairs with C3 and C4.
        // SAFETY: as in `lock`.
        unsafe { &*node }.held.store(0, Ordering::Release);
    }
}
