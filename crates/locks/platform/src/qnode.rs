//! The queue nodes that a CPU owns, for locks too small to hold a pointer.
//!
//! A 4-byte lock (`QSpinlock`) names its last waiter by CPU number
//! and nesting level. The nodes themselves belong to the platform: a kernel
//! keeps a static array of them, [`Threads`](crate::threads::Threads) likewise.

use crate::platform::{Atomic, Platform};

/// Limits how deep spinlock slow paths can nest on a CPU: task, soft interrupt,
/// interrupt, non-maskable interrupt.
pub const NESTING: usize = 4;

/// The most CPUs that a platform may have: as many as a 16-bit tail can name
/// with two bits of nesting level and one value for "none".
pub const MAX_CPUS: usize = (1 << 14) - 1;

/// One waiter's place in a queue. 16 bytes, so that the four levels of a CPU
/// fill one cache line.
#[repr(C)]
pub struct QueueNode<P: Platform> {
    /// The waiter behind this one.
    #[doc(hidden)]
    pub next: P::Ptr<QueueNode<P>>,
    /// 0 while this waiter must wait; otherwise it is the head of the queue.
    #[doc(hidden)]
    pub granted: P::U32,
    /// The number of levels of this CPU that are in use, in the node of level 0; in the
    /// others, free for the lock that queues there.
    #[doc(hidden)]
    pub aux: P::U32,
}

impl<P: Platform> QueueNode<P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const NEW: Self = Self {
        next: P::Ptr::ZERO,
        granted: P::U32::ZERO,
        aux: P::U32::ZERO,
    };
}

impl<P: Platform> Default for QueueNode<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(core::ptr::null_mut()),
            granted: P::U32::new(0),
            aux: P::U32::new(0),
        }
    }
}

/// The queue nodes of one CPU, one for each nesting level, on a cache line
/// of their own.
///
/// Who writes to a node that is in a queue breaks the lock, so that needs
/// `unsafe`:
///
/// ```compile_fail,E0616
/// use locklab_locks::platform::{Atomic, Ordering};
/// use locklab_locks::{NativePlatform, Platform};
/// let nodes = NativePlatform::queue_nodes(1);
/// nodes.level[0].granted.store(1, Ordering::Relaxed);
/// ```
#[repr(C, align(64))]
pub struct QueueNodes<P: Platform> {
    /// The nodes by nesting level.
    level: [QueueNode<P>; NESTING],
}

impl<P: Platform> QueueNodes<P> {
    /// A set of nodes that are in no queue.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NEW: Self = Self {
        level: [const { QueueNode::NEW }; NESTING],
    };

    /// Returns the nodes, by nesting level.
    ///
    /// # Safety
    /// The caller is a lock that queues with them, and writes to a node as the
    /// CPU that it belongs to or as its neighbour in a queue.
    #[doc(hidden)]
    #[inline(always)]
    pub const unsafe fn levels(&self) -> &[QueueNode<P>; NESTING] {
        &self.level
    }

    /// Returns the number of nodes in use: for the checker.
    #[doc(hidden)]
    pub fn in_use(&self) -> u32 {
        self.level[0].aux.load(crate::platform::Ordering::Relaxed)
    }

    /// Nodes as an earlier wait left them, all of them granted and linked to
    /// one that no longer exists: for the checker, whose locks must not mistake
    /// that for a new grant or a new link. So many levels are in use.
    #[doc(hidden)]
    pub fn used(levels: u32) -> Self {
        Self {
            level: core::array::from_fn(|level| QueueNode {
                next: P::Ptr::new(core::ptr::dangling_mut()),
                granted: P::U32::new(1),
                aux: P::U32::new(if level == 0 { levels } else { 0 }),
            }),
        }
    }
}

impl<P: Platform> Default for QueueNodes<P> {
    fn default() -> Self {
        Self {
            level: core::array::from_fn(|_| QueueNode::default()),
        }
    }
}
