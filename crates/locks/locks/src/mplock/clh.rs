//! The big lock on a CLH queue, of indices.

use super::Queue;
use crate::line::CacheLine;
use crate::platform::{Atomic, Ordering, Platform};

/// The state of a CPU.
#[repr(C)]
struct Place<P: Platform> {
    /// The index of the node that it owns now, exclusive-or the index of the
    /// node that it had first, so that zeros are a valid initial state.
    node: P::U32,
    /// The index of the node before it.
    before: P::U32,
    /// Its recursion depth.
    depth: P::U32,
}

/// A CLH lock whose nodes are numbered: 0 is `first`, n + 1 initially belongs
/// to CPU n.
///
/// **Papers:** Craig 1993; Magnusson, Landin and Hagersten 1994, as
/// [`Clh`](crate::queue::Clh).
///
/// **Size:** two lines, and two for each CPU (a node, and its state). **Per waiter:**
/// nothing. **Fairness:** first come, first served.
#[repr(C)]
pub struct ClhQueue<P: Platform, const MAXCPUS: usize> {
    tail: CacheLine<P::U32>,
    first: CacheLine<P::U32>,
    nodes: [CacheLine<P::U32>; MAXCPUS],
    cpus: [CacheLine<Place<P>>; MAXCPUS],
}

impl<P: Platform, const MAXCPUS: usize> ClhQueue<P, MAXCPUS> {
    #[cold]
    #[inline(never)]
    fn wait(node: &P::U32) {
        // E4: pairs with E5.
        node.spin_until(Ordering::Acquire, |held| held == 0);
    }

    #[inline(always)]
    fn node(&self, index: u32) -> &P::U32 {
        self.nodes
            .get((index as usize).wrapping_sub(1))
            .unwrap_or(&self.first)
    }

    #[inline(always)]
    fn node_of(&self, cpu: usize) -> u32 {
        self.cpus[cpu].node.load(Ordering::Relaxed) ^ (cpu as u32 + 1)
    }
}

impl<P: Platform, const MAXCPUS: usize> Default for ClhQueue<P, MAXCPUS> {
    fn default() -> Self {
        Self {
            tail: CacheLine(P::U32::new(0)),
            first: CacheLine(P::U32::new(0)),
            nodes: core::array::from_fn(|_| CacheLine(P::U32::new(0))),
            cpus: core::array::from_fn(|_| {
                CacheLine(Place {
                    node: P::U32::new(0),
                    before: P::U32::new(0),
                    depth: P::U32::new(0),
                })
            }),
        }
    }
}

// SAFETY: the swap of the tail orders the CPUs; each is served when the one
// before it has left.
unsafe impl<P: Platform, const MAXCPUS: usize> Queue<P> for ClhQueue<P, MAXCPUS> {
    const NAME: &'static str = "mplock-clh";
    const SUMMARY: &'static str = "the big lock; a queue, each CPU spinning on the one before";
    const PAPER: &'static str = "Craig 1993; Magnusson, Landin and Hagersten 1994";
    const TRY: bool = false;
    const MAXCPUS: usize = MAXCPUS;
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        tail: CacheLine(P::U32::ZERO),
        first: CacheLine(P::U32::ZERO),
        nodes: [const { CacheLine(P::U32::ZERO) }; MAXCPUS],
        cpus: [const {
            CacheLine(Place {
                node: P::U32::ZERO,
                before: P::U32::ZERO,
                depth: P::U32::ZERO,
            })
        }; MAXCPUS],
    };

    unsafe fn init(&self) {
        self.tail.store(0, Ordering::Relaxed);
        self.first.store(0, Ordering::Relaxed);
        for node in &self.nodes {
            node.store(0, Ordering::Relaxed);
        }
        for cpu in &self.cpus {
            cpu.node.store(0, Ordering::Relaxed);
            cpu.before.store(0, Ordering::Relaxed);
            cpu.depth.store(0, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn depth(&self, cpu: usize) -> &P::U32 {
        &self.cpus[cpu].depth
    }

    #[inline(always)]
    unsafe fn enter(&self, cpu: usize) {
        let node = self.node_of(cpu);
        // E1: the node is ours: nobody waits on it any more.
        self.node(node).store(1, Ordering::Relaxed);
        // E2: pairs with itself: Release makes E1 visible to the one behind
        // us, whose Acquire it is.
        let before = self.tail.swap(node, Ordering::AcqRel);
        self.cpus[cpu].before.store(before, Ordering::Relaxed);
        let before = self.node(before);
        // E3: pairs with E5.
        if before.load(Ordering::Acquire) != 0 {
            Self::wait(before);
        }
    }

    #[inline(always)]
    unsafe fn try_enter(&self, _: usize) -> bool {
        // It is as in `Clh`: a CPU in the queue cannot leave it, and nodes come back.
        false
    }

    #[inline(always)]
    fn served(&self, cpu: usize) -> bool {
        let before = self.cpus[cpu].before.load(Ordering::Relaxed);
        self.node(before).load(Ordering::Relaxed) == 0
    }

    #[inline(always)]
    unsafe fn leave(&self, cpu: usize) {
        let node = self.node_of(cpu);
        let place = &self.cpus[cpu];
        let before = place.before.load(Ordering::Relaxed);
        place
            .node
            .store(before ^ (cpu as u32 + 1), Ordering::Relaxed);
        // E5: pairs with E3 and E4.
        self.node(node).store(0, Ordering::Release);
    }
}
