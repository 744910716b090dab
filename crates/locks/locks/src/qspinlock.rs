//! The queued spinlock: four bytes, a queue of per-CPU nodes behind them.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::qnode::{NESTING, QueueNode};
use crate::raw::{Fairness, Info, RawLock};
use core::ptr;

pub(crate) const LOCKED: u32 = 1;
pub(crate) const LOCKED_MASK: u32 = 0xff;
pub(crate) const PENDING: u32 = 1 << 8;

/// Sets how often a CPU that sees the pending waiter about to enter reads again before it
/// queues.
const PENDING_READS: u32 = 64;

/// A queued spinlock in one word: bits 0 to 7 locked, bit 8 pending, bits 16
/// and up the tail of the queue (nesting level, CPU number + 1).
///
/// ```
/// use locklab_locks::kernel::QSpinlockMutex;
///
/// static COUNT: QSpinlockMutex<u32> = QSpinlockMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`QSpinlockMutex`](crate::kernel::QSpinlockMutex) lists them.
///
/// # Properties
///
/// It follows the design of W. Long and P. Zijlstra (Linux, 2013 to 2015), as
/// described in J. Corbet, "MCS locks and qspinlocks", LWN, 11 March 2014;
/// the queue is that of Mellor-Crummey and Scott 1991.
///
/// **Size:** 4 bytes. **Per waiter:** nothing (each CPU owns four 16-byte nodes, one
/// for each nesting level). The release writes one byte of the word, because the
/// others are the waiters'. A compare-and-swap of the word just after that store
/// waits for it: back to back the pair takes 8.9 ns on AMD's Zen 3, where a release
/// of four bytes would take 2.3 (on Zen 4 6.0 and 2.1 ns), and with 10 ns of other
/// work between nothing of that is left. **Fairness:** first come, first served once queued;
/// the CPU that finds the lock held with nobody waiting waits on the lock
/// word itself (the pending bit), which saves the first waiter a node. A CPU
/// without a node (one that has no number, or an interrupt that is nested more
/// than four deep) cannot queue: if it does not become that first waiter, it
/// waits until nobody holds the lock or waits for it, however often others
/// enter meanwhile. **It can starve:** beside two threads with a node, on two
/// CPUs, one without had 2 % of the acquisitions; beside four, none of 747,842
/// in 5 s (`examples/without_node.rs`, AMD EPYC, family 26 model 2, 2 vCPUs, 23
/// November 2026). Where every CPU has a number and no more than four levels
/// nest, as in a kernel, there is no such waiter.
#[repr(transparent)]
pub struct QSpinlock<P: Platform = NativePlatform> {
    pub(crate) word: P::U32,
}

/// Returns the name of a queue node in the high half of the word. Never zero.
pub(crate) fn tail_of(cpu: usize, level: usize) -> u16 {
    (((cpu + 1) << 2) | level) as u16
}

pub(crate) fn node_of<P: Platform>(tail: u16) -> &'static QueueNode<P> {
    let tail = usize::from(tail);
    // SAFETY: this is that lock; the node of a neighbour in its queue.
    let nodes = unsafe { P::queue_nodes((tail >> 2) - 1).levels() };
    &nodes[tail & (NESTING - 1)]
}

impl<P: Platform> QSpinlock<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[inline(always)]
    pub(crate) fn take_if_free(&self) -> Result<(), u32> {
        // Q1: pairs with Q9.
        self.word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .map(|_| ())
    }

    /// Acquires after the word was found to be `word` and not zero. Public for
    /// the C header, whose fast path has tried the compare-and-swap.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn wait(&self, word: u32) {
        self.wait_and_queue(word, Self::queue);
    }

    /// Returns the same, with another way through the queue: `queue` gets the name of a
    /// node and the node, which is reset, and returns with the lock acquired.
    #[inline(always)]
    pub(crate) fn wait_and_queue(
        &self,
        mut word: u32,
        queue: impl FnOnce(&Self, u16, &'static QueueNode<P>),
    ) {
        if word == PENDING {
            // Pending without locked lasts a moment: its owner is entering.
            word = self
                .word
                .spin(Ordering::Relaxed, Patience::Reads(PENDING_READS), |word| {
                    if word == PENDING {
                        Poll::Relax(1)
                    } else {
                        Poll::Done
                    }
                });
        }
        if word & !LOCKED_MASK != 0 || !self.wait_as_pending() {
            self.wait_in_queue(queue);
        }
    }

    /// Tries to be the one waiter that needs no node; returns whether it
    /// acquired the lock that way.
    fn wait_as_pending(&self) -> bool {
        // Q2: pairs with Q9 if the lock has become free.
        let old = self.word.fetch_or(PENDING, Ordering::Acquire);
        if old & !LOCKED_MASK != 0 {
            if old & PENDING == 0 {
                // A queue has formed: the bit is ours, and nobody who sees a
                // queue relies on it.
                self.word.fetch_and(!PENDING, Ordering::Relaxed);
            }
            return false;
        }
        if old & LOCKED_MASK != 0 {
            // Q3: pairs with Q9.
            self.word
                .spin_until(Ordering::Acquire, |word| word & LOCKED_MASK == 0);
        }
        // While pending is set nobody else takes the lock: the head of the
        // queue waits for both.
        self.word.store_low_half(LOCKED as u16, Ordering::Relaxed);
        true
    }

    fn wait_in_queue(&self, queue: impl FnOnce(&Self, u16, &'static QueueNode<P>)) {
        let Some(cpu) = P::try_cpu() else {
            return self.wait_without_node();
        };
        // SAFETY: this is that lock, on this CPU.
        let nodes = unsafe { P::queue_nodes(cpu).levels() };
        let depth = &nodes[0].aux;
        let level = depth.load(Ordering::Relaxed);
        if level as usize >= NESTING {
            // Deeper than any interrupt can nest.
            return self.wait_without_node();
        }
        // An interrupt may come here at any time: it takes the next level and
        // gives it back before it returns.
        depth.store(level + 1, Ordering::Relaxed);
        // Pairs with that interrupt: it does not find our level free once the
        // node below is being used.
        P::interrupt_fence();
        let node = &nodes[level as usize];
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.granted.store(0, Ordering::Relaxed);
        // Q1'': as Q1. Read first: where the lock is still held, the swap would
        // only take the line away from the holder and from who waits on it.
        if !self.word.take_if_zero(LOCKED, Ordering::Acquire) {
            queue(self, tail_of(cpu, level as usize), node);
        }
        // Pairs with an interrupt: it does not find our level free while the
        // node is still being used.
        P::interrupt_fence();
        depth.store(level, Ordering::Relaxed);
    }

    /// Waits until nobody holds the lock or waits for it.
    fn wait_without_node(&self) {
        loop {
            self.word.spin_until(Ordering::Relaxed, |word| word == 0);
            if self.take_if_free().is_ok() {
                return;
            }
        }
    }

    fn queue(&self, tail: u16, node: &'static QueueNode<P>) {
        // Q4: Release pairs with the Acquire of the next Q4: our node is reset
        // before a successor links itself to it; Acquire so with the
        // predecessor's.
        let before = self.word.swap_high_half(tail, Ordering::AcqRel);
        if before != 0 {
            // Q5: pairs with Q8: our node is reset before it is granted.
            node_of::<P>(before)
                .next
                .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
            // Q6: pairs with Q8': we are the head.
            node.granted
                .spin_until(Ordering::Acquire, |granted| granted != 0);
        }
        // Q7: pairs with Q9.
        let mut word = self.word.spin_until(Ordering::Acquire, |word| {
            word & (LOCKED_MASK | PENDING) == 0
        });
        while (word >> 16) as u16 == tail {
            // Whoever has set pending meanwhile has seen the queue, and takes
            // the bit back; it may have no node to queue with.
            let held = LOCKED | word & PENDING;
            match self
                .word
                .compare_exchange(word, held, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return, // nobody behind us
                Err(now) => word = now,
            }
        }
        // Someone has queued.
        self.word.store_low_byte(LOCKED as u8, Ordering::Relaxed);
        // Q8: pairs with Q5.
        let next = node
            .next
            .spin_until(Ordering::Acquire, |next| !next.is_null());
        // SAFETY: a node of the platform, which live for ever.
        let next = unsafe { &*next };
        // Q8': pairs with Q6.
        next.granted.store(1, Ordering::Release);
    }
}

impl<P: Platform> Default for QSpinlock<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
        }
    }
}

// SAFETY: the locked byte goes from 0 to 1 by a compare-and-swap of a word
// without waiters (Q1), by the owner of the pending bit, or by the head of the
// queue while pending is clear; no two of them can be at it at once.
unsafe impl<P: Platform> RawLock<P> for QSpinlock<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "qspinlock",
        summary: "four bytes, per-CPU queue nodes; +6 ns back to back on Zen 3",
        fairness: Fairness::Fifo,
        paper: "Long and Zijlstra 2013-2015 (LWN, March 2014)",
        cpu_numbers: true,
        promises: "interrupted, queue while preempted, without node, queue advances, taken \
            while preempted, neighbour in interrupt, in order again, interrupted twice, \
            interrupted by qspinlock-pv",
        orderings_of: Some("locks/src/qspinlock.rs"),
        structure_of: &["locks/src/qspinlock.rs", "P::cpu()"],
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if let Err(word) = self.take_if_free() {
            self.wait(word);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // Q1': as Q1.
        self.word.take_if_zero(LOCKED, Ordering::Acquire)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // Q9: pairs with Q1, Q1', Q1'', Q2, Q3 and Q7.
        self.word.store_low_byte(0, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(QSpinlock);
crate::lock_api_impl::fair!(QSpinlock);

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::native::NativePlatform as N;

    /// Four levels wait in queue nodes; whoever comes on top waits without.
    #[test]
    fn nests_deeper_than_the_nodes() {
        static LOCK: QSpinlock = QSpinlock::new();
        let lock = || {
            // SAFETY: a static lock without context.
            unsafe { LOCK.lock(&()) }
        };
        // SAFETY: called while holding.
        let unlock = || unsafe { LOCK.unlock(&()) };
        for level in 0..=NESTING as u32 {
            lock();
            // A queue forms behind us, so that the nested waiter queues too.
            let waiters: std::vec::Vec<_> = (0..2)
                .map(|_| {
                    std::thread::spawn(move || {
                        lock();
                        unlock();
                    })
                })
                .collect();
            let nested = std::thread::spawn(move || {
                // SAFETY: this thread's.
                let depth = unsafe { &N::queue_nodes(N::cpu()).levels()[0].aux };
                depth.store(level, Ordering::Relaxed);
                lock();
                unlock();
                assert_eq!(depth.load(Ordering::Relaxed), level, "levels given back");
                depth.store(0, Ordering::Relaxed);
            });
            std::thread::sleep(std::time::Duration::from_millis(2));
            unlock();
            nested.join().unwrap();
            for waiter in waiters {
                waiter.join().unwrap();
            }
        }
        assert_eq!(LOCK.word.load(Ordering::Relaxed), 0, "free, no waiters");
    }
}
