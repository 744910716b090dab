//! HMCS: an MCS lock for each NUMA node below a global one.

use crate::line::CacheLine;
use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, Overtakes, RawLock};
use core::ptr;

/// Handoffs within a NUMA node before another node gets the lock.
const PASSES: u32 = 64;

/// Status of a node that must wait; in a NUMA node's queue, 1 to [`PASSES`] + 1
/// means the lock, and counts the handoffs in a row in this NUMA node.
const WAIT: u32 = 0;
const FIRST: u32 = 1;
/// Status of the head of the NUMA node's queue when it does not hold the lock.
const ACQUIRE_PARENT: u32 = u32::MAX;

/// A waiter's place in a queue of [`Hmcs`]; stays in place from `lock` to the
/// end of `unlock`.
#[repr(C, align(64))]
pub struct HmcsNode<P: Platform = NativePlatform> {
    next: P::Ptr<HmcsNode<P>>,
    status: P::U32,
    /// The NUMA node in whose queue it is, for the release.
    numa: P::Usize,
}

impl<P: Platform> HmcsNode<P> {
    /// Returns a node that is in no queue.
    pub const fn new() -> Self {
        Self {
            next: P::Ptr::ZERO,
            status: P::U32::ZERO,
            numa: P::Usize::ZERO,
        }
    }
}

impl<P: Platform> Default for HmcsNode<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            status: P::U32::new(WAIT),
            numa: P::Usize::new(0),
        }
    }
}

/// One queue: of a NUMA node's CPUs, or of the NUMA nodes.
#[repr(transparent)]
struct Queue<P: Platform> {
    tail: P::Ptr<HmcsNode<P>>,
}

impl<P: Platform> Queue<P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const NEW: Self = Self { tail: P::Ptr::ZERO };

    /// Waits to become the head of the queue; returns the status that came with
    /// it, or `None` if the queue was empty.
    #[inline(always)]
    fn enter(&self, node: &HmcsNode<P>) -> Option<u32> {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.status.store(WAIT, Ordering::Relaxed);
        // H1: Acquire pairs with H5; Release: the node is reset before a
        // successor links to it.
        let predecessor = self
            .tail
            .swap(ptr::from_ref(node).cast_mut(), Ordering::AcqRel);
        if predecessor.is_null() {
            return None;
        }
        // SAFETY: the predecessor stays until it has seen the link.
        let predecessor = unsafe { &*predecessor };
        // H2: pairs with H4.
        predecessor
            .next
            .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
        // H3: pairs with H6.
        Some(
            node.status
                .spin_until(Ordering::Acquire, |status| status != WAIT),
        )
    }

    /// Grants `status` to the next waiter of this queue, if there is one
    /// already.
    #[inline(always)]
    fn pass(node: &HmcsNode<P>, status: u32) -> bool {
        // H4: pairs with H2.
        let next = node.next.load(Ordering::Acquire);
        if next.is_null() {
            return false;
        }
        // H6: pairs with H3.
        // SAFETY: the next in line waits until this store.
        unsafe { &*next }.status.store(status, Ordering::Release);
        true
    }

    /// Leaves the queue; the next waiter gets `status`.
    #[inline(always)]
    fn leave(&self, node: &HmcsNode<P>, status: u32) {
        if Self::pass(node, status) {
            return;
        }
        // H5: pairs with H1 of a CPU that finds the queue empty.
        if self
            .tail
            .compare_exchange(
                ptr::from_ref(node).cast_mut(),
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
        {
            return;
        }
        node.next
            .spin_until(Ordering::Relaxed, |next| !next.is_null());
        Self::pass(node, status);
    }
}

/// The part of the lock that belongs to one NUMA node.
struct Branch<P: Platform> {
    queue: CacheLine<Queue<P>>,
    /// Its place among the NUMA nodes, used by the head of its queue.
    node: HmcsNode<P>,
}

/// A two-level MCS lock for up to `NODES` NUMA nodes; more share branches.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Hmcs;
///
/// static COUNT: NodeMutex<Hmcs, u32> = NodeMutex::new(Hmcs::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`McsMutex`](crate::queue::McsMutex) lists them.
///
/// # Properties
///
/// **Paper:** M. Chabbi, M. Fagan and J. Mellor-Crummey, "High Performance Locks
/// for Multi-level NUMA Systems", PPoPP 2015; here with two levels.
///
/// **Size:** one 64-byte line, and two for each NUMA node. **Per waiter:** one
/// 64-byte node. **Fairness:** first come, first served within a NUMA node and
/// among them; a NUMA node keeps the lock for at most 64 handoffs.
#[repr(C)]
pub struct Hmcs<P: Platform = NativePlatform, const NODES: usize = 8> {
    root: CacheLine<Queue<P>>,
    branches: [Branch<P>; NODES],
}

impl<P: Platform, const NODES: usize> Hmcs<P, NODES> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            root: CacheLine(Queue::NEW),
            branches: [const {
                Branch {
                    queue: CacheLine(Queue::NEW),
                    node: HmcsNode::new(),
                }
            }; NODES],
        }
    }
}

impl<P: Platform, const NODES: usize> Default for Hmcs<P, NODES> {
    fn default() -> Self {
        let queue = || {
            CacheLine(Queue {
                tail: P::Ptr::new(ptr::null_mut()),
            })
        };
        Self {
            root: queue(),
            branches: core::array::from_fn(|_| Branch {
                queue: queue(),
                node: HmcsNode::default(),
            }),
        }
    }
}

// SAFETY: the holder is the head of its NUMA node's queue, whose node is the
// head of the root's; both are MCS queues.
unsafe impl<P: Platform, const NODES: usize> RawLock<P> for Hmcs<P, NODES> {
    type Ctx = HmcsNode<P>;

    const INFO: Info = Info {
        name: "hmcs",
        summary: "an MCS lock for each NUMA node under one for all",
        fairness: Fairness::Bounded("after 64 handoffs within one NUMA node the next one comes"),
        overtakes: Some(Overtakes::HandoffsOfEachNode(PASSES)),
        numa_aware: true,
        try_lock: false,
        touches_after_release: true,
        bytes_per_waiter: 64,
        paper: "Chabbi, Fagan and Mellor-Crummey 2015",
        promises: "short-lived, short-lived in one node, in order within a node, prefers its node",
        ..Info::BASE
    };

    #[inline]
    unsafe fn lock(&self, node: &HmcsNode<P>) {
        let numa = P::node() % NODES;
        node.numa.store(numa, Ordering::Relaxed);
        let branch = &self.branches[numa];
        match branch.queue.enter(node) {
            Some(passes) if passes != ACQUIRE_PARENT => {}
            _ => {
                node.status.store(FIRST, Ordering::Relaxed);
                self.root.enter(&branch.node);
            }
        }
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.root.tail.load(Ordering::Relaxed).is_null())
    }

    #[inline]
    unsafe fn unlock(&self, node: &HmcsNode<P>) {
        let branch = &self.branches[node.numa.load(Ordering::Relaxed)];
        let passes = node.status.load(Ordering::Relaxed);
        if passes <= P::preferences(PASSES) && Queue::pass(node, passes + 1) {
            return;
        }
        // The root comes first: the next head of this branch uses the same node
        // there.
        self.root.leave(&branch.node, FIRST);
        branch.queue.leave(node, ACQUIRE_PARENT);
    }
}

// SAFETY: `unlock` waits until its successor no longer needs the node.
unsafe impl<P: Platform, const NODES: usize> crate::mutex::StackContext for Hmcs<P, NODES> {}
// It is no `LeakableGuard`: the root names the branches' nodes, which are in the lock.
