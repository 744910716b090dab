//! Declares what a lock needs from the world in which it runs.
//!
//! Each algorithm is written once, generic over [`Platform`]. Three worlds
//! exist: real atomics ([`Native`](crate::native::Native)), a model checker and
//! a simulator. They differ only here, so a lock that is proven or simulated
//! is the lock that ships.
//!
//! Rules for an algorithm:
//! - every word that another CPU may read or write, and every word whose
//!   cache line another CPU may own, is one of the platform's atomics, even
//!   where it is only ever accessed while the lock is held;
//! - it waits only through [`Atomic::spin`] and [`Platform::wait`]: the
//!   checker prunes there, and the simulator sleeps until the line changes; where each attempt writes (test-and-set), it calls
//!   [`Platform::relax`] between attempts;
//! - it never depends on which world it is in.

use crate::held_locks::HeldLocks;
use crate::qnode::{MAX_CPUS, QueueNodes};
use crate::sleepers::Sleepers;
use crate::visible_reader::VisibleReader;
pub use core::sync::atomic::Ordering;

/// Says what a spinning CPU does after it has read a word; see [`Atomic::spin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The value is the one waited for.
    Done,
    /// Relax this many times, then read again.
    Relax(u32),
}

/// Limits how long [`Atomic::spin`] continues if the awaited value does not appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It waits until the value appears.
    Forever,
    /// It gives up after this many reads. Zero still reads once.
    Reads(u32),
}

/// An atomic word of a platform.
///
/// The memory orderings mean what they mean in [`core::sync::atomic`].
/// The methods carry `#[track_caller]` because the checker names each
/// operation by its line in the lock's source.
///
/// # Safety
/// Locks exclude only if this word behaves as specified:
/// - every method is one atomic operation on the one value of the word, with
///   the ordering that it is given or a stronger one, for every thread and
///   every mapping through which the word is reached;
/// - [`Atomic::ZERO`] and [`Atomic::new`] hold the value named;
///   [`Atomic::compare_exchange`] writes if and only if it returns `Ok`;
/// - [`Atomic::spin`] returns a value that the word held, read with `order`;
///   unless that is a value for which `poll` returned [`Poll::Done`], patience
///   ended;
/// - no method unwinds, unless the whole world ends with it and no code of a
///   lock runs again in it (a checker that has found an error).
pub unsafe trait Atomic<T: Copy>: Sized + Send + Sync {
    /// The word holding zero (null for a pointer), which makes a lock's `new` a
    /// `const fn`. The checker's atomics cannot be constructed at compile time;
    /// there, evaluating it is a compile-time error.
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self;

    /// Makes a word holding `value`.
    fn new(value: T) -> Self;

    /// Reads the word.
    #[track_caller]
    fn load(&self, order: Ordering) -> T;

    /// Writes the word.
    #[track_caller]
    fn store(&self, value: T, order: Ordering);

    /// Writes the word and returns its previous value.
    #[track_caller]
    fn swap(&self, value: T, order: Ordering) -> T;

    /// Writes `new` if the word is `current`. Returns the previous value, as
    /// `Ok` if `new` was written. Never fails spuriously.
    #[track_caller]
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;

    /// Reads the word until `poll` returns [`Poll::Done`] or patience ends, and
    /// returns the last value read. A caller whose patience may end
    /// checks that value.
    ///
    /// `poll` must depend on nothing but the value: a platform may skip
    /// reads that would see the same value again.
    #[track_caller]
    fn spin(&self, order: Ordering, patience: Patience, poll: impl FnMut(T) -> Poll) -> T;

    /// Spins, with one relax between reads, until `done` holds; returns the
    /// value for which it did.
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
    /// Adds, and returns the previous value.
    #[track_caller]
    fn fetch_add(&self, value: T, order: Ordering) -> T;

    /// Subtracts, and returns the previous value.
    #[track_caller]
    fn fetch_sub(&self, value: T, order: Ordering) -> T;

    /// Computes a bitwise and; returns the previous value.
    #[track_caller]
    fn fetch_and(&self, value: T, order: Ordering) -> T;

    /// Computes a bitwise or; returns the previous value.
    #[track_caller]
    fn fetch_or(&self, value: T, order: Ordering) -> T;
}

/// Parts of a 32-bit lock word, "low" being the least significant bits.
///
/// x86 can write a byte or a half of a word that others access as a whole,
/// which turns an unlock into one plain store. C11 and Rust have no such thing
/// (it would be a mixed-size atomic access), so the default of each method is a
/// whole-word read-modify-write with the same effect. The native platform of
/// x86-64 replaces it by one instruction of assembly; those of AArch64 and
/// RISC-V (64 bits) the stores by release stores of the part.
///
/// The caller guarantees, where a method says so, that no other CPU writes
/// that part meanwhile. Other parts may change at any time.
///
/// # Safety
/// As [`Atomic`], for each method here: an implementation has the effect of
/// the default, which is one atomic step for all CPUs that access the word
/// whole or in part.
pub unsafe trait LockWord: AtomicInt<u32> {
    /// Makes the word `held` if it reads 0, and returns whether it did. Another
    /// value is only read: the line stays with the CPUs that need it.
    #[track_caller]
    #[inline(always)]
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        self.load(Ordering::Relaxed) == 0
            && self
                .compare_exchange(0, held, order, Ordering::Relaxed)
                .is_ok()
    }

    /// Adds one to the high half, and compares its previous value with the low
    /// half, read then or later: `Ok` if they are equal, otherwise `Err` with
    /// the previous high half. `order` applies to both accesses.
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
    /// its previous value.
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
/// Locks rely on the platform, so:
/// - [`Platform::cpu`] is below [`MAX_CPUS`], and returns the same
///   number to one CPU from the beginning of an acquisition to the end of its
///   release, and to no other CPU meanwhile;
/// - [`Platform::queue_nodes`] returns for each number below that bound the
///   same nodes each time, which no other number and no other platform has, and
///   which live for ever; [`Platform::visible_readers`] likewise for all
///   numbers, [`Platform::held_locks`] for those that have one, and
///   [`Platform::sleepers`] for each address;
/// - [`Platform::fence`] is a fence of at least the ordering given;
/// - [`Platform::wake`] and [`Platform::wake_all`] use only the address of `word`:
///   the memory may have been freed since the release;
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

    /// Executes a memory fence.
    #[track_caller]
    fn fence(order: Ordering);

    /// Orders the accesses before it and after it for an interrupt (or a
    /// signal) on this CPU, which sees them in program order if the compiler
    /// keeps that order. Emits no instruction.
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

    /// Returns the number of this CPU, below [`MAX_CPUS`]. While an
    /// acquisition waits or holds, no other CPU returns the same number.
    fn cpu() -> usize;

    /// Works as [`Platform::cpu`], or `None` if this CPU has no number (a thread
    /// beyond the maximum of a program): for a lock that has another
    /// way to wait.
    #[inline(always)]
    fn try_cpu() -> Option<usize> {
        Some(Self::cpu())
    }

    /// Returns the NUMA node of this CPU. A wrong answer costs speed, never
    /// exclusion.
    fn node() -> usize;

    /// Returns the nanoseconds of a clock that never goes back. A lock with a timeout
    /// alternates between spinning and reading it.
    fn now() -> u64;

    /// Sleeps until [`Platform::wake`] is called for `word`, but returns at
    /// once if it no longer holds `expected`; may return at any time.
    #[track_caller]
    fn wait(word: &Self::U32, expected: u32);

    /// Ends the [`Platform::wait`] of one CPU on `word`, if there is one. Uses
    /// its address only.
    #[track_caller]
    fn wake(word: &Self::U32);

    /// Works as [`Platform::wake`], and returns whether a CPU was waiting. `false` by
    /// default, where nobody can tell.
    #[track_caller]
    fn wake_if_any(word: &Self::U32) -> bool {
        Self::wake(word);
        false
    }

    /// Works as [`Platform::wake`] for a word that its waiter may have dropped by now.
    ///
    /// # Safety
    /// `word` was a word of this platform, and its memory is still mapped.
    #[track_caller]
    #[inline(always)]
    unsafe fn wake_at(word: *const Self::U32) {
        // SAFETY: the caller's promise; `wake` uses the address only.
        Self::wake(unsafe { &*word });
    }

    /// Ends every [`Platform::wait`] on `word`. Uses its address only. By default it
    /// wakes as many as there may be CPUs, one by one.
    #[track_caller]
    fn wake_all(word: &Self::U32) {
        for _ in 0..MAX_CPUS {
            Self::wake(word);
        }
    }

    /// Gives this CPU to another thread that is ready, if there is one: the system call
    /// of that name. By default one pause.
    #[track_caller]
    #[inline(always)]
    fn yield_cpu() {
        Self::relax();
    }

    /// Returns the place where those sleep who wait for what is at `address`: always the
    /// same for one address. `None` by default: a lock that keeps its queue there spins.
    #[inline(always)]
    fn sleepers(address: usize) -> Option<&'static Sleepers<Self>> {
        let _ = address;
        None
    }

    /// Returns how often a lock may prefer some waiters to others before it serves the
    /// others: `bound`, except in the checker, where it is one so that the
    /// bound is reached.
    #[inline(always)]
    fn preferences(bound: u32) -> u32 {
        bound
    }

    /// Returns whether this is a virtual machine whose hypervisor does not help
    /// waiting CPUs.
    fn virtualized() -> bool;

    /// Returns the queue nodes of a CPU; see [`QueueNodes`].
    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self>;

    /// Returns the table in which CPUs publish which lock they read, for
    /// `Bravo`: an entry for each of the first CPUs, always the same
    /// table. Empty by default: no reader is visible, and that lock behaves as
    /// the one inside it.
    #[inline(always)]
    fn visible_readers() -> &'static [VisibleReader<Self>] {
        &[]
    }

    /// Returns the table of the locks that a CPU holds, for `RqSpinlock`: of each of
    /// the first CPUs, `None` from there on. None by default: that lock detects
    /// no deadlock, and its waiters give up after a time.
    #[inline(always)]
    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        let _ = cpu;
        None
    }
}
