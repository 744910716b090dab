//! The big lock on an MCS queue, of indices.

use super::Queue;
use crate::line::CacheLine;
use crate::platform::{Atomic, Ordering, Platform};

/// The queue node of a CPU, and its recursion depth. The holder writes the
/// depth while it owns the line anyway, before it queues and before it looks
/// for its successor.
#[repr(C)]
struct Node<P: Platform> {
    /// The number of the CPU behind, plus one.
    next: P::U32,
    /// 1 while this CPU is not served; only a waiting CPU sets it.
    waits: P::U32,
    depth: P::U32,
}

/// An MCS lock with one node for each CPU.
///
/// **Paper:** Mellor-Crummey and Scott 1991, as [`crate::Mcs`].
///
/// **Size:** one line, and one for each CPU. **Per waiter:** nothing. **Fairness:** first
/// come, first served.
#[repr(C)]
pub struct McsQueue<P: Platform, const MAXCPUS: usize> {
    /// The number of the last CPU in the queue, plus one.
    tail: CacheLine<P::U32>,
    nodes: [CacheLine<Node<P>>; MAXCPUS],
}

impl<P: Platform, const MAXCPUS: usize> McsQueue<P, MAXCPUS> {
    #[cold]
    #[inline(never)]
    fn wait(&self, before: u32, cpu: usize) {
        // Nobody serves us before F3 names us.
        self.nodes[cpu].waits.store(1, Ordering::Relaxed);
        // F3: pairs with F6: `waits` = 1 comes before the other's 0.
        self.nodes[before as usize - 1]
            .next
            .store(cpu as u32 + 1, Ordering::Release);
        // F4: pairs with F7.
        self.nodes[cpu]
            .waits
            .spin_until(Ordering::Acquire, |waits| waits == 0);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self, cpu: usize) {
        // F6: pairs with F3. A swap (F2) that put us out of the tail is
        // always followed by that store.
        let next = self.nodes[cpu]
            .next
            .spin_until(Ordering::Acquire, |next| next != 0);
        // F7: pairs with F4.
        self.nodes[next as usize - 1]
            .waits
            .store(0, Ordering::Release);
    }
}

impl<P: Platform, const MAXCPUS: usize> Default for McsQueue<P, MAXCPUS> {
    fn default() -> Self {
        Self {
            tail: CacheLine(P::U32::new(0)),
            nodes: core::array::from_fn(|_| {
                CacheLine(Node {
                    next: P::U32::new(0),
                    waits: P::U32::new(0),
                    depth: P::U32::new(0),
                })
            }),
        }
    }
}

// SAFETY: the swap of the tail orders the CPUs; each is served when its
// predecessor grants, the first when the tail was 0.
unsafe impl<P: Platform, const MAXCPUS: usize> Queue<P> for McsQueue<P, MAXCPUS> {
    const NAME: &'static str = "mplock-mcs";
    const SUMMARY: &'static str = "the big lock; a queue, each CPU spinning on its own node";
    const PROMISES: &'static str = "in order again";
    const PAPER: &'static str = "Mellor-Crummey and Scott 1991";
    const TRY: bool = true;
    const MAXCPUS: usize = MAXCPUS;
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        tail: CacheLine(P::U32::ZERO),
        nodes: [const {
            CacheLine(Node {
                next: P::U32::ZERO,
                waits: P::U32::ZERO,
                depth: P::U32::ZERO,
            })
        }; MAXCPUS],
    };

    unsafe fn init(&self) {
        self.tail.store(0, Ordering::Relaxed);
        for node in &self.nodes {
            node.next.store(0, Ordering::Relaxed);
            node.waits.store(0, Ordering::Relaxed);
            node.depth.store(0, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn depth(&self, cpu: usize) -> &P::U32 {
        &self.nodes[cpu].depth
    }

    #[inline(always)]
    unsafe fn enter(&self, cpu: usize) {
        // F1: nobody else looks at the node of a CPU that has no place.
        self.nodes[cpu].next.store(0, Ordering::Relaxed);
        // F2: Acquire pairs with F5 (free at once); Release makes F1 visible
        // to a successor.
        let before = self.tail.swap(cpu as u32 + 1, Ordering::AcqRel);
        if before != 0 {
            self.wait(before, cpu);
        }
    }

    #[inline(always)]
    unsafe fn try_enter(&self, cpu: usize) -> bool {
        // F1': as F1.
        self.nodes[cpu].next.store(0, Ordering::Relaxed);
        // F2': as F2.
        self.tail
            .compare_exchange(0, cpu as u32 + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    #[inline(always)]
    fn served(&self, cpu: usize) -> bool {
        self.nodes[cpu].waits.load(Ordering::Relaxed) == 0
    }

    #[inline(always)]
    unsafe fn leave(&self, cpu: usize) {
        // F5: pairs with F2 of a CPU that finds the queue empty.
        if self
            .tail
            .compare_exchange(cpu as u32 + 1, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.hand_over(cpu);
        }
    }
}
