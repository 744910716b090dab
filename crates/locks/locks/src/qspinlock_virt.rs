//! The queued spinlock that stops queueing in a virtual machine.

use crate::native::NativePlatform;
use crate::platform::Platform;
use crate::qspinlock::QSpinlock;
use crate::raw::{Fairness, Info, RawLock};
use crate::virt_spin;

/// A queued spinlock on hardware, a test-and-set lock in a virtual machine.
/// [`Platform::virtualized`] may change at any time: both ways of waiting use
/// the same word.
///
/// ```
/// use locklab_locks::kernel::QSpinlockVirtMutex;
///
/// static COUNT: QSpinlockVirtMutex<u32> = QSpinlockVirtMutex::new(0);
/// *COUNT.lock() += 1;
/// ```
///
/// # Differences from `std::sync::Mutex`
///
/// [`QSpinlockVirtMutex`](crate::kernel::QSpinlockVirtMutex) lists them.
///
/// # Properties
///
/// The queue of [`crate::QSpinlock`] is first come, first served, and stalls
/// when the vCPU whose turn it is does not run. In a virtual
/// machine without paravirtual help ([`Platform::virtualized`]), this lock
/// waits as [`VirtSpin`](crate::spin::VirtSpin) does. It was described on the Linux kernel list,
/// thread of 4 September 2015.
///
/// **Size:** 4 bytes. **Per waiter:** nothing. **Fairness:** that of
/// [`crate::QSpinlock`] on hardware, with its words on CPUs without a queue node,
/// which can starve; none in a virtual machine.
#[repr(transparent)]
pub struct QSpinlockVirt<P: Platform = NativePlatform>(QSpinlock<P>);

impl<P: Platform> QSpinlockVirt<P> {
    /// Returns a free lock.
    pub const fn new() -> Self {
        Self(QSpinlock::new())
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, word: u32) {
        if P::virtualized() {
            virt_spin::contend::<P>(&self.0.word, 1, 1);
        } else {
            self.0.wait(word);
        }
    }
}

impl<P: Platform> Default for QSpinlockVirt<P> {
    fn default() -> Self {
        Self(QSpinlock::default())
    }
}

// SAFETY: as `QSpinlock`; the other way to wait acquires by a
// compare-and-swap of a word without holder and waiters, like its fast path.
unsafe impl<P: Platform> RawLock<P> for QSpinlockVirt<P> {
    type Ctx = ();

    const INFO: Info = Info {
        name: "qspinlock-virt",
        summary: "qspinlock; virt-spin in a virtual machine",
        fairness: Fairness::Unfair,
        promises: "virtualized, interrupted, queue while preempted, without node, queue \
            advances, taken while preempted, interrupted twice",
        orderings_of: None,
        structure_of: &["locks/src/qspinlock_virt.rs", "locks/src/virt_spin.rs"],
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

crate::lock_api_impl::context_free!(QSpinlockVirt);
