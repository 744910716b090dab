//! What a lock needs of the world that it runs in.
//!
//! Each algorithm of this crate is written once, generic over [`Platform`].
//! Three worlds exist: real atomics ([`crate::Native`]), a model checker and
//! a simulator. They differ only here, so a lock that is proven or simulated
//! is the lock that ships.
//!
//! Rules for an algorithm:
//! - every word that another CPU may read or write, and every word whose
//!   cache line another CPU may own, is one of the platform's atomics, even
//!   where it is only ever accessed while the lock is held;
//! - it never waits but through [`Atomic::spin`] and [`Platform::wait`]: the
//!   checker prunes there, and the simulator sleeps until the line changes;
//!   where each try writes (test-and-set), [`Platform::relax`] between tries;
//! - it never asks which world it is in.

use crate::bravo::VisibleReader;
use crate::qnode::QueueNodes;
pub use core::sync::atomic::Ordering;

/// What a spinning CPU does after it has read a word; see [`Atomic::spin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The value is the one waited for.
    Done,
    /// Relax this many times, then read again.
    Relax(u32),
}

/// How long [`Atomic::spin`] goes on if the awaited value does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until it comes.
    Forever,
    /// For at most this many reads. Zero still reads once.
    Reads(u32),
}

/// An atomic word of a platform.
///
/// The memory orderings mean what they mean in [`core::sync::atomic`].
/// The methods carry `#[track_caller]` because the checker names each
/// operation by its line in the lock's source.
///
/// # Safety
/// Locks exclude only if this word is what it says. So:
/// - every method is one atomic operation on the one value of the word, with
///   the ordering that it is given or a stronger one, for every thread and
///   every mapping that the word is reached through;
/// - [`Atomic::ZERO`] and [`Atomic::new`] hold the value named;
///   [`Atomic::compare_exchange`] writes if and only if it answers `Ok`;
/// - [`Atomic::spin`] returns a value that the word held, read with `order`;
///   if that is no value for which `poll` said [`Poll::Done`], patience ended;
/// - no method unwinds, unless the whole world ends with it and no code of a
///   lock runs again there (a checker that has found an error).
pub unsafe trait Atomic<T: Copy>: Sized + Send + Sync {
    /// The word holding zero (null for a pointer): what makes a lock's `new`
    /// a `const fn`. The checker's atomics do not exist before the program
    /// runs; there, its evaluation is a compile-time error.
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self;

    /// A word holding `value`.
    fn new(value: T) -> Self;

    /// Reads the word.
    #[track_caller]
    fn load(&self, order: Ordering) -> T;

    /// Writes the word.
    #[track_caller]
    fn store(&self, value: T, order: Ordering);

    /// Writes the word and returns what was there.
    #[track_caller]
    fn swap(&self, value: T, order: Ordering) -> T;

    /// Writes `new` if the word is `current`. Returns what was there, as `Ok`
    /// if it was written. Never fails spuriously.
    #[track_caller]
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;

    /// Reads the word until `poll` says [`Poll::Done`] or patience ends, and
    /// returns the last value read. The caller who may run out of patience
    /// looks at that value.
    ///
    /// `poll` must depend on nothing but the value: a platform may skip
    /// reads that would see the same value again.
    #[track_caller]
    fn spin(&self, order: Ordering, patience: Patience, poll: impl FnMut(T) -> Poll) -> T;

    /// Spins, one relax between reads, until `done`; returns the value that
    /// was.
    #[track_caller]
    #[inline(always)]
    fn spin_until(&self, order: Ordering, mut done: impl FnMut(T) -> bool) -> T {
        self.spin(order, Patience::Forever, move |value| {
            if done(value) {
                Poll::Done
            } else {
                Poll::Relax(1)
            }
        })
    }
}

/// An atomic integer of a platform. Arithmetic wraps.
///
/// # Safety
/// As [`Atomic`], for each method here.
pub unsafe trait AtomicInt<T: Copy>: Atomic<T> {
    /// Adds and returns what was there.
    #[track_caller]
    fn fetch_add(&self, value: T, order: Ordering) -> T;

    /// Subtracts and returns what was there.
    #[track_caller]
    fn fetch_sub(&self, value: T, order: Ordering) -> T;

    /// Bitwise and; returns what was there.
    #[track_caller]
    fn fetch_and(&self, value: T, order: Ordering) -> T;

    /// Bitwise or; returns what was there.
    #[track_caller]
    fn fetch_or(&self, value: T, order: Ordering) -> T;
}

/// Parts of a 32-bit lock word, "low" being the least significant bits.
///
/// x86 can write a byte or a half of a word that others access whole, which
/// turns an unlock into one plain store. C11 and Rust have no such thing (it
/// would be a mixed-size atomic access), so the default of each method is a
/// whole-word read-modify-write with the same effect. The native platform of
/// x86-64 replaces it by one instruction of assembly; those of AArch64 and
/// RISC-V (64 bits) the stores by release stores of the part.
///
/// The caller promises, where a method says so, that no other CPU writes
/// that part meanwhile. Other parts may change at any time.
///
/// # Safety
/// As [`Atomic`], for each method here: an implementation has the effect of
/// the default, which is one atomic step for all who look at the word whole
/// or at any part of it.
pub unsafe trait LockWord: AtomicInt<u32> {
    /// Makes the word `held` if it reads 0, and says whether. Another value
    /// is only read: the line stays with those who need it.
    #[track_caller]
    #[inline(always)]
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        self.load(Ordering::Relaxed) == 0
            && self
                .compare_exchange(0, held, order, Ordering::Relaxed)
                .is_ok()
    }

    /// Adds one to the high half, and compares what it was with the low half,
    /// as that was then or is since: `Ok` if they are equal, otherwise `Err`
    /// with what the high half was. `order` is that of both.
    #[track_caller]
    #[inline(always)]
    fn draw_ticket(&self, order: Ordering) -> Result<(), u16> {
        let word = self.fetch_add(1 << 16, order);
        let ticket = (word >> 16) as u16;
        if word as u16 == ticket {
            Ok(())
        } else {
            Err(ticket)
        }
    }

    /// Writes the low byte, which no other CPU writes meanwhile.
    #[track_caller]
    #[inline(always)]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        // The low byte is stable but for us, so adding the difference cannot
        // carry into the others. The value read may be stale in its other
        // parts only.
        let old = self.load(Ordering::Relaxed) & 0xff;
        self.fetch_add(u32::from(value).wrapping_sub(old), order);
    }

    /// Writes the low half, which no other CPU writes meanwhile.
    #[track_caller]
    #[inline(always)]
    fn store_low_half(&self, value: u16, order: Ordering) {
        let old = self.load(Ordering::Relaxed) & 0xffff;
        self.fetch_add(u32::from(value).wrapping_sub(old), order);
    }

    /// Adds one to the low half, which no other CPU writes meanwhile; wraps
    /// within it.
    #[track_caller]
    #[inline(always)]
    fn increment_low_half(&self, order: Ordering) {
        let old = self.load(Ordering::Relaxed) as u16;
        self.fetch_add(
            u32::from(old.wrapping_add(1)).wrapping_sub(u32::from(old)),
            order,
        );
    }

    /// Replaces the high half, which other CPUs may write too, and returns
    /// what was there.
    #[track_caller]
    #[inline(always)]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let mut old = self.load(Ordering::Relaxed);
        loop {
            let new = (old & 0xffff) | (u32::from(value) << 16);
            // The failure value is only the next guess.
            match self.compare_exchange(old, new, order, Ordering::Relaxed) {
                Ok(_) => return (old >> 16) as u16,
                Err(now) => old = now,
            }
        }
    }
}

/// A world that locks can run in.
///
/// The functions have no `self`: a platform is a type. A "CPU" is whatever
/// runs one acquisition at a time: a CPU of a kernel, a thread of a process,
/// a coroutine of the simulator.
///
/// # Safety
/// Locks believe what a platform says. So:
/// - [`Platform::cpu`] is below [`crate::MAX_CPUS`], and answers the same
///   number to one CPU from the beginning of an acquisition to the end of its
///   release, and to no other CPU meanwhile;
/// - [`Platform::queue_nodes`] gives for each number below that the same nodes
///   each time, which no other number and no other platform has, and which
///   live for ever; [`Platform::visible_readers`] so for all of them;
/// - [`Platform::fence`] is a fence of at least the ordering given;
/// - [`Platform::wake`] uses only the address of `word`: the memory may have
///   been freed since the release;
/// - no function unwinds: a lock that calls one may have queued a node on its
///   caller's stack. (As for [`Atomic`], a world that ends may.)
pub unsafe trait Platform: Sized + Send + Sync + 'static {
    /// An atomic byte.
    type U8: AtomicInt<u8>;
    /// An atomic 32-bit word.
    type U32: LockWord;
    /// An atomic machine word.
    type Usize: AtomicInt<usize>;
    /// An atomic pointer.
    type Ptr<T: 'static>: Atomic<*mut T>;

    /// A memory fence.
    #[track_caller]
    fn fence(order: Ordering);

    /// Orders the accesses before it and after it for an interrupt (or a
    /// signal) on this CPU, which sees them in the program's order if the
    /// compiler keeps it. No instruction.
    #[inline(always)]
    #[track_caller]
    fn interrupt_fence() {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Tells the CPU that it is spinning: one pause.
    fn relax();

    /// Relaxes this many times.
    #[inline(always)]
    fn relax_for(relaxes: u32) {
        for _ in 0..relaxes {
            Self::relax();
        }
    }

    /// The number of this CPU, below [`crate::MAX_CPUS`]. While an
    /// acquisition waits or holds, no other CPU answers the same.
    fn cpu() -> usize;

    /// As [`Platform::cpu`], or `None` if this CPU has no number (a thread
    /// beyond the most that a program may have): for a lock that has another
    /// way to wait.
    #[inline(always)]
    fn try_cpu() -> Option<usize> {
        Some(Self::cpu())
    }

    /// The NUMA node of this CPU. A wrong answer costs speed, never
    /// exclusion.
    fn node() -> usize;

    /// Nanoseconds of a clock that never goes back. A lock with a timeout
    /// spins for some reads, looks here, and spins on.
    fn now() -> u64;

    /// Sleeps until [`Platform::wake`] is called for `word`, but returns at
    /// once if it no longer holds `expected`; may return at any time.
    #[track_caller]
    fn wait(word: &Self::U32, expected: u32);

    /// Ends the [`Platform::wait`] of one CPU on `word`, if there is one. Uses
    /// its address only.
    #[track_caller]
    fn wake(word: &Self::U32);

    /// How often a lock may prefer some waiters to others before it turns to
    /// the others: `bound`, but for the checker, which has it reached after
    /// one.
    #[inline(always)]
    fn preferences(bound: u32) -> u32 {
        bound
    }

    /// Whether this is a virtual machine whose hypervisor does not help
    /// waiting CPUs.
    fn virtualized() -> bool;

    /// The queue nodes of a CPU; see [`crate::QueueNodes`].
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self>;

    /// Where CPUs show which lock they read, for [`crate::Bravo`]: an entry for
    /// each of the first so many, the same table each time. None by default:
    /// no reader is visible, and that lock is as the one inside it.
    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Self>] {
        &[]
    }
}
