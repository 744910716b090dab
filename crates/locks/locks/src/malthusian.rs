//! The Malthusian lock: an MCS lock that keeps few threads active and sends the
//! rest to sleep.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Patience, Platform, Poll};
use crate::raw::{Fairness, Info, Overtakes, RawLock};
use core::ptr;

const WAITING: u32 = 0;
const GRANTED: u32 = 1;
const ASLEEP: u32 = 2;
const WAKING: u32 = 3;

/// Number of reads before a waiter sleeps.
const READS: u32 = 1000;

/// Number of releases after which the eldest passive waiter returns.
const TURNS: u32 = 256;

/// A waiter's place in a [`Malthusian`] lock; stays in place from `lock` to
/// the end of `unlock`.
#[repr(C, align(64))]
pub struct MalthusianNode<P: Platform = NativePlatform> {
    /// The next waiter in the queue, or the next elder one in the passive list.
    next: P::Ptr<MalthusianNode<P>>,
    /// The next younger waiter in the passive list.
    younger: P::Ptr<MalthusianNode<P>>,
    state: P::U32,
}

impl<P: Platform> MalthusianNode<P> {
    /// Returns a node that is in no queue.
    pub const fn new() -> Self {
        Self {
            next: P::Ptr::ZERO,
            younger: P::Ptr::ZERO,
            state: P::U32::ZERO,
        }
    }

    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }
}

impl<P: Platform> Default for MalthusianNode<P> {
    fn default() -> Self {
        Self {
            next: P::Ptr::new(ptr::null_mut()),
            younger: P::Ptr::new(ptr::null_mut()),
            state: P::U32::new(WAITING),
        }
    }
}

/// An MCS lock with a passive list. Only the holder accesses the list and the
/// count.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Malthusian;
///
/// static COUNT: NodeMutex<Malthusian, u32> = NodeMutex::new(Malthusian::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`MalthusianMutex`](crate::queue::MalthusianMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice, "Malthusian Locks", EuroSys 2017 (the MCSCR form).
///
/// **Size:** 64 bytes. **Per waiter:** one 64-byte node. **Fairness:** the holder moves
/// surplus waiters from the queue to a passive list, from which the last one
/// moved returns when the queue would become empty, and the eldest after at
/// most 256 releases. So in the long term every waiter is served, in no
/// particular order. Waiters spin for 1000 reads and then sleep; a passive one
/// sleeps until it is recalled, so a lock with more threads than CPUs keeps its
/// throughput.
#[repr(C, align(64))]
pub struct Malthusian<P: Platform = NativePlatform> {
    /// The last of the queue, null when the lock is free.
    tail: P::Ptr<MalthusianNode<P>>,
    youngest: P::Ptr<MalthusianNode<P>>,
    eldest: P::Ptr<MalthusianNode<P>>,
    /// Number of releases since the eldest waiter last returned.
    turns: P::U32,
}

impl<P: Platform> Malthusian<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            tail: P::Ptr::ZERO,
            youngest: P::Ptr::ZERO,
            eldest: P::Ptr::ZERO,
            turns: P::U32::ZERO,
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(predecessor: *mut MalthusianNode<P>, node: &MalthusianNode<P>) {
        // SAFETY: the predecessor's unlock waits for the link.
        let predecessor = unsafe { &*predecessor };
        // A2: pairs with A6.
        predecessor.next.store(node.address(), Ordering::Release);
        // A3: pairs with A7.
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
            return;
        }
        // A4: pairs with A7 if the lock came just now.
        if node
            .state
            .compare_exchange(WAITING, ASLEEP, Ordering::Relaxed, Ordering::Acquire)
            .is_err()
        {
            return;
        }
        while node.state.load(Ordering::Relaxed) == ASLEEP {
            P::wait(&node.state, ASLEEP);
        }
        // A5: pairs with A7'. Short: the waker is on its way back from the
        // wake.
        node.state
            .spin_until(Ordering::Acquire, |state| state == GRANTED);
    }

    /// Hands the lock to `heir`.
    ///
    /// # Safety
    /// `heir` waits, and no other CPU grants it.
    unsafe fn grant(heir: *mut MalthusianNode<P>) {
        // SAFETY: of the caller; it stays until it sees `GRANTED`.
        let state = unsafe { &(*heir).state };
        // A7: pairs with A3 and A4.
        if state
            .compare_exchange(WAITING, GRANTED, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // The grant comes after the wake, because the node may be gone
            // as soon as its owner has seen the grant.
            state.store(WAKING, Ordering::Relaxed);
            P::wake(state);
            // A7': pairs with A5.
            state.store(GRANTED, Ordering::Release);
        }
    }

    /// Removes the youngest, or the eldest, waiter from the passive list.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn call_back(&self, eldest: bool) -> *mut MalthusianNode<P> {
        let end = if eldest { &self.eldest } else { &self.youngest };
        let node = end.load(Ordering::Relaxed);
        if node.is_null() {
            return node;
        }
        // SAFETY: passive waiters stay in place.
        let called = unsafe { &*node };
        let null = ptr::null_mut();
        let (other_end, rest) = if eldest {
            (&self.youngest, called.younger.load(Ordering::Relaxed))
        } else {
            (&self.eldest, called.next.load(Ordering::Relaxed))
        };
        end.store(rest, Ordering::Relaxed);
        if rest.is_null() {
            other_end.store(null, Ordering::Relaxed);
        } else {
            // SAFETY: as above.
            let rest = unsafe { &*rest };
            let link = if eldest { &rest.next } else { &rest.younger };
            link.store(null, Ordering::Relaxed);
        }
        called.next.store(null, Ordering::Relaxed);
        node
    }

    /// Puts a waiter that has left the queue into the passive list.
    ///
    /// # Safety
    /// The caller holds the lock; `node` waits and is in no queue.
    unsafe fn send_off(&self, node: *mut MalthusianNode<P>) {
        // SAFETY: of the caller.
        let sent = unsafe { &*node };
        let before = self.youngest.load(Ordering::Relaxed);
        sent.next.store(before, Ordering::Relaxed);
        sent.younger.store(ptr::null_mut(), Ordering::Relaxed);
        if before.is_null() {
            self.eldest.store(node, Ordering::Relaxed);
        } else {
            // SAFETY: passive waiters stay in place.
            unsafe { &*before }.younger.store(node, Ordering::Relaxed);
        }
        self.youngest.store(node, Ordering::Relaxed);
    }

    /// Releases the lock, to a waiter if there is one.
    ///
    /// # Safety
    /// The caller holds the lock with `own`.
    unsafe fn release(&self, own: &MalthusianNode<P>) {
        let turns = self.turns.load(Ordering::Relaxed);
        if turns >= P::preferences(TURNS) && !self.eldest.load(Ordering::Relaxed).is_null() {
            self.turns.store(0, Ordering::Relaxed);
            // SAFETY: of the caller.
            unsafe { self.hand_to_passive(own, true) };
            return;
        }
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        // A6: pairs with A2.
        let mut next = own.next.load(Ordering::Acquire);
        if next.is_null() {
            if !self.youngest.load(Ordering::Relaxed).is_null() {
                // SAFETY: of the caller.
                unsafe { self.hand_to_passive(own, false) };
                return;
            }
            // A8: pairs with A1 of a CPU that finds the lock free.
            if self
                .tail
                .compare_exchange(
                    own.address(),
                    ptr::null_mut(),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
            {
                return;
            }
            // A6': pairs with A2.
            next = own
                .next
                .spin_until(Ordering::Acquire, |next| !next.is_null());
        }
        // SAFETY: waiters stay in place.
        unsafe {
            // A6'': pairs with A2.
            let after = (*next).next.load(Ordering::Acquire);
            if after.is_null() {
                Self::grant(next);
            } else {
                // Surplus: `next` is not the last, so it can leave the queue.
                self.send_off(next);
                Self::grant(after);
            }
        }
    }

    /// Hands the lock to a passive waiter, which takes our place at the head
    /// of the queue.
    ///
    /// # Safety
    /// The caller holds the lock with `own`; the passive list is not empty.
    #[cold]
    unsafe fn hand_to_passive(&self, own: &MalthusianNode<P>, eldest: bool) {
        // SAFETY: of the caller.
        let heir = unsafe { self.call_back(eldest) };
        // A6: pairs with A2.
        let mut next = own.next.load(Ordering::Acquire);
        if next.is_null() {
            // A9: pairs with A1 of a CPU that queues behind the heir: its node
            // is reset.
            if self
                .tail
                .compare_exchange(own.address(), heir, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                // SAFETY: the heir waits.
                unsafe { Self::grant(heir) };
                return;
            }
            // A6': pairs with A2.
            next = own
                .next
                .spin_until(Ordering::Acquire, |next| !next.is_null());
        }
        // SAFETY: the heir waits. Its own read of `next` comes after A7.
        unsafe {
            (*heir).next.store(next, Ordering::Relaxed);
            Self::grant(heir);
        }
    }
}

impl<P: Platform> Default for Malthusian<P> {
    fn default() -> Self {
        Self {
            tail: P::Ptr::new(ptr::null_mut()),
            youngest: P::Ptr::new(ptr::null_mut()),
            eldest: P::Ptr::new(ptr::null_mut()),
            turns: P::U32::new(0),
        }
    }
}

// SAFETY: every waiter is in the queue or in the passive list; a release
// grants one of them, or frees the lock when both are empty.
unsafe impl<P: Platform> RawLock<P> for Malthusian<P> {
    type Ctx = MalthusianNode<P>;

    const INFO: Info = Info {
        name: "malthusian",
        summary: "MCS that lets few circulate and parks the rest",
        fairness: Fairness::Bounded("the eldest parked waiter returns after 256 releases"),
        overtakes: Some(Overtakes::InAll(TURNS)),
        parks: true,
        bytes_per_waiter: 64,
        paper: "Dice 2017",
        promises: "many turns, sent off and called, called back, short-lived, short-lived among \
            three, loses races",
        ..Info::BASE
    };

    #[inline]
    unsafe fn lock(&self, node: &MalthusianNode<P>) {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.state.store(WAITING, Ordering::Relaxed);
        // A1: Acquire pairs with A8; Release: our node is reset before a
        // successor links to it.
        let predecessor = self.tail.swap(node.address(), Ordering::AcqRel);
        if !predecessor.is_null() {
            Self::wait(predecessor, node);
        }
    }

    #[inline]
    unsafe fn try_lock(&self, node: &MalthusianNode<P>) -> bool {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // A1': as A1.
        self.tail
            .compare_exchange(
                ptr::null_mut(),
                node.address(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.tail.load(Ordering::Relaxed).is_null())
    }

    #[inline]
    unsafe fn unlock(&self, node: &MalthusianNode<P>) {
        // SAFETY: the caller holds the lock with this node.
        unsafe { self.release(node) }
    }
}

// SAFETY: when `unlock` returns, no other CPU knows the node.
unsafe impl<P: Platform> crate::mutex::StackContext for Malthusian<P> {}
// SAFETY: it names contexts of waiters only.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Malthusian<P> {}
