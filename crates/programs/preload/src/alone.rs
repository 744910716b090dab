//! The platform of a process with one thread.
//!
//! glibc acquires its mutexes without atomic operations until the first
//! `pthread_create`, and shows that in `__libc_single_threaded`. The same lock
//! on this platform does likewise: read, then write. The memory contents
//! are those of the atomic platform, so a mutex locked on one is unlocked on
//! the other when the second thread appears in between. (Creating a thread
//! orders all that was before it.)
//!
//! It must never be used while two threads run.

use crate::host::Process;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Poll};
use locklab_locks::{Host, Platform, QueueNodes};

unsafe extern "C" {
    /// glibc's: not 0 while the process has one thread.
    static __libc_single_threaded: AtomicU8;
}

/// Returns whether the process has one thread.
#[inline(always)]
pub(crate) fn is_alone() -> bool {
    // SAFETY: glibc's variable is there for the life of the process.
    unsafe { __libc_single_threaded.load(RELAXED) != 0 }
}

/// The platform of the only thread.
pub(crate) struct Alone;

/// An atomic word that only one thread touches.
#[repr(transparent)]
pub(crate) struct Lone<A>(A);

const RELAXED: Ordering = Ordering::Relaxed;

// SAFETY: of one thread, for which plain reads and writes are atomic.
unsafe impl<T: Copy + PartialEq, A: Atomic<T>> Atomic<T> for Lone<A> {
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self = Self(A::ZERO);

    #[inline(always)]
    fn new(value: T) -> Self {
        Self(A::new(value))
    }

    #[inline(always)]
    fn load(&self, _: Ordering) -> T {
        self.0.load(RELAXED)
    }

    #[inline(always)]
    fn store(&self, value: T, _: Ordering) {
        self.0.store(value, RELAXED);
    }

    #[inline(always)]
    fn swap(&self, value: T, _: Ordering) -> T {
        let old = self.0.load(RELAXED);
        self.0.store(value, RELAXED);
        old
    }

    #[inline(always)]
    fn compare_exchange(&self, current: T, new: T, _: Ordering, _: Ordering) -> Result<T, T> {
        let old = self.0.load(RELAXED);
        if old != current {
            return Err(old);
        }
        self.0.store(new, RELAXED);
        Ok(old)
    }

    // A thread that waits here waits for itself for ever: a deadlock of
    // the program's, as with glibc.
    fn spin(&self, order: Ordering, patience: Patience, poll: impl FnMut(T) -> Poll) -> T {
        self.0.spin(order, patience, poll)
    }
}

macro_rules! lone_int {
    ($atomic:ty, $value:ty) => {
        // SAFETY: as `Atomic`.
        unsafe impl AtomicInt<$value> for Lone<$atomic> {
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let old = Atomic::load(self, order);
                self.swap(old.wrapping_add(value), order)
            }

            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                let old = Atomic::load(self, order);
                self.swap(old.wrapping_sub(value), order)
            }

            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                let old = Atomic::load(self, order);
                self.swap(old & value, order)
            }

            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                let old = Atomic::load(self, order);
                self.swap(old | value, order)
            }
        }
    };
}

lone_int!(AtomicU8, u8);
lone_int!(AtomicU32, u32);
lone_int!(AtomicUsize, usize);

/// Whole words only: the processor forwards a store to the load after it
/// where they are of one size.
// SAFETY: as `Atomic`.
unsafe impl LockWord for Lone<AtomicU32> {
    #[inline(always)]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        let old = Atomic::load(self, order);
        self.store(old & !0xff | u32::from(value), order);
    }

    #[inline(always)]
    fn store_low_half(&self, value: u16, order: Ordering) {
        let old = Atomic::load(self, order);
        self.store(old & !0xffff | u32::from(value), order);
    }

    #[inline(always)]
    fn increment_low_half(&self, order: Ordering) {
        let old = Atomic::load(self, order);
        let low = (old as u16).wrapping_add(1);
        self.store(old & !0xffff | u32::from(low), order);
    }

    #[inline(always)]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let old = Atomic::load(self, order);
        self.store(old & 0xffff | u32::from(value) << 16, order);
        (old >> 16) as u16
    }
}

// SAFETY: one thread is one CPU.
unsafe impl Platform for Alone {
    type U8 = Lone<AtomicU8>;
    type U32 = Lone<AtomicU32>;
    type Usize = Lone<AtomicUsize>;
    type Ptr<T: 'static> = Lone<AtomicPtr<T>>;

    fn fence(_: Ordering) {}

    fn relax() {
        core::hint::spin_loop();
    }

    fn cpu() -> usize {
        Process::cpu()
    }

    fn node() -> usize {
        Process::node()
    }

    fn now() -> u64 {
        Process::now()
    }

    fn wait(word: &Lone<AtomicU32>, expected: u32) {
        Process::wait(&word.0, expected);
    }

    fn wake(_: &Lone<AtomicU32>) {}

    fn wake_all(_: &Lone<AtomicU32>) {}

    fn wake_if_any(_: &Lone<AtomicU32>) -> bool {
        false
    }

    fn virtualized() -> bool {
        Process::virtualized()
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        let nodes = core::ptr::from_ref(Process::queue_nodes(cpu));
        // SAFETY: the same words, each in a transparent wrapper.
        unsafe { &*nodes.cast() }
    }
}
