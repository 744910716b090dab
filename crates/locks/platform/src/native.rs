//! Real atomics: the platform of programs and kernels.
//!
//! [`Native`] takes from a [`Host`] only what the hardware does not provide:
//! which CPU this is, how to wait, and the time. A kernel implements `Host`
//! once; a program uses
//! [`Threads`](crate::threads::Threads).
//!
//! The atomics are those of `core`, or of the crate `portable-atomic` with the
//! feature of that name, for targets that have loads and stores only.

#[cfg(all(feature = "wfe", target_arch = "aarch64", not(miri)))]
use crate::event;
use crate::held_locks::HeldLocks;
use crate::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use crate::qnode::{MAX_CPUS, QueueNodes};
use crate::sleepers::Sleepers;
use crate::visible_reader::VisibleReader;
use core::marker::PhantomData;
use core::sync::atomic;

#[cfg(not(feature = "portable-atomic"))]
pub use core::sync::atomic::AtomicU32;
#[cfg(not(feature = "portable-atomic"))]
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize};
#[cfg(feature = "portable-atomic")]
pub use portable_atomic::AtomicU32;
#[cfg(feature = "portable-atomic")]
use portable_atomic::{AtomicPtr, AtomicU8, AtomicUsize};

// Without it, the methods below would find none of the same name on the
// target's atomics and call themselves.
#[cfg(not(any(
    feature = "portable-atomic",
    all(
        target_has_atomic = "8",
        target_has_atomic = "32",
        target_has_atomic = "ptr"
    )
)))]
compile_error!(
    "the locks need compare-and-swap, and this target has loads and stores only: \
     build locklab-locks with its feature `portable-atomic`, and tell that crate how \
     (`portable-atomic/critical-section`, or `portable-atomic/unsafe-assume-single-core`)"
);

/// Describes what an operating system, or a program, provides to the locks.
///
/// ```
/// use locklab_locks::{Host, Native, QSpinlock, QueueNodes, lock_api};
///
/// const CPUS: usize = 8;
/// static NODES: [QueueNodes<Native<MyKernel>>; CPUS] = [const { QueueNodes::NEW }; CPUS];
///
/// struct MyKernel;
///
/// // SAFETY: numbers below CPUS, one for each CPU; an entry of a static each.
/// unsafe impl Host for MyKernel {
///     fn cpu() -> usize {
///         0 // read from the per-CPU segment, with preemption disabled
///     }
///     fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>> {
///         &NODES[cpu]
///     }
/// }
///
/// type SpinLock<T> = lock_api::Mutex<QSpinlock<Native<MyKernel>>, T>;
/// static TICKS: SpinLock<u64> = SpinLock::new(0);
/// *TICKS.lock() += 1;
/// ```
///
/// A wrong answer lets two CPUs into one lock, so the trait is `unsafe`:
///
/// ```compile_fail,E0200
/// # use locklab_locks::{Host, Native, QueueNodes};
/// # struct Careless;
/// impl Host for Careless {
///     fn cpu() -> usize { 0 } // to everybody
///     fn queue_nodes(_: usize) -> &'static QueueNodes<Native<Self>> { todo!() }
/// }
/// ```
///
/// # Safety
/// - [`Host::cpu`], [`Host::queue_nodes`], [`Host::visible_readers`],
///   [`Host::held_locks`] and [`Host::sleepers`] keep the promises of [`Platform`];
/// - [`Host::wake`] and [`Host::wake_all`] use only the address of `word`;
/// - no function unwinds.
///
/// [`Host::node`], [`Host::now`] and [`Host::virtualized`] need only return,
/// and [`Host::wait`] need not wait at all.
pub unsafe trait Host: Sized + Send + Sync + 'static {
    /// Works as [`Platform::cpu`]. A kernel must have preemption disabled from
    /// before `lock` until after `unlock`.
    fn cpu() -> usize;

    /// Works as [`Platform::try_cpu`]. Always a number by default.
    #[inline(always)]
    fn try_cpu() -> Option<usize> {
        Some(Self::cpu())
    }

    /// Works as [`Platform::queue_nodes`]. A kernel returns an entry of
    /// `static NODES: [QueueNodes<Native<MyHost>>; CPUS] = [const { QueueNodes::NEW }; CPUS]`.
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Native<Self>>;

    /// Works as [`Platform::visible_readers`]. None by default.
    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Native<Self>>] {
        &[]
    }

    /// Works as [`Platform::held_locks`]. None by default. A kernel returns
    /// `HELD.get(cpu)` of
    /// `static HELD: [HeldLocks<Native<MyHost>>; CPUS] = [const { HeldLocks::NONE }; CPUS]`.
    #[inline(always)]
    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Native<Self>>> {
        let _ = cpu;
        None
    }

    /// Works as [`Platform::node`]. One node by default.
    fn node() -> usize {
        0
    }

    /// Works as [`Platform::now`]. Used only by locks with a timeout. By default
    /// time stands still, so that a timeout never comes.
    fn now() -> u64 {
        0
    }

    /// Works as [`Platform::wait`]. Spins by default.
    fn wait(word: &AtomicU32, expected: u32) {
        let _ = (word, expected);
        core::hint::spin_loop();
    }

    /// Works as [`Platform::wake`]. Does nothing by default, because no CPU sleeps.
    fn wake(word: &AtomicU32) {
        let _ = word;
    }

    /// Works as [`Platform::wake_if_any`]. `false` by default, where nobody can tell.
    fn wake_if_any(word: &AtomicU32) -> bool {
        Self::wake(word);
        false
    }

    /// Works as [`Platform::wake_all`]. By default it wakes as many as there may be CPUs,
    /// one by one.
    fn wake_all(word: &AtomicU32) {
        for _ in 0..MAX_CPUS {
            Self::wake(word);
        }
    }

    /// Works as [`Platform::yield_cpu`]. One pause by default.
    fn yield_cpu() {
        core::hint::spin_loop();
    }

    /// Works as [`Platform::sleepers`]. None by default. A kernel whose CPUs can sleep
    /// returns an entry, chosen by the address, of
    /// `static SLEEPERS: [Sleepers<Native<MyHost>>; 256] = [const { Sleepers::NONE }; 256]`.
    #[inline(always)]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Native<Self>>> {
        let _ = address;
        None
    }

    /// Works as [`Platform::virtualized`]. False by default.
    fn virtualized() -> bool {
        false
    }
}

/// Real hardware, described by `H`.
pub struct Native<H>(PhantomData<H>);

/// The host of a build without `std` in which none was named: it has no CPU
/// numbers, so a lock that needs them does not compile. (The parameter delays
/// the compiler's check until such a lock is used.)
pub struct NoHost<const NAMED: bool = false>;

impl<const NAMED: bool> NoHost<NAMED> {
    const NAMED: () = assert!(
        NAMED,
        "this lock needs a Host: name the platform, as in QSpinlock<Native<MyHost>>"
    );
}

// SAFETY: what would answer wrongly does not compile.
unsafe impl<const NAMED: bool> Host for NoHost<NAMED> {
    fn cpu() -> usize {
        let () = Self::NAMED;
        0
    }

    fn queue_nodes(_: usize) -> &'static QueueNodes<Native<Self>> {
        let () = Self::NAMED;
        unreachable!("does not compile")
    }
}

/// The platform of a lock that names none: threads of this process with the
/// feature `std`, and without it one that only locks without CPU numbers can
/// use.
#[cfg(feature = "std")]
pub type NativePlatform = Native<crate::threads::Threads>;
/// The platform of a lock that names none: threads of this process with the
/// feature `std`, and without it one that only locks without CPU numbers can
/// use.
#[cfg(not(feature = "std"))]
pub type NativePlatform = Native<NoHost>;

// SAFETY: the atomics are those of the hardware; the rest is the promise of `H`.
unsafe impl<H: Host> Platform for Native<H> {
    type U8 = AtomicU8;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;
    type Ptr<T: 'static> = AtomicPtr<T>;

    #[inline(always)]
    fn fence(order: Ordering) {
        atomic::fence(order);
    }

    #[inline(always)]
    fn relax() {
        core::hint::spin_loop();
    }

    #[inline(always)]
    fn cpu() -> usize {
        H::cpu()
    }

    #[inline(always)]
    fn try_cpu() -> Option<usize> {
        H::try_cpu()
    }

    #[inline(always)]
    fn node() -> usize {
        H::node()
    }

    #[inline(always)]
    fn now() -> u64 {
        H::now()
    }

    #[inline(always)]
    fn wait(word: &AtomicU32, expected: u32) {
        H::wait(word, expected);
    }

    #[inline(always)]
    fn wake(word: &AtomicU32) {
        H::wake(word);
    }

    #[inline(always)]
    fn wake_if_any(word: &AtomicU32) -> bool {
        H::wake_if_any(word)
    }

    #[inline(always)]
    fn wake_all(word: &AtomicU32) {
        H::wake_all(word);
    }

    #[inline(always)]
    fn yield_cpu() {
        H::yield_cpu();
    }

    #[inline(always)]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Self>> {
        H::sleepers(address)
    }

    #[inline(always)]
    fn virtualized() -> bool {
        H::virtualized()
    }

    #[inline(always)]
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        H::queue_nodes(cpu)
    }

    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Self>] {
        H::visible_readers()
    }

    #[inline(always)]
    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        H::held_locks(cpu)
    }
}

/// Pauses between two reads of a wait, out of line on x86-64: the call stores
/// its return address to the waiter's own stack. With that store between its
/// reads, and not with a second pause or a fence, an MCS waiter was granted the
/// lock a fifth more often on AMD's Zen 5; no line of the lock moves more or
/// less. Why is not known.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn pause() {
    core::hint::spin_loop();
}

macro_rules! atomic {
    ($atomic:ty, $value:ty, [$($generic:tt)*], $zero:expr) => {
        // SAFETY: each method is the one of `core` with the same name.
        unsafe impl<$($generic)*> Atomic<$value> for $atomic {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = <$atomic>::new($zero);

            #[inline(always)]
            fn new(value: $value) -> Self {
                <$atomic>::new(value)
            }

            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }

            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            #[inline(always)]
            fn spin(
                &self,
                order: Ordering,
                patience: Patience,
                mut poll: impl FnMut($value) -> Poll,
            ) -> $value {
                #[cfg(all(feature = "wfe", target_arch = "aarch64", not(miri)))]
                if patience == Patience::Forever {
                    loop {
                        let acquire = order != Ordering::Relaxed;
                        // SAFETY: our own word, which only atomics write.
                        let value = unsafe { event::Watched::watch(self.as_ptr(), acquire) };
                        let Poll::Relax(_) = poll(value) else {
                            return value;
                        };
                        event::wait();
                    }
                }
                let mut reads = 0;
                loop {
                    let value = self.load(order);
                    let Poll::Relax(relaxes) = poll(value) else {
                        return value;
                    };
                    match patience {
                        Patience::Forever => {}
                        Patience::Reads(most) => {
                            reads += 1;
                            if reads >= most {
                                return value;
                            }
                        }
                    }
                    for _ in 0..relaxes {
                        pause();
                    }
                }
            }
        }
    };
}

atomic!(AtomicU8, u8, [], 0);
atomic!(AtomicU32, u32, [], 0);
atomic!(AtomicUsize, usize, [], 0);
atomic!(AtomicPtr<T>, *mut T, [T: 'static], core::ptr::null_mut());

macro_rules! atomic_int {
    ($atomic:ty, $value:ty) => {
        // SAFETY: each method is the one of `core` with the same name.
        unsafe impl AtomicInt<$value> for $atomic {
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }

            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.fetch_sub(value, order)
            }

            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.fetch_and(value, order)
            }

            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.fetch_or(value, order)
            }
        }
    };
}

atomic_int!(AtomicU8, u8);
atomic_int!(AtomicU32, u32);
atomic_int!(AtomicUsize, usize);

// SAFETY: the defaults, on an atomic word.
#[cfg(any(
    miri,
    target_endian = "big",
    feature = "portable-atomic",
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    ))
))]
unsafe impl LockWord for AtomicU32 {}

/// Stores of parts, by assembly because a mixed-size atomic access does not
/// exist in Rust's memory model; in that of each of these processors it does,
/// byte for byte. A read of the whole word, by a read-modify-write or not,
/// takes each byte from the last store to that byte and is ordered after all
/// of these stores; so whoever acquires the word acquires what a release to
/// any part of it has published.
///
/// Every store here is a release, even where the lock asks for none: the
/// read-modify-write that it stands for would follow its own thread's earlier
/// ones in the word, and only slow paths ask.
#[cfg(all(
    not(miri),
    target_endian = "little",
    not(feature = "portable-atomic"),
    any(target_arch = "aarch64", target_arch = "riscv64")
))]
unsafe impl LockWord for AtomicU32 {
    #[inline(always)]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: writes the low byte of our own word.
        unsafe {
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!("stlrb {:w}, [{}]", in(reg) u32::from(value),
                in(reg) self.as_ptr(), options(nostack, preserves_flags));
            #[cfg(target_arch = "riscv64")]
            core::arch::asm!("fence rw, w", "sb {}, 0({})", in(reg) u32::from(value),
                in(reg) self.as_ptr(), options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    fn store_low_half(&self, value: u16, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: writes the low two bytes of our own word.
        unsafe {
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!("stlrh {:w}, [{}]", in(reg) u32::from(value),
                in(reg) self.as_ptr(), options(nostack, preserves_flags));
            #[cfg(target_arch = "riscv64")]
            core::arch::asm!("fence rw, w", "sh {}, 0({})", in(reg) u32::from(value),
                in(reg) self.as_ptr(), options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    fn increment_low_half(&self, order: Ordering) {
        // No other CPU writes that half meanwhile.
        let old = self.load(Ordering::Relaxed) as u16;
        self.store_low_half(old.wrapping_add(1), order);
    }
}

/// One instruction each. The parts are written by assembly because a
/// mixed-size atomic access does not exist in Rust's memory model; on x86 a
/// plain store is a Release store and a locked instruction is SeqCst, and
/// the assembly, which may touch any memory, is not moved across others.
// SAFETY: said at each instruction.
#[cfg(all(target_arch = "x86_64", not(miri), not(feature = "portable-atomic")))]
unsafe impl LockWord for AtomicU32 {
    #[inline(always)]
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        // Compared where it lies: the compiler would load an atomic into a
        // register first, and clear that for `cmpxchg` once more.
        // SAFETY: reads our own word.
        unsafe {
            core::arch::asm!("cmp dword ptr [{}], 0", "jne {}", in(reg) self.as_ptr(),
                label { return false }, options(nostack, readonly));
        }
        self.compare_exchange(0, held, order, Ordering::Relaxed)
            .is_ok()
    }

    #[inline(always)]
    fn draw_ticket(&self, _: Ordering) -> Result<(), u16> {
        // Each half is changed by itself: adding to the whole word would wait until the
        // last unlock's store to the low half has reached the cache.
        // (32 bits wide: a 16-bit immediate stalls Intel's decoders.)
        let mut ticket = 1u32;
        // SAFETY: adds to the high two bytes of our own word; then compares
        // the low two, not before (x86 keeps loads in order, and neither
        // assembly moves across other memory accesses).
        unsafe {
            core::arch::asm!("lock xadd word ptr [{} + 2], {:x}", in(reg) self.as_ptr(),
                inout(reg) ticket, options(nostack));
            core::arch::asm!("cmp word ptr [{}], {:x}", "jne {}", in(reg) self.as_ptr(),
                in(reg) ticket, label {
                    // Whoever waits reads the whole word next, which must wait
                    // for the store of a part just above. Not at once: that
                    // took a fifth of the handoffs of two CPUs (Zen 4).
                    core::hint::spin_loop();
                    return Err(ticket as u16)
                }, options(nostack));
        }
        Ok(())
    }

    #[inline(always)]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // The two values that locks use, when known, become immediates.
        // SAFETY: writes one byte of our own word.
        unsafe {
            match value {
                0 => core::arch::asm!("mov byte ptr [{}], 0", in(reg) self.as_ptr(),
                    options(nostack, preserves_flags)),
                1 => core::arch::asm!("mov byte ptr [{}], 1", in(reg) self.as_ptr(),
                    options(nostack, preserves_flags)),
                _ => core::arch::asm!("mov byte ptr [{}], {}", in(reg) self.as_ptr(),
                    in(reg_byte) value, options(nostack, preserves_flags)),
            }
        }
    }

    #[inline(always)]
    fn store_low_half(&self, value: u16, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: writes the low two bytes of our own word.
        unsafe {
            core::arch::asm!("mov word ptr [{}], {:x}", in(reg) self.as_ptr(),
                in(reg) value, options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    fn increment_low_half(&self, order: Ordering) {
        debug_assert!(matches!(order, Ordering::Relaxed | Ordering::Release));
        // SAFETY: updates the low two bytes of our own word; no lock prefix,
        // because no other CPU writes them meanwhile.
        unsafe {
            core::arch::asm!("inc word ptr [{}]", in(reg) self.as_ptr(), options(nostack));
        }
    }

    #[inline(always)]
    fn swap_high_half(&self, value: u16, _: Ordering) -> u16 {
        let mut value = value;
        // SAFETY: exchanges the high two bytes of our own word.
        unsafe {
            core::arch::asm!("xchg word ptr [{} + 2], {:x}", in(reg) self.as_ptr(),
                inout(reg) value, options(nostack, preserves_flags));
        }
        value
    }
}
