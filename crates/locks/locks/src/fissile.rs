//! The fissile lock: test-and-set while it is free, a NUMA-aware queue
//! behind it.

use crate::cna::{Cna, CnaNode};
use crate::native::NativePlatform;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::raw::{Fairness, Info, RawLock};

const HELD: u32 = 1;
const HELD_MASK: u32 = 0xff;
/// The head of the queue is next: no other CPU enters.
const IMPATIENT: u32 = 1 << 8;
/// Reads of the head of the queue before it becomes impatient.
const GRACE: u32 = 50;

/// A fissile lock: a word (bits 0 to 7 held, bit 8 impatient) and a queue.
///
/// ```
/// use locklab_locks::spin::FissileMutex;
///
/// static COUNT: FissileMutex<u32> = FissileMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`FissileMutex`](crate::spin::FissileMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice and A. Kogan, "Fissile Locks", NETYS 2020.
///
/// **Size:** 16 bytes. **Per waiter:** one node on the stack of `lock`,
/// released when `lock` returns. **Fairness:** a newly arrived CPU may overtake
/// the queue until the head of the queue has read the word 50 times; then the
/// lock closes to newcomers. The queue is [`Cna`](crate::queue::Cna).
#[repr(C)]
pub struct Fissile<P: Platform = NativePlatform> {
    word: P::U32,
    queue: Cna<P>,
}

impl<P: Platform> Fissile<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            word: P::U32::ZERO,
            queue: Cna::new(),
        }
    }

    #[inline(always)]
    fn take_if_free(&self) -> bool {
        // F1: pairs with F4.
        self.word
            .compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let node = CnaNode::default();
        // SAFETY: the node stays until the queue is left below.
        unsafe { self.queue.lock(&node) };
        self.wait_as_head();
        // SAFETY: we hold the queue with this node.
        unsafe { self.queue.unlock(&node) };
    }

    fn wait_as_head(&self) {
        let mut reads = GRACE;
        while reads > 0 {
            let word = self
                .word
                .spin(Ordering::Relaxed, Patience::Reads(reads), |word| {
                    if word == 0 {
                        Poll::Done
                    } else {
                        Poll::Relax(1)
                    }
                });
            if word != 0 {
                break;
            }
            if self.take_if_free() {
                return;
            }
            // Lost to a newcomer, which counts.
            reads /= 2;
        }
        self.word.fetch_or(IMPATIENT, Ordering::Relaxed);
        // F2: pairs with F4.
        self.word
            .spin_until(Ordering::Acquire, |word| word & HELD_MASK == 0);
        // While the bit is set only the head of the queue enters, and that
        // is us: this clears it and takes the lock.
        self.word.store_low_half(HELD as u16, Ordering::Relaxed);
    }
}

impl<P: Platform> Default for Fissile<P> {
    fn default() -> Self {
        Self {
            word: P::U32::new(0),
            queue: Cna::default(),
        }
    }
}

// SAFETY: the held byte goes from 0 to 1 by a compare-and-swap of an all-zero
// word (F1), or by the one head of the queue while `IMPATIENT` keeps others
// out.
unsafe impl<P: Platform> RawLock<P> for Fissile<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "fissile",
        summary: "test-and-set first, a NUMA-aware queue behind it",
        fairness: Fairness::Bounded("the queue's head lets newcomers by for 50 reads"),
        numa_aware: true,
        bytes_per_waiter: 64,
        paper: "Dice and Kogan 2020",
        promises: "announced, loses races",
        structure_of: &["locks/src/fissile.rs"],
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if !self.take_if_free() {
            self.wait();
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, _: &()) -> bool {
        self.word.load(Ordering::Relaxed) == 0 && self.take_if_free()
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(self.word.load(Ordering::Relaxed) & HELD_MASK != 0)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // F4: pairs with F1 and F2.
        self.word.store_low_byte(0, Ordering::Release);
    }
}

crate::lock_api_impl::context_free!(Fissile);
