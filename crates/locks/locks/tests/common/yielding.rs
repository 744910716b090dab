//! Native atomics whose waits give the processor away: so more threads than
//! CPUs contend for a fair lock without each handoff costing a time slice.

use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Poll};
use locklab_locks::{HeldLocks, NativePlatform, Platform, QueueNodes, VisibleReader};
use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};
use std::time::Duration;

/// Lets others run. Sleeps for a moment rather than yields: a thread that
/// yields on a loaded machine comes back after everybody else's time slice.
fn step_aside() {
    if let Some(waited) = WAITED.get(NativePlatform::cpu()) {
        waited.fetch_add(1, Ordering::Relaxed);
    }
    std::thread::sleep(Duration::from_micros(1));
}

/// Guards a stretch in which a thread sends itself a signal after some of its writes.
pub(crate) struct Tormented;

/// The signal; 0: none.
static TORMENT: AtomicI32 = AtomicI32::new(0);

/// Every so many writes of a thread. Prime, so that each of the few writes of
/// an acquisition has its turn.
const WRITES: u32 = 37;

impl Tormented {
    pub(crate) fn begin(signal: i32) -> Self {
        TORMENT.store(signal, Ordering::Relaxed);
        Self
    }
}

impl Drop for Tormented {
    fn drop(&mut self) {
        TORMENT.store(0, Ordering::Relaxed);
    }
}

/// Is called after each write.
fn written() {
    thread_local! {
        static LEFT: Cell<u32> = const { Cell::new(WRITES) };
    }
    let signal = TORMENT.load(Ordering::Relaxed);
    if signal == 0 {
        return;
    }
    let left = LEFT.get() - 1;
    LEFT.set(if left == 0 { WRITES } else { left });
    if left == 0 {
        // SAFETY: sends a signal to this thread, whose handler the test has
        // installed; it is delivered before the call returns.
        unsafe { libc::raise(signal) };
    }
}

/// Says how often each thread, by its number, has stepped aside.
pub(crate) static WAITED: [AtomicU32; CPUS] = [const { AtomicU32::new(0) }; CPUS];

/// Fences against interrupts so far.
pub(crate) static FENCES: AtomicUsize = AtomicUsize::new(0);

/// Threads of a test program, its harness included.
const CPUS: usize = 256;

#[repr(transparent)]
pub(crate) struct Word<A>(A);

macro_rules! platform {
    ($(#[$doc:meta])* $platform:ident, $u32:ty, $nodes:ident, $readers:ident, $held:ident) => {
        $(#[$doc])*
        pub(crate) struct $platform;

        static $nodes: [QueueNodes<$platform>; CPUS] = [const { QueueNodes::NEW }; CPUS];
        // They are not for all: the others read without being visible.
        static $readers: [VisibleReader<$platform>; 8] = [const { VisibleReader::NONE }; 8];
        static $held: [HeldLocks<$platform>; 8] = [const { HeldLocks::NONE }; 8];

        // SAFETY: atomics and numbers of the native platform, nodes of its own.
        unsafe impl Platform for $platform {
            type U8 = Word<AtomicU8>;
            type U32 = $u32;
            type Usize = Word<AtomicUsize>;
            type Ptr<T: 'static> = Word<AtomicPtr<T>>;

            fn fence(order: Ordering) {
                NativePlatform::fence(order);
            }
            fn relax() {
                step_aside();
            }
            fn relax_for(_: u32) {
                step_aside();
            }
            fn cpu() -> usize {
                NativePlatform::cpu()
            }
            fn interrupt_fence() {
                FENCES.fetch_add(1, Ordering::Relaxed);
                NativePlatform::interrupt_fence();
            }
            // Two NUMA nodes wherever it runs, so that locks which prefer
            // their own have a choice.
            fn node() -> usize {
                NativePlatform::cpu() % 2
            }
            fn now() -> u64 {
                NativePlatform::now()
            }
            fn wait(word: &Self::U32, expected: u32) {
                NativePlatform::wait(word.native(), expected);
            }
            fn wake(word: &Self::U32) {
                NativePlatform::wake(word.native());
            }
            fn wake_all(word: &Self::U32) {
                NativePlatform::wake_all(word.native());
            }
            fn virtualized() -> bool {
                NativePlatform::virtualized()
            }
            fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
                &$nodes[cpu]
            }
            fn visible_readers() -> &'static [VisibleReader<Self>] {
                &$readers
            }
            fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
                $held.get(cpu)
            }
        }
    };
}

platform!(
    /// Waits yield, with this machine's halves and bytes of a word.
    Yielding,
    Word<AtomicU32>,
    NODES,
    READERS,
    HELD
);
platform!(
    /// Waits yield, with the portable ones, which other machines use.
    YieldingPortable,
    Word<Portable>,
    PORTABLE_NODES,
    PORTABLE_READERS,
    PORTABLE_HELD
);

/// Reads before a yield: some handoffs are still caught spinning.
const READS: u32 = 20;

macro_rules! atomic {
    ($atomic:ty, $value:ty, [$($generic:tt)*], $zero:expr) => {
        // SAFETY: the native atomics.
        unsafe impl<$($generic)*> Atomic<$value> for Word<$atomic> {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Self(<$atomic>::new($zero));
            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }
            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
                written();
            }
            fn swap(&self, value: $value, order: Ordering) -> $value {
                let old = self.0.swap(value, order);
                written();
                old
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let result = self.0.compare_exchange(current, new, success, failure);
                written();
                result
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
                        step_aside();
                    }
                }
            }
        }
    };
}

atomic!(AtomicU8, u8, [], 0);
atomic!(AtomicU32, u32, [], 0);
atomic!(AtomicUsize, usize, [], 0);
atomic!(AtomicPtr<T>, *mut T, [T: 'static], std::ptr::null_mut());

macro_rules! atomic_int {
    ($atomic:ty, $value:ty) => {
        // SAFETY: the native atomics.
        unsafe impl AtomicInt<$value> for Word<$atomic> {
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let old = self.0.fetch_add(value, order);
                written();
                old
            }
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                let old = self.0.fetch_sub(value, order);
                written();
                old
            }
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                let old = self.0.fetch_and(value, order);
                written();
                old
            }
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                let old = self.0.fetch_or(value, order);
                written();
                old
            }
        }
    };
}

atomic_int!(AtomicU8, u8);
atomic_int!(AtomicU32, u32);
atomic_int!(AtomicUsize, usize);

impl Word<AtomicU32> {
    fn native(&self) -> &AtomicU32 {
        &self.0
    }
}

// SAFETY: the native words.
unsafe impl LockWord for Word<AtomicU32> {
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        let taken = self.0.take_if_zero(held, order);
        written();
        taken
    }
    fn draw_ticket(&self, order: Ordering) -> Result<(), u16> {
        let drawn = self.0.draw_ticket(order);
        written();
        drawn
    }
    fn store_low_byte(&self, value: u8, order: Ordering) {
        self.0.store_low_byte(value, order);
        written();
    }
    fn store_low_half(&self, value: u16, order: Ordering) {
        self.0.store_low_half(value, order);
        written();
    }
    fn increment_low_half(&self, order: Ordering) {
        self.0.increment_low_half(order);
        written();
    }
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let old = self.0.swap_high_half(value, order);
        written();
        old
    }
}

/// A word that has only what any machine has.
#[repr(transparent)]
pub(crate) struct Portable(AtomicU32);

impl Portable {
    const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }
}

impl Word<Portable> {
    fn native(&self) -> &AtomicU32 {
        &self.0.0
    }
}

impl std::ops::Deref for Portable {
    type Target = AtomicU32;
    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}

atomic!(Portable, u32, [], 0);
atomic_int!(Portable, u32);

// SAFETY: the defaults, on an atomic word.
unsafe impl LockWord for Word<Portable> {}
