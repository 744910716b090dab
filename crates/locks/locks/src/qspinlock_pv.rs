//! The paravirtual queued spinlock: waiters that spin for a while and then
//! sleep, and a lock that running CPUs may take before sleeping ones.

use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::qnode::{NESTING, QueueNode};
use crate::qspinlock::{node_of, tail_of};
use crate::raw::{Fairness, Info, RawLock};
use core::ptr;

// This is the locked byte.
const LOCKED: u32 = 1;
/// Locked while the head of the queue sleeps: unlock must kick it.
const HEAD_SLEEPS: u32 = 3;
const LOCKED_MASK: u32 = 0xff;
/// The head of the queue is awake: the lock must not be stolen.
const PENDING: u32 = 1 << 8;
/// The bits of the low half that must be clear for the lock to be stolen.
const STEALABLE_MASK: u32 = LOCKED_MASK | PENDING;

// `granted` of a queue node.
const WAIT: u32 = 0;
const HEAD: u32 = 1;
const SLEEPS: u32 = 2;

/// A queued spinlock whose waiters sleep after `READS` fruitless reads. Bits
/// 0 to 7 locked, bit 8 "no stealing", bits 16 and up the tail of the queue.
///
/// ```
/// use locklab_locks::kernel::QSpinlockPvMutex;
///
/// static COUNT: QSpinlockPvMutex<u32> = QSpinlockPvMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`QSpinlockPvMutex`](crate::kernel::QSpinlockPvMutex) lists them.
///
/// # Properties
///
/// It follows W. Long's paravirtual queued spinlock and its hybrid of a queue
/// and an unfair lock (Linux, 2015 and 2016), from their descriptions on the
/// kernel list.
///
/// - A waiter whose patience ends sleeps, and is kicked: by its predecessor
///   if it is not yet the head of the queue, by the unlock if it is. A head
///   that sleeps marks the locked byte, so an unlock without sleepers
///   costs nothing more.
/// - A CPU that arrives while the head sleeps acquires the free lock past the
///   queue. Without that, a convoy of sleepers never dissolves: every handoff
///   would wait for a kick to arrive.
/// - The head, while awake, sets the pending bit, and nobody overtakes it.
///
/// **Size:** 4 bytes. **Per waiter:** nothing (see [`crate::QSpinlock`]). **Fairness:**
/// waiters in the queue are served in order; others overtake them only while
/// the head sleeps, and a kicked head forbids it as soon as it runs. A CPU without
/// a queue node acquires only so, or when nobody waits, and nothing bounds its
/// wait; beside four threads with a node it had a fifth of the acquisitions
/// ([`crate::QSpinlock`] says how that was measured).
///
/// `READS` reads should take about as long as a sleep and its kick: a waiter
/// then never loses more than twice the minimum.
#[repr(transparent)]
pub struct QSpinlockPv<P: Platform = NativePlatform, const READS: u32 = 1024> {
    word: P::U32,
}

impl<P: Platform, const READS: u32> QSpinlockPv<P, READS> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self { word: P::U32::ZERO }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        if self.steal() {
            return;
        }
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
        node.granted.store(WAIT, Ordering::Relaxed);
        self.queue(tail_of(cpu, level as usize), node);
        // Pairs with an interrupt: it does not find our level free while the
        // node is still being used.
        P::interrupt_fence();
        depth.store(level, Ordering::Relaxed);
    }

    fn wait_without_node(&self) {
        while !self.steal() {
            P::relax();
        }
    }

    /// Acquires past the queue while its head sleeps; gives up when there is no
    /// queue, when its head is awake, or when patience ends.
    fn steal(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & STEALABLE_MASK == 0 {
                // K2: pairs with K9.
                match self.word.compare_exchange(
                    word,
                    word | LOCKED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return true,
                    Err(now) => word = now,
                }
                continue;
            }
            if word & PENDING != 0 || word >> 16 == 0 {
                return false;
            }
            word = self
                .word
                .spin(Ordering::Relaxed, Patience::Reads(READS), |word| {
                    let worth_waiting =
                        word & LOCKED_MASK != 0 && word & PENDING == 0 && word >> 16 != 0;
                    if worth_waiting {
                        Poll::Relax(1)
                    } else {
                        Poll::Done
                    }
                });
            if word & LOCKED_MASK != 0 {
                return false;
            }
        }
    }

    fn queue(&self, tail: u16, node: &'static QueueNode<P>) {
        // K4: Release pairs with the Acquire of the next K4: our node is reset
        // before a successor links itself to it; Acquire so with the
        // predecessor's.
        let before = self.word.swap_high_half(tail, Ordering::AcqRel);
        if before != 0 {
            // K5: pairs with K8: our node is reset before it is granted.
            node_of::<P>(before)
                .next
                .store(ptr::from_ref(node).cast_mut(), Ordering::Release);
            Self::wait_to_be_head(node);
        }
        let word = self.wait_as_head();
        // Pending is set and nobody holds the lock, so the low half is ours.
        if (word >> 16) as u16 == tail
            && self
                .word
                .compare_exchange(word, LOCKED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            return; // nobody behind us
        }
        self.word.store_low_half(LOCKED as u16, Ordering::Relaxed);
        // K8: pairs with K5.
        let next = node
            .next
            .spin_until(Ordering::Acquire, |next| !next.is_null());
        // SAFETY: a node of the platform, which live for ever.
        let next = unsafe { &*next };
        // K8': pairs with K6.
        if next.granted.swap(HEAD, Ordering::Release) == SLEEPS {
            P::wake(&next.granted);
        }
    }

    fn wait_to_be_head(node: &QueueNode<P>) {
        // K6: pairs with K8'.
        let mut granted = node
            .granted
            .spin(Ordering::Acquire, Patience::Reads(READS), |granted| {
                if granted == HEAD {
                    Poll::Done
                } else {
                    Poll::Relax(1)
                }
            });
        if granted == HEAD {
            return;
        }
        // K6': as K6, for the failure.
        match node
            .granted
            .compare_exchange(WAIT, SLEEPS, Ordering::Relaxed, Ordering::Acquire)
        {
            Ok(_) => granted = SLEEPS,
            Err(_) => return,
        }
        while granted != HEAD {
            P::wait(&node.granted, SLEEPS);
            // K6": as K6.
            granted = node.granted.load(Ordering::Acquire);
        }
    }

    /// Waits at the head of the queue until the lock is free; returns
    /// the word of that moment, in which pending is set.
    fn wait_as_head(&self) -> u32 {
        loop {
            // K7: pairs with K9.
            let mut word = self.word.fetch_or(PENDING, Ordering::Acquire) | PENDING;
            if word & LOCKED_MASK == 0 {
                return word;
            }
            // K7': as K7.
            word = self
                .word
                .spin(Ordering::Acquire, Patience::Reads(READS), |word| {
                    if word & LOCKED_MASK == 0 {
                        Poll::Done
                    } else {
                        Poll::Relax(1)
                    }
                });
            // Patience is over: allow stealing, ask for the kick, sleep. Not
            // while an unlock is between its two steps (neither value).
            while matches!(word & LOCKED_MASK, LOCKED | HEAD_SLEEPS) {
                let asleep = (word & !STEALABLE_MASK) | HEAD_SLEEPS;
                // K7": the failure as K7.
                match self
                    .word
                    .compare_exchange(word, asleep, Ordering::Relaxed, Ordering::Acquire)
                {
                    Ok(_) => {
                        P::wait(&self.word, asleep);
                        break;
                    }
                    Err(now) => word = now,
                }
            }
            if word & LOCKED_MASK == 0 {
                return word;
            }
        }
    }

    /// Unlocks when the head of the queue sleeps.
    #[cold]
    #[inline(never)]
    fn kick_head(&self) {
        // No Release: the word went down from K9 by read-modify-writes only,
        // ours and this one, so who acquires it from here acquires K9 (on
        // x86-64, where this is a plain store, every store is a Release).
        self.word.store_low_byte(0, Ordering::Relaxed);
        P::wake(&self.word);
    }
}

impl<P: Platform, const READS: u32> Default for QSpinlockPv<P, READS> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
        }
    }
}

// SAFETY: the locked byte goes from 0 to 1 by a compare-and-swap of a word
// without pending (the fast path, K2), or by the head of the queue while
// pending is set; and only the head sets it.
unsafe impl<P: Platform, const READS: u32> RawLock<P> for QSpinlockPv<P, READS> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "qspinlock-pv",
        summary: "qspinlock; waiters sleep, unlock kicks, runners may steal",
        fairness: Fairness::Bounded("in order while the head of the queue is awake"),
        parks: true,
        paper: "Long 2015-2016 (LKML)",
        cpu_numbers: true,
        // It wakes the sleeper by the address of the word.
        touches_after_release: true,
        promises: "both sleep, passes a sleeping head, interrupted, interrupted in queue, queue \
            while preempted, returns while preempted, without node, neighbour in interrupt, \
            interrupted twice, interrupted by qspinlock",
        orderings_of: Some("locks/src/qspinlock_pv.rs"),
        structure_of: &["locks/src/qspinlock_pv.rs", "P::cpu()"],
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        // K1: pairs with K9.
        if self
            .word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        // K1': as K1.
        self.word.take_if_zero(LOCKED, Ordering::Acquire)
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // The byte goes to 0, or to 2 (still held) if the head sleeps.
        // K9: pairs with K1, K1', K2, K7 and K7'.
        if self.word.fetch_sub(LOCKED, Ordering::Release) & LOCKED_MASK != LOCKED {
            self.kick_head();
        }
    }
}

crate::lock_api_impl::context_free!(QSpinlockPv, READS: u32);
