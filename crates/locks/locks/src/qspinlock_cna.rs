//! The queued spinlock whose queue stays within a NUMA node, still in four
//! bytes.

use crate::native::NativePlatform;
use crate::platform::{Atomic, LockWord, Ordering, Platform};
use crate::qnode::QueueNode;
use crate::qspinlock::{LOCKED, LOCKED_MASK, PENDING, QSpinlock, node_of};
use crate::raw::{Fairness, Info, Overtakes, RawLock};
use core::ptr;

/// Handoffs within a NUMA node before the waiters of other nodes go first.
const LOCAL: u32 = 256;

// `granted` of a queue node. While it waits: its NUMA node (15 bits), and its
// name, which whoever moves it to the second queue needs. As the head:
/// this bit, the handoffs within the NUMA node so far, and the name of the last
/// of the second queue, 0 if there is none.
const HEAD: u32 = 1 << 31;
const NUMA: u32 = 0x7fff << 16;

/// [`crate::QSpinlock`], except that the head of its queue hands over to the
/// first waiter of its own NUMA node: CNA in four bytes.
///
/// ```
/// use locklab_locks::kernel::QSpinlockCnaMutex;
///
/// static COUNT: QSpinlockCnaMutex<u32> = QSpinlockCnaMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`QSpinlockCnaMutex`](crate::kernel::QSpinlockCnaMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice and A. Kogan, "Compact NUMA-aware Locks", EuroSys 2019,
/// section 6, which puts the algorithm into the queued spinlock of Linux (as
/// their patches to that kernel proposed from 2019 on).
///
/// The word and the fast path are those of [`crate::QSpinlock`]. The head of
/// the queue, while it waits for the holder, looks for a waiter of its own NUMA
/// node and moves those before it to a second queue, a ring, whose last it
/// names in the grant. Neither the nodes nor the lock grow: NUMA node, name and
/// count are stored in the word on which a waiter waits.
///
/// **Size:** 4 bytes. **Per waiter:** nothing (see [`crate::QSpinlock`]).
/// **Fairness:** the second queue goes before the main one after at most 256
/// handoffs in a row within one NUMA node (the patches flush it by time; a
/// count makes runs repeatable), or as soon as no CPU of the node waits; the
/// CPU that waits on the word itself (pending) is next, whatever its node; one
/// without a queue node waits as in [`crate::QSpinlock`], and can starve: beside
/// four threads with a node it had none of 656,270 acquisitions in 5 s (see there
/// how that was measured).
/// **Take it** where [`crate::QSpinlock`] is contended across NUMA nodes; on
/// one node it costs a read of the next waiter. Nothing is touched after the
/// release.
#[repr(transparent)]
pub struct QSpinlockCna<P: Platform = NativePlatform>(QSpinlock<P>);

impl<P: Platform> QSpinlockCna<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self(QSpinlock::new())
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, word: u32) {
        self.0.wait_and_queue(word, Self::queue);
    }

    fn queue(lock: &QSpinlock<P>, name: u16, node: &'static QueueNode<P>) {
        let numa = (P::node() as u32) << 16 & NUMA;
        node.granted
            .store(numa | u32::from(name), Ordering::Relaxed);
        // N1: Release pairs with the Acquire of the next N1: our node is set
        // before a successor links itself to it; Acquire so with the
        // predecessor's, and pairs with N6.
        let before = lock.word.swap_high_half(name, Ordering::AcqRel);
        let grant = if before == 0 {
            HEAD
        } else {
            // N2: pairs with N7 and N8: our node is set before a head reads it.
            node_of::<P>(before)
                .next
                .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
            // N3: pairs with N9: we are the head, and see what heads before us
            // have linked.
            node.granted
                .spin_until(Ordering::Acquire, |granted| granted & HEAD != 0)
        };
        let mut second = grant as u16;
        let local = (grant & !HEAD) >> 16;
        let prefers = local < P::preferences(LOCAL);
        let mut seen = node;
        // While the holder is still inside.
        let mut heir = prefers && Self::find_heir(node, numa, &mut seen, &mut second);
        // N4: pairs with Q9.
        let mut word = lock.word.spin_until(Ordering::Acquire, |word| {
            word & (LOCKED_MASK | PENDING) == 0
        });
        while (word >> 16) as u16 == name {
            match Self::leave_queue(lock, word, second) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        // Someone has queued.
        lock.word.store_low_byte(LOCKED as u8, Ordering::Relaxed);
        // N7: pairs with N2.
        let mut next = node
            .next
            .spin_until(Ordering::Acquire, |next| !next.is_null());
        if !heir && prefers {
            heir = Self::find_heir(node, numa, &mut seen, &mut second);
            next = node.next.load(Ordering::Relaxed);
        }
        let mut grant = HEAD;
        if heir {
            grant |= (local + 1) << 16 | u32::from(second);
        } else if second != 0 {
            // The second queue goes before the main one. Its links are read by
            // heads only, which come one after the other by N9 and N3.
            let last = &node_of::<P>(second).next;
            let first = last.load(Ordering::Relaxed);
            last.store(next, Ordering::Relaxed);
            next = first;
        }
        // SAFETY: a node of the platform, which live for ever.
        let next = unsafe { &*next };
        // N9: pairs with N3.
        next.granted.store(grant, Ordering::Release);
    }

    /// Finds a waiter of NUMA node `numa` behind `seen`; it becomes the next of
    /// `head`, and those in between go to the end of the second queue. If there
    /// is none, the search can continue later from `seen`.
    fn find_heir(
        head: &'static QueueNode<P>,
        numa: u32,
        seen: &mut &'static QueueNode<P>,
        second: &mut u16,
    ) -> bool {
        let heir = loop {
            // N8: pairs with N2.
            let waiter = seen.next.load(Ordering::Acquire);
            if waiter.is_null() {
                return false;
            }
            // SAFETY: as above.
            let node = unsafe { &*waiter };
            if node.granted.load(Ordering::Relaxed) & NUMA == numa {
                break waiter;
            }
            *seen = node;
        };
        if !ptr::eq(*seen, head) {
            let first = head.next.load(Ordering::Relaxed);
            let end = if *second == 0 {
                first
            } else {
                let last = &node_of::<P>(*second).next;
                let end = last.load(Ordering::Relaxed);
                last.store(first, Ordering::Relaxed);
                end
            };
            // None of these is the tail: the heir stands behind them.
            seen.next.store(end, Ordering::Relaxed);
            *second = seen.granted.load(Ordering::Relaxed) as u16;
            head.next.store(heir, Ordering::Relaxed);
        }
        true
    }

    /// Acquires the lock for the head, when `word` has no other waiter: the
    /// second queue becomes the main one. Fails with the word of now if it has
    /// changed: someone has queued; or has set pending, seen the queue, and
    /// takes the bit back.
    fn leave_queue(lock: &QSpinlock<P>, word: u32, second: u16) -> Result<u32, u32> {
        let mut first = ptr::null_mut();
        if second != 0 {
            let last = &node_of::<P>(second).next;
            first = last.load(Ordering::Relaxed);
            last.store(ptr::null_mut(), Ordering::Relaxed);
        }
        let held = LOCKED | word & PENDING | u32::from(second) << 16;
        // N6: pairs with N1 of whoever queues behind the second queue, whose
        // last names nobody any more.
        let left = lock
            .word
            .compare_exchange(word, held, Ordering::Release, Ordering::Relaxed);
        if second != 0 && left.is_ok() {
            // SAFETY: as above.
            let first: &QueueNode<P> = unsafe { &*first };
            // N9': pairs with N3.
            first.granted.store(HEAD, Ordering::Release);
        } else if second != 0 {
            node_of::<P>(second).next.store(first, Ordering::Relaxed);
        }
        left
    }
}

impl<P: Platform> Default for QSpinlockCna<P> {
    fn default() -> Self {
        Self(QSpinlock::default())
    }
}

// SAFETY: as `QSpinlock`: one head at a time, for every waiter is in the main
// or the second queue, and a head makes one of them the next.
unsafe impl<P: Platform> RawLock<P> for QSpinlockCna<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "qspinlock-cna",
        summary: "qspinlock that hands over within a NUMA node",
        fairness: Fairness::Bounded(
            "after 256 handoffs within one NUMA node the others come first",
        ),
        overtakes: Some(Overtakes::InAll(LOCAL)),
        numa_aware: true,
        paper: "Dice and Kogan 2019",
        promises: "many turns, interrupted, overtaking in queue, queue while preempted, without \
            node, queue advances, neighbour in interrupt",
        orderings_of: Some("locks/src/qspinlock_cna.rs"),
        structure_of: &["locks/src/qspinlock_cna.rs", "P::preferences()"],
        ..<QSpinlock<P> as RawLock<P>>::INFO
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if let Err(word) = self.0.take_if_free() {
            self.wait(word);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, ctx: &()) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.try_lock(ctx) }
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        self.0.is_locked()
    }

    #[inline(always)]
    unsafe fn unlock(&self, ctx: &()) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unlock(ctx) }
    }
}

crate::lock_api_impl::context_free!(QSpinlockCna);

#[cfg(all(test, feature = "std", not(miri)))]
mod tests {
    use super::*;
    use crate::{Host, Native, QueueNodes, Threads};
    use std::cell::Cell;
    use std::sync::Mutex;
    use std::vec::Vec;

    std::thread_local! {
        static NUMA_NODE: Cell<usize> = const { Cell::new(0) };
    }

    /// A machine whose NUMA nodes the test sets.
    struct Numbered;

    static NODES: [QueueNodes<Native<Numbered>>; 64] = [const { QueueNodes::NEW }; 64];

    // SAFETY: the numbers of threads; an entry of a static for each.
    unsafe impl Host for Numbered {
        fn cpu() -> usize {
            Threads::cpu()
        }
        fn node() -> usize {
            NUMA_NODE.get()
        }
        fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
            &NODES[cpu]
        }
    }

    /// Lets waiters of these NUMA nodes arrive one after the other; returns the
    /// order in which they are served.
    fn served(numa_nodes: &[usize]) -> Vec<usize> {
        static LOCK: QSpinlockCna<Native<Numbered>> = QSpinlockCna::new();
        let order = Mutex::new(Vec::new());
        // SAFETY: a static lock without context.
        unsafe { LOCK.lock(&()) };
        std::thread::scope(|scope| {
            for (n, &numa) in numa_nodes.iter().enumerate() {
                let before = LOCK.0.word.load(Ordering::Relaxed);
                let order = &order;
                scope.spawn(move || {
                    NUMA_NODE.set(numa);
                    // SAFETY: as above; released once.
                    unsafe {
                        LOCK.lock(&());
                        order.lock().unwrap().push(n);
                        LOCK.unlock(&());
                    }
                });
                while LOCK.0.word.load(Ordering::Relaxed) == before {
                    std::thread::yield_now();
                }
            }
            // The last has swapped the tail; its link comes soon.
            std::thread::sleep(std::time::Duration::from_millis(5));
            // SAFETY: held since the beginning.
            unsafe { LOCK.unlock(&()) };
        });
        assert_eq!(LOCK.0.word.load(Ordering::Relaxed), 0, "free, no waiters");
        order.into_inner().unwrap()
    }

    #[test]
    fn the_queue_stays_within_a_numa_node() {
        // The first waits on the word, the second is the head.
        assert_eq!(served(&[0, 0, 1, 0, 1, 0]), [0, 1, 3, 5, 2, 4]);
        assert_eq!(served(&[1, 0, 1, 1, 0]), [0, 1, 4, 2, 3]);
        // Nobody is of its own node: they are served in order.
        assert_eq!(served(&[0, 0, 1, 2, 1]), [0, 1, 2, 4, 3]);
        assert_eq!(served(&[0, 0, 1, 2, 3]), [0, 1, 2, 3, 4]);
    }
}
