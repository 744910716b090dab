//! The K42 variant of the MCS lock: an ordinary interface, without a node from
//! the caller.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, RawLock};
use core::ptr;

/// A place in the queue; the lock itself is the place of its holder.
#[repr(C)]
struct Node<P: Platform> {
    /// Says in a waiter that it must wait, while it is not null. Points in the lock to
    /// the last waiter: [`held`] if there is none, null if free.
    tail: P::Ptr<Node<P>>,
    /// The waiter behind this one.
    next: P::Ptr<Node<P>>,
}

/// A waiter's node keeps to a line of its own.
#[repr(C, align(64))]
struct Waiter<P: Platform>(Node<P>);

/// Returns the tail of a queue that contains only the lock's own node. It is not that
/// node's address, as in the papers: a lock whose guard was leaked may move,
/// and would continue to name its former address.
fn held<P: Platform>() -> *mut Node<P> {
    ptr::without_provenance_mut(1)
}

/// A K42-MCS lock.
///
/// ```
/// use locklab_locks::spin::McsK42Mutex;
///
/// static COUNT: McsK42Mutex<u32> = McsK42Mutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`McsK42Mutex`](crate::spin::McsK42Mutex) lists them.
///
/// # Properties
///
/// **Paper:** M. A. Auslander, D. J. Edelsohn, O. Y. Krieger, B. S. Rosenburg and
/// R. W. Wisniewski, "Enhancement to the MCS lock for increased functionality
/// and improved programmability", US patent application 2003/0200457 (filed
/// 2002, abandoned); described in M. L. Scott, "Shared-Memory
/// Synchronization", 2013, section 4.3.1.
///
/// **Size:** two pointers. **Per waiter:** one node on the stack of `lock`,
/// released when `lock` returns. **Fairness:** first come, first served from
/// the compare-and-swap on; that swap is retried under contention, so arrival,
/// unlike MCS, has no bound.
#[repr(transparent)]
pub struct McsK42<P: Platform = NativePlatform> {
    node: Node<P>,
}

impl<P: Platform> McsK42<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            node: Node {
                tail: P::Ptr::ZERO,
                next: P::Ptr::ZERO,
            },
        }
    }

    /// Returns the node that `tail` represents; `tail` is not null.
    fn node_of(&self, tail: *mut Node<P>) -> *mut Node<P> {
        if tail == held() {
            ptr::from_ref(&self.node).cast_mut()
        } else {
            tail
        }
    }

    #[inline(always)]
    fn take_if_free(&self) -> Result<(), *mut Node<P>> {
        // K1: pairs with K8. No Release: those who queue behind us see `next`
        // of the lock as the last holder left it (K8), because this write
        // goes on with the release sequence of that one.
        self.node
            .tail
            .compare_exchange(
                ptr::null_mut(),
                held(),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .map(|_| ())
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        loop {
            let last = self.node.tail.load(Ordering::Relaxed);
            if last.is_null() {
                if self.take_if_free().is_ok() {
                    return;
                }
                continue;
            }
            let waiter = Waiter(Node {
                // Any pointer but null means: wait.
                tail: P::Ptr::new(held()),
                next: P::Ptr::new(ptr::null_mut()),
            });
            let node = ptr::from_ref(&waiter.0).cast_mut();
            // K2: Release: our node is set up before a successor finds it;
            // Acquire: so is the predecessor's before we link to it.
            if self
                .node
                .tail
                .compare_exchange(last, node, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                self.wait_behind(self.node_of(last), &waiter.0);
                return;
            }
        }
    }

    fn wait_behind(&self, predecessor: *mut Node<P>, own: &Node<P>) {
        // SAFETY: the lock's node, or that of a waiter, who does not leave
        // `lock` before it has seen the link below.
        let predecessor = unsafe { &*predecessor };
        let node = ptr::from_ref(own).cast_mut();
        // K3: pairs with K5 and K7.
        predecessor.next.store(node, Ordering::Release);
        // K4: pairs with K9.
        own.tail
            .spin_until(Ordering::Acquire, |tail| tail.is_null());
        // We hold the lock. Before our node goes, the queue behind it moves
        // to the lock's.
        // K5: pairs with K3.
        let mut next = own.next.load(Ordering::Acquire);
        if next.is_null() {
            self.node.next.store(ptr::null_mut(), Ordering::Relaxed);
            // K6: Release: `next` of the lock is null before others link.
            if self
                .node
                .tail
                .compare_exchange(node, held(), Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
            // K5': pairs with K3: someone queued in between.
            next = own
                .next
                .spin_until(Ordering::Acquire, |next| !next.is_null());
        }
        self.node.next.store(next, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self) {
        // K7: pairs with K3.
        let next = self
            .node
            .next
            .spin_until(Ordering::Acquire, |next| !next.is_null());
        // SAFETY: the waiter stays until it sees the store below.
        let next = unsafe { &*next };
        // K9: pairs with K4.
        next.tail.store(ptr::null_mut(), Ordering::Release);
    }
}

impl<P: Platform> Default for McsK42<P> {
    fn default() -> Self {
        Self {
            node: Node {
                tail: P::Ptr::new(ptr::null_mut()),
                next: P::Ptr::new(ptr::null_mut()),
            },
        }
    }
}

// SAFETY: the compare-and-swaps of the tail order the CPUs in a queue; each
// enters when its predecessor clears its node, the first when the tail was
// null.
unsafe impl<P: Platform> RawLock<P> for McsK42<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "mcs-k42",
        summary: "MCS without a node to bring: the lock is its holder's",
        fairness: Fairness::Fifo,
        bytes_per_waiter: 64,
        paper: "Auslander et al. 2002 (K42); Scott 2013",
        promises: "loses races",
        not_promised: "a place in the end",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if self.take_if_free().is_err() {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.take_if_free().is_ok()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.node.tail.load(Ordering::Relaxed).is_null())
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // A holder who finds a waiter linked need not try to free the lock.
        // K8: pairs with K1 of a CPU that finds the lock free.
        if !self.node.next.load(Ordering::Relaxed).is_null()
            || self
                .node
                .tail
                .compare_exchange(
                    held(),
                    ptr::null_mut(),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_err()
        {
            self.hand_over();
        }
    }
}

crate::lock_api_impl::context_free!(McsK42);
crate::lock_api_impl::fair!(McsK42);
