//! The reciprocating lock: arrivals on a stack, served segment by segment.

use crate::native::NativePlatform;
use crate::platform::{Atomic, Ordering, Platform};
use crate::raw::{Fairness, Info, Overtakes, RawLock};
use core::cell::Cell;
use core::ptr;

/// Describes what a CPU supplies to a [`Reciprocating`] lock; it stays in place from
/// `lock` to the end of `unlock`.
#[repr(C, align(64))]
pub struct ReciprocatingElement<P: Platform = NativePlatform> {
    /// Null while the CPU must wait; otherwise the lock, and the end of the
    /// segment in service.
    gate: P::Ptr<ReciprocatingElement<P>>,
    /// The holder's successor in this segment; null for none.
    successor: Cell<*mut ReciprocatingElement<P>>,
    /// The end of the holder's segment.
    end: Cell<*mut ReciprocatingElement<P>>,
}

impl<P: Platform> ReciprocatingElement<P> {
    /// Returns an element that waits for nothing.
    pub const fn new() -> Self {
        Self {
            gate: P::Ptr::ZERO,
            successor: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
        }
    }
}

impl<P: Platform> Default for ReciprocatingElement<P> {
    fn default() -> Self {
        Self {
            gate: P::Ptr::new(ptr::null_mut()),
            successor: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
        }
    }
}

/// Returns a sign. On the stack of arrivals it says: held, with no waiter there. At the
/// end of a segment it says that the segment was detached from such a stack.
fn held<P: Platform>() -> *mut ReciprocatingElement<P> {
    ptr::without_provenance_mut(1)
}

/// A reciprocating lock: the top of the stack of arrivals, null when free.
///
/// ```
/// use locklab_locks::mutex::NodeMutex;
/// use locklab_locks::queue::Reciprocating;
///
/// static COUNT: NodeMutex<Reciprocating, u32> = NodeMutex::new(Reciprocating::new(), 0);
/// COUNT.with(|count| *count += 1);
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`ReciprocatingMutex`](crate::queue::ReciprocatingMutex) lists them.
///
/// # Properties
///
/// **Paper:** D. Dice and A. Kogan, "Reciprocating Locks", PPoPP 2025.
///
/// **Size:** one pointer. **Per waiter:** one 64-byte element, on which it alone
/// spins. **Fairness:** arrivals form a stack; when the segment in service is
/// exhausted, the whole stack becomes the next one, last come first. So a
/// waiter is overtaken at most once by each other CPU. Arrival is one swap,
/// and so is (at most) a release.
#[repr(transparent)]
pub struct Reciprocating<P: Platform = NativePlatform> {
    arrivals: P::Ptr<ReciprocatingElement<P>>,
}

impl<P: Platform> Reciprocating<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self {
            arrivals: P::Ptr::ZERO,
        }
    }

    /// Waits for the gate of `own`; `below` is the element that our arrival has
    /// covered.
    #[cold]
    #[inline(never)]
    fn wait(own: &ReciprocatingElement<P>, below: *mut ReciprocatingElement<P>) {
        let successor = if below == held() {
            ptr::null_mut()
        } else {
            below
        };
        // R2: pairs with R4 and R6.
        let end = own
            .gate
            .spin_until(Ordering::Acquire, |gate| !gate.is_null());
        if successor == end {
            // Below us is the element of the CPU whose release has detached
            // this segment: an address only, nobody waits there.
            own.successor.set(ptr::null_mut());
            own.end.set(held());
        } else {
            own.successor.set(successor);
            own.end.set(end);
        }
    }

    #[cold]
    #[inline(never)]
    fn next_segment(&self, end: *mut ReciprocatingElement<P>) {
        // R5: Acquire pairs with R1: the gate of the last to come is closed
        // before we open it.
        let top = self.arrivals.swap(held(), Ordering::Acquire);
        // SAFETY: the compare-and-swap before has failed, so somebody has
        // come; it waits until the store below.
        let top = unsafe { &*top };
        // R6: pairs with R2.
        top.gate.store(end, Ordering::Release);
    }
}

impl<P: Platform> Default for Reciprocating<P> {
    fn default() -> Self {
        Self {
            arrivals: P::Ptr::new(ptr::null_mut()),
        }
    }
}

// SAFETY: one CPU at a time has a null `arrivals` to replace or an open gate;
// a release opens one gate, or makes `arrivals` null.
unsafe impl<P: Platform> RawLock<P> for Reciprocating<P> {
    type Ctx = ReciprocatingElement<P>;

    const INFO: Info = Info {
        name: "reciprocating",
        summary: "arrivals on a stack, served one segment after another",
        fairness: Fairness::Bounded("each other CPU overtakes a waiter at most once"),
        overtakes: Some(Overtakes::ByEachCpu(1)),
        bytes_per_waiter: 64,
        paper: "Dice and Kogan 2025",
        promises: "short-lived",
        ..Info::BASE
    };

    #[inline(always)]
    unsafe fn lock(&self, own: &ReciprocatingElement<P>) {
        own.gate.store(ptr::null_mut(), Ordering::Relaxed);
        let address = ptr::from_ref(own).cast_mut();
        // R1: Acquire pairs with R3 (free at once), and with the Release of
        // the arrival below us, whose gate we may open: it is closed before.
        let below = self.arrivals.swap(address, Ordering::AcqRel);
        if below.is_null() {
            own.successor.set(ptr::null_mut());
            own.end.set(address);
        } else {
            Self::wait(own, below);
        }
    }

    #[inline(always)]
    unsafe fn try_lock(&self, own: &ReciprocatingElement<P>) -> bool {
        let address = ptr::from_ref(own).cast_mut();
        // R1': pairs with R3. Nobody opens the gate of a CPU that found the
        // lock free, so it needs no closing and no Release.
        let free = self
            .arrivals
            .compare_exchange(
                ptr::null_mut(),
                address,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok();
        if free {
            own.successor.set(ptr::null_mut());
            own.end.set(address);
        }
        free
    }

    #[inline(always)]
    fn is_locked(&self) -> Option<bool> {
        Some(!self.arrivals.load(Ordering::Relaxed).is_null())
    }

    #[inline(always)]
    unsafe fn unlock(&self, own: &ReciprocatingElement<P>) {
        let end = own.end.get();
        let successor = own.successor.get();
        if !successor.is_null() {
            // R4: pairs with R2.
            // SAFETY: the successor waits until this store.
            unsafe { &*successor }.gate.store(end, Ordering::Release);
            return;
        }
        // R3: pairs with R1, R1'. `end` is what `arrivals` holds if nobody
        // has come since the segment was detached.
        if self
            .arrivals
            .compare_exchange(end, ptr::null_mut(), Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.next_segment(end);
        }
    }
}

// SAFETY: after `unlock` the element's address may still mark the end of a
// segment, but nobody follows it.
unsafe impl<P: Platform> crate::mutex::StackContext for Reciprocating<P> {}
// SAFETY: it names contexts of waiters only.
unsafe impl<P: Platform> crate::mutex::LeakableGuard for Reciprocating<P> {}
