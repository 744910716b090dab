//! MCS locks whose waiters may give up, and may lose their place while they are
//! not running.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Fairness, Info, RawLock, TimedLock};
use core::ptr;

/// State of a node that is in no queue.
const IDLE: u32 = 0;
/// State of a node whose owner waits.
const WAITING: u32 = 1;
/// State of a node whose owner has given up.
const GIVEN_UP: u32 = 2;
/// State of a node that has the lock, or that a release is passing over.
const GRANTED: u32 = 3;
/// State of a node that a release is passing over although its owner waits.
const PASSED: u32 = 4;

/// Number of reads between two reads of the clock.
const READS: u32 = 64;

/// [`McsTp`]: the nanoseconds of silence after which a waiter counts as not
/// running. Many times the duration of [`READS`] reads, and a small part of a
/// time slice.
const SILENT: u32 = 50_000;

/// A waiter's place in the queue of an [`McsTimeout`] lock. After a timeout
/// it stays in place, and is used for no other lock, until
/// [`McsTimeoutNode::is_idle`].
#[repr(C, align(64))]
pub struct McsTimeoutNode<P: Platform = NativePlatform> {
    next: P::Ptr<McsTimeoutNode<P>>,
    state: P::U32,
    /// The time when its owner last looked, in nanoseconds modulo the size of a
    /// word.
    time: P::Usize,
}

impl<P: Platform> McsTimeoutNode<P> {
    /// Returns a node that is in no queue.
    pub const fn new() -> Self {
        Self {
            next: P::Ptr::ZERO,
            state: P::U32::ZERO,
            time: P::Usize::ZERO,
        }
    }

    /// Returns whether the node is in no queue, and may be dropped.
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
            time: P::Usize::new(0),
        }
    }
}

/// An abortable MCS lock: the tail of its queue, null when free.
///
/// ```
/// use locklab_locks::queue::{McsTimeout, McsTimeoutNode};
/// use locklab_locks::{NativePlatform, Platform, RawLock, TimedLock};
///
/// let (lock, node): (McsTimeout, McsTimeoutNode) = Default::default();
/// let deadline = NativePlatform::now() + 1_000_000;
/// // SAFETY: one thread; the node stays in place, and is in no other queue.
/// unsafe {
///     assert!(lock.lock_until(&node, deadline));
///     lock.unlock(&node);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - A waiter can give up. It spins.
///
/// # Properties
///
/// **Paper:** M. L. Scott and W. N. Scherer III, "Scalable Queue-Based Spin Locks
/// with Timeout", PPoPP 2001, for the problem; the protocol, in which a node
/// that was given up stays in the queue until a release passes over it, is
/// that of M. Chabbi, A. Amer, S. Wen and X. Liu, "An Efficient
/// Abortable-locking Protocol for Multi-level NUMA Systems", PPoPP 2017.
///
/// **Size:** one pointer. **Per waiter:** one 64-byte node, which after a timeout
/// stays in use until a release has passed over it. **Fairness:** first come,
/// first served; a waiter that returns before a release has passed over it has
/// kept its place. Giving up takes one compare-and-swap and never waits.
///
/// With a `SILENT` other than 0 it is [`McsTp`].
#[repr(transparent)]
pub struct McsTimeout<P: Platform = NativePlatform, const SILENT: u32 = 0> {
    tail: P::Ptr<McsTimeoutNode<P>>,
}

/// A time-published MCS lock: an [`McsTimeout`] whose release passes over
/// waiters that are not running.
///
/// ```
/// use locklab_locks::queue::{McsTp, McsTimeoutNode};
/// use locklab_locks::{NativePlatform, Platform, RawLock, TimedLock};
///
/// let (lock, node): (McsTp, McsTimeoutNode) = Default::default();
/// let deadline = NativePlatform::now() + 1_000_000;
/// // SAFETY: one thread; the node stays in place, and is in no other queue.
/// unsafe {
///     assert!(lock.lock_until(&node, deadline));
///     lock.unlock(&node);
/// }
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// - It protects no data by itself, and both operations are unsafe.
/// - A waiter can give up. It spins, and one that does not run is passed over.
///
/// # Properties
///
/// **Paper:** B. He, W. N. Scherer III and M. L. Scott, "Preemption Adaptivity in
/// Time-Published Queue-Based Spin Locks", HiPC 2005 (MCS-TP).
///
/// A waiter publishes the time whenever it reads the clock. A release passes
/// over those that have been silent for 50 us, as over those that have given
/// up; a waiter that finds itself passed over queues again. The paper's second
/// measure, that waiters yield their CPU when a holder is not running, is not
/// implemented: see [`crate::Parking`].
///
/// **Size:** one pointer. **Per waiter:** one 64-byte node, as in [`McsTimeout`].
/// **Fairness:** a running waiter is never overtaken; one that is not running
/// loses its place, and may do so again and again. **Take it** where waiters
/// give up, or where more threads than CPUs spin (a handoff to a waiter that is
/// not running costs a time slice). It needs a clock that all CPUs share; where
/// [`Platform::now`] stands still it behaves as [`McsTimeout`]. After the
/// release nothing of the lock is touched, except the nodes that the release
/// passes over.
pub type McsTp<P = NativePlatform> = McsTimeout<P, SILENT>;

/// Names what [`McsTimeout::enter`] has found.
enum Entered {
    Holder,
    Waiter,
}

/// Says how the wait ended.
enum Waited {
    Granted,
    PassedOver,
    GaveUp,
}

impl<P: Platform, const SILENT: u32> McsTimeout<P, SILENT> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { tail: P::Ptr::ZERO }
    }

    /// Takes a place in the queue, or resumes the previous one.
    fn enter(&self, node: &McsTimeoutNode<P>) -> Entered {
        if SILENT != 0 {
            node.time.store(P::now() as usize, Ordering::Relaxed);
        }
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
                        .spin_until(Ordering::Relaxed, |state| state == IDLE);
                }
            }
        }
        // Nobody finds it yet.
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

    /// Waits, until `deadline` if there is one.
    fn wait(&self, node: &McsTimeoutNode<P>, deadline: Option<u64>) -> Waited {
        loop {
            // A5: pairs with A9.
            let state = node
                .state
                .spin(Ordering::Acquire, Patience::Reads(READS), |state| {
                    if state == WAITING {
                        Poll::Relax(1)
                    } else {
                        Poll::Done
                    }
                });
            match state {
                WAITING => {}
                GRANTED => return Waited::Granted,
                _ => return Waited::PassedOver,
            }
            let now = P::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                // Fails only if the lock has just come, or passed.
                // A5': pairs with A9.
                let gave_up = node.state.compare_exchange(
                    WAITING,
                    GIVEN_UP,
                    Ordering::Relaxed,
                    Ordering::Acquire,
                );
                return match gave_up {
                    Err(GRANTED) => Waited::Granted,
                    _ => Waited::GaveUp,
                };
            }
            if SILENT != 0 {
                node.time.store(now as usize, Ordering::Relaxed);
            }
        }
    }

    /// Passes over `next` if its owner waits and is not running; returns
    /// whether it did.
    fn pass_over(next: &McsTimeoutNode<P>) -> bool {
        let silent = (P::now() as usize).wrapping_sub(next.time.load(Ordering::Relaxed));
        // The difference is negative if it has looked meanwhile.
        silent as isize > SILENT as isize
            && next
                .state
                .compare_exchange(WAITING, PASSED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Leaves the queue from `node` on: the first waiter that has not given up
    /// gets the lock.
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
            if SILENT != 0 && Self::pass_over(next) {
                node = next;
                continue;
            }
            // A9: Release pairs with A5 and A5'. What was there says whether its owner
            // still waits.
            if next.state.swap(GRANTED, Ordering::Release) == WAITING {
                return;
            }
            node = next;
        }
    }
}

impl<P: Platform, const SILENT: u32> Default for McsTimeout<P, SILENT> {
    fn default() -> Self {
        Self {
            tail: P::Ptr::new(ptr::null_mut()),
        }
    }
}

const TIMEOUT: Info = Info {
    name: "mcs-timeout",
    summary: "MCS whose waiters may give up; releases pass over them",
    fairness: Fairness::Fifo,
    timeout: true,
    bytes_per_waiter: 64,
    paper: "Scott and Scherer 2001; Chabbi et al. 2017",
    promises: "given up, place kept, after a failed try, in order again",
    ..Info::BASE
};

const TIME_PUBLISHED: Info = Info {
    name: "mcs-tp",
    summary: "mcs-timeout that passes over waiters that do not run",
    fairness: Fairness::Unfair,
    paper: "He, Scherer and Scott 2005",
    promises: "given up, running keep their place, after a failed try",
    not_promised: "one comes to two, time in nesting",
    ..TIMEOUT
};

// SAFETY: as MCS; a node that was given up is passed over by the release that
// comes to it, which then acts for it, so there is one releaser at a time. So
// is one whose owner does not run, who enters again when it sees that.
unsafe impl<P: Platform, const SILENT: u32> RawLock<P> for McsTimeout<P, SILENT> {
    type Ctx = McsTimeoutNode<P>;

    const INFO: Info = if SILENT == 0 { TIMEOUT } else { TIME_PUBLISHED };

    #[inline]
    unsafe fn lock(&self, node: &McsTimeoutNode<P>) {
        while let Entered::Waiter = self.enter(node) {
            if SILENT == 0 {
                // A5'': pairs with A9.
                node.state
                    .spin_until(Ordering::Acquire, |state| state == GRANTED);
                return;
            }
            if let Waited::Granted = self.wait(node, None) {
                return;
            }
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
unsafe impl<P: Platform, const SILENT: u32> TimedLock<P> for McsTimeout<P, SILENT> {
    unsafe fn lock_until(&self, node: &McsTimeoutNode<P>, deadline: u64) -> bool {
        while let Entered::Waiter = self.enter(node) {
            match self.wait(node, Some(deadline)) {
                Waited::Granted => return true,
                Waited::GaveUp => return false,
                Waited::PassedOver => {}
            }
        }
        true
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::{Host, Native, QueueNodes};
    use core::sync::atomic::AtomicU64;

    static NOW: AtomicU64 = AtomicU64::new(1);

    /// A host whose clock the test sets.
    struct Clock;

    // SAFETY: the lock asks for no number.
    unsafe impl Host for Clock {
        fn cpu() -> usize {
            unreachable!("asked for a number")
        }
        fn queue_nodes(_: usize) -> &'static QueueNodes<Native<Self>> {
            unreachable!("asked for a node")
        }
        fn now() -> u64 {
            NOW.load(Ordering::Relaxed)
        }
    }

    type Tp = McsTp<Native<Clock>>;

    #[test]
    fn a_waiter_that_does_not_run_loses_its_place() {
        let lock = Tp::new();
        let nodes: [McsTimeoutNode<Native<Clock>>; 4] = Default::default();
        let states = || {
            nodes
                .each_ref()
                .map(|node| node.state.load(Ordering::Relaxed))
        };
        for node in &nodes {
            _ = lock.enter(node);
        }
        assert_eq!(states(), [GRANTED, WAITING, WAITING, WAITING]);
        // The third and the fourth look again, a moment later; the second does
        // not.
        NOW.fetch_add(u64::from(SILENT) + 1, Ordering::Relaxed);
        for node in &nodes[2..] {
            node.time.store(Clock::now() as usize, Ordering::Relaxed);
        }
        lock.release(&nodes[0]);
        assert_eq!(states(), [IDLE, IDLE, GRANTED, WAITING]);
        // It queues again; and while nobody runs, the lock is free.
        assert!(matches!(lock.enter(&nodes[1]), Entered::Waiter));
        NOW.fetch_add(u64::from(SILENT) + 1, Ordering::Relaxed);
        lock.release(&nodes[2]);
        assert_eq!(states(), [IDLE; 4]);
        assert!(nodes.iter().all(McsTimeoutNode::is_idle));
        // SAFETY: the nodes stay.
        unsafe {
            assert!(lock.try_lock(&nodes[3]));
            assert!(!lock.lock_until(&nodes[1], Clock::now()));
            lock.unlock(&nodes[3]);
        }
        assert!(nodes.iter().all(McsTimeoutNode::is_idle));
    }
}
