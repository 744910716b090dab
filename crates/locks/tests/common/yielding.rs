//! Native atomics whose waits yield the processor: with it, more threads
//! than CPUs contend for a fair lock without each handoff costing a time
//! slice.

use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Poll};
use locklab_locks::{NativePlatform, Platform, QueueNodes};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};

pub(crate) struct Yielding;

/// Threads of a test program, its harness included.
const CPUS: usize = 256;
static NODES: [QueueNodes<Yielding>; CPUS] = [const { QueueNodes::NEW }; CPUS];

#[repr(transparent)]
pub(crate) struct Word<A>(A);

impl Platform for Yielding {
    type U8 = Word<AtomicU8>;
    type U32 = Word<AtomicU32>;
    type Usize = Word<AtomicUsize>;
    type Ptr<T: 'static> = Word<AtomicPtr<T>>;

    fn fence(order: Ordering) {
        NativePlatform::fence(order);
    }
    fn relax() {
        std::thread::yield_now();
    }
    fn relax_for(_: u32) {
        std::thread::yield_now();
    }
    fn cpu() -> usize {
        NativePlatform::cpu()
    }
    fn node() -> usize {
        // Two NUMA nodes, whatever the machine has, so that the locks that
        // know of them are tested.
        NativePlatform::cpu() % 2
    }
    fn now() -> u64 {
        NativePlatform::now()
    }
    fn wait(word: &Self::U32, expected: u32) {
        NativePlatform::wait(&word.0, expected);
    }
    fn wake(word: &Self::U32) {
        NativePlatform::wake(&word.0);
    }
    fn virtualized() -> bool {
        NativePlatform::virtualized()
    }
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        &NODES[cpu]
    }
}

/// Reads before a yield: some handoffs are still caught spinning.
const READS: u32 = 20;

macro_rules! atomic {
    ($atomic:ty, $value:ty, [$($generic:tt)*]) => {
        impl<$($generic)*> Atomic<$value> for Word<$atomic> {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Self(<$atomic as Atomic<$value>>::ZERO);
            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }
            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
            }
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, order)
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, success, failure)
            }
            fn spin(
                &self,
                order: Ordering,
                patience: Patience,
                mut poll: impl FnMut($value) -> Poll,
            ) -> $value {
                let mut reads = 0;
                loop {
                    let value = self.0.load(order);
                    if poll(value) == Poll::Done {
                        return value;
                    }
                    reads += 1;
                    if patience != Patience::Forever && reads >= READS {
                        return value;
                    }
                    if reads % READS == 0 {
                        std::thread::yield_now();
                    }
                }
            }
        }
    };
}

atomic!(AtomicU8, u8, []);
atomic!(AtomicU32, u32, []);
atomic!(AtomicUsize, usize, []);
atomic!(AtomicPtr<T>, *mut T, [T: 'static]);

macro_rules! atomic_int {
    ($atomic:ty, $value:ty) => {
        impl AtomicInt<$value> for Word<$atomic> {
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, order)
            }
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, order)
            }
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, order)
            }
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, order)
            }
        }
    };
}

atomic_int!(AtomicU8, u8);
atomic_int!(AtomicU32, u32);
atomic_int!(AtomicUsize, usize);

/// The portable halves and bytes, whatever the machine: the native stress
/// runs the assembly.
impl LockWord for Word<AtomicU32> {}
