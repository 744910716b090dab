//! The simulator as a platform of locks: each atomic access is an event.
//!
//! The atomics are plain memory of the native size. They may only be used by
//! code that runs on a simulated CPU, or while one sets up its memory.

use crate::access::{fence_full, modified, reach_to_modify, reach_to_read, reach_to_read_once};
use crate::cpu::{DONE, FOREVER};
use crate::drain::{self, releases};
use crate::engine::engine;
use crate::futex_queue::FutexQueue;
use crate::own_stores::drain_all;
use crate::scheduler::{self, enter_call, halt, kick, yield_to_others};
use crate::{sleepers, spin};
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use locklab_locks::{HeldLocks, QueueNodes, Sleepers, VisibleReader};
use std::cell::UnsafeCell;
use std::panic::Location;

/// The simulator.
#[derive(Debug)]
pub struct Sim;

/// Says what the code of a published program does between its accesses, where that is not
/// the lock's own computing.
impl Sim {
    /// Calls a function that the compiler has not inlined, and returns from it.
    pub fn function_call() {
        /// A call and its return in a loop: 1.3e9 cycles for 268 million of them on
        /// Haswell (Stack Overflow, question 77656326); the return reads what the call
        /// has just stored.
        const X86: u64 = 5;
        /// Arm keeps the return address in a register: a cycle for each of the two
        /// branches (its software optimisation guides).
        const ARM: u64 = 2;
        let engine = engine();
        engine.work(if engine.costs.x86 { X86 } else { ARM });
    }

    /// Returns a whole number below `most`, by chance: the delays of a lock that backs off so.
    pub fn random(most: usize) -> usize {
        engine().rng.below(most)
    }

    /// Calls the operating system, which finds nothing to do.
    pub fn system_call() {
        let engine = engine();
        engine.work(engine.costs.system_call);
    }

    /// Sleeps for a time, in which another thread may have the CPU.
    pub fn sleep_ns(ns: u64) {
        let engine = engine();
        scheduler::sleep(engine, (ns as f64 * engine.costs.clock_ghz) as u64);
    }
}

/// An atomic of the simulator.
#[repr(transparent)]
pub struct Word<T>(UnsafeCell<T>);

// SAFETY: a simulation runs on one thread, and nothing else reaches its
// arena.
unsafe impl<T> Send for Word<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Word<T> {}

/// Conversion of a value to and from the 64 bits of a store buffer entry.
/// (Public only because [`Word`] is; not exported.)
pub trait Bits: Copy + PartialEq {
    /// Returns its bits, zero-extended.
    fn to_bits(self) -> u64;
    /// Returns the low bits.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($int:ty),*) => {$(
        impl Bits for $int {
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}
bits!(u8, u16, u32, usize);

impl<T> Bits for *mut T {
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.expose_provenance() as u64
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        std::ptr::with_exposed_provenance_mut(bits as usize)
    }
}

impl<T: Default> Default for Word<T> {
    fn default() -> Self {
        Self(UnsafeCell::new(T::default()))
    }
}

impl<T: Bits> Word<T> {
    pub(crate) const SIZE: u8 = size_of::<T>() as u8;

    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.0.get().expose_provenance()
    }

    #[inline(always)]
    fn get(&self) -> T {
        // SAFETY: a simulation has one thread; no other code holds a reference
        // to the contents.
        unsafe { *self.0.get() }
    }

    #[inline(always)]
    fn read(&self) -> T {
        match reach_to_read(engine(), self.address(), Self::SIZE) {
            Some(own) => T::from_bits(own),
            None => self.get(),
        }
    }

    /// Returns a read-modify-write of a part of this word: locked on x86, ordered as
    /// far as `order` requires elsewhere.
    #[inline(always)]
    fn modify(&self, order: Ordering, change: impl FnOnce(T) -> Option<T>) -> T {
        let engine = engine();
        let place = reach_to_modify(engine, self.address(), order);
        let old = self.get();
        let new = change(old)
            .filter(|new| *new != old)
            .map(|new| new.to_bits());
        // SAFETY: our own address and size.
        unsafe { modified(engine, place, self.address(), Self::SIZE, new) };
        old
    }
}

macro_rules! atomic {
    ($value:ty, [$($generic:tt)*], $zero:expr) => {
        // SAFETY: one coroutine runs at a time; each operation is one step of
        // the simulated machine, on the word where it lies.
        unsafe impl<$($generic)*> Atomic<$value> for Word<$value> {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Word(UnsafeCell::new($zero));

            #[inline(always)]
            fn new(value: $value) -> Self {
                Word(UnsafeCell::new(value))
            }

            #[inline(always)]
            fn load(&self, _: Ordering) -> $value {
                match reach_to_read_once(engine(), self.address(), Self::SIZE) {
                    Some(own) => Bits::from_bits(own),
                    None => self.get(),
                }
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                if order == Ordering::SeqCst {
                    self.modify(order, |_| Some(value));
                    return;
                }
                // SAFETY: our own address and size.
                unsafe { drain::store(engine(), self.address(), Self::SIZE, value.to_bits(), order) };
            }

            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.modify(order, |_| Some(value))
            }

            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                let old = self.modify(success, |old| (old == current).then_some(new));
                if old == current { Ok(old) } else { Err(old) }
            }

            #[inline]
            #[track_caller]
            fn spin(
                &self,
                _: Ordering,
                patience: Patience,
                poll: impl FnMut($value) -> Poll,
            ) -> $value {
                spin(self, patience, poll, Location::caller())
            }
        }
    };
}

impl Word<u32> {
    /// Waits as [`Platform::wait`] does. Returns whether the CPU slept.
    pub(crate) fn sleep(&self, expected: u32) -> bool {
        let engine = engine();
        // A full barrier, as a hypercall is; the check and the halt are one
        // step.
        drain_all(engine);
        let after = enter_call(engine, engine.hypervisor.call);
        let queue = FutexQueue::<Sim>::of(engine, self.address());
        if let Some(queue) = queue {
            queue.joins(engine);
        }
        let sleeps = self.read() == expected && self.get() == expected;
        match (queue, sleeps) {
            (Some(queue), true) => queue.stays(engine),
            (Some(queue), false) => queue.leaves(engine),
            (None, _) => {}
        }
        if sleeps {
            halt(engine, self.address(), after);
        } else {
            engine.time.set(engine.time.get() + after);
        }
        sleeps
    }
}

/// A spin as the engine sees it: a word, the lock's closure, the last value.
struct Spinner<'a, T, F> {
    word: &'a Word<T>,
    poll: F,
    value: T,
}

/// Reads the word; returns how often to relax, or [`DONE`].
///
/// # Safety
/// `data` is a `Spinner<T, F>` that no other code uses meanwhile.
unsafe fn step<T: Bits, F: FnMut(T) -> Poll>(data: *mut ()) -> u32 {
    // SAFETY: promised.
    let spinner = unsafe { &mut *data.cast::<Spinner<'_, T, F>>() };
    spinner.value = spinner.word.get();
    match (spinner.poll)(spinner.value) {
        Poll::Done => DONE,
        Poll::Relax(relaxes) => relaxes.min(DONE - 1),
    }
}

#[inline]
fn spin<T: Bits, F: FnMut(T) -> Poll>(
    word: &Word<T>,
    patience: Patience,
    mut poll: F,
    place: &'static Location<'static>,
) -> T {
    let value = word.read();
    let before = engine().time.get();
    let Poll::Relax(relaxes) = poll(value) else {
        return value;
    };
    if engine().time.get() != before {
        // It looks at other words too, which only code on this CPU can.
        return spin_here(word, patience, poll, relaxes, value);
    }
    let left = match patience {
        Patience::Forever => FOREVER,
        Patience::Reads(0 | 1) => return value,
        Patience::Reads(reads) => (reads - 1).min(FOREVER - 1),
    };
    let mut spinner = Spinner { word, poll, value };
    let data = (&raw mut spinner).cast();
    // SAFETY: the spinner is on this stack, which stands still until `spin`
    // returns, and is touched by no other code until then.
    unsafe {
        spin::spin(
            engine(),
            (word.address(), Word::<T>::SIZE),
            relaxes,
            left,
            (step::<T, F>, data),
            Some(place),
        )
    };
    spinner.value
}

/// Spins, read by read, where the lock's closure accesses memory itself.
fn spin_here<T: Bits, F: FnMut(T) -> Poll>(
    word: &Word<T>,
    patience: Patience,
    mut poll: F,
    mut relaxes: u32,
    mut value: T,
) -> T {
    let mut left = match patience {
        Patience::Forever => u32::MAX,
        Patience::Reads(reads) => reads.saturating_sub(1),
    };
    while left > 0 {
        if patience != Patience::Forever {
            left -= 1;
        }
        Sim::relax_for(relaxes);
        value = word.read();
        match poll(value) {
            Poll::Relax(more) => relaxes = more,
            _ => break,
        }
    }
    value
}

atomic!(u8, [], 0);
atomic!(u32, [], 0);
atomic!(usize, [], 0);
atomic!(*mut T, [T: 'static], std::ptr::null_mut());

macro_rules! atomic_int {
    ($value:ty) => {
        // SAFETY: as `Atomic`.
        unsafe impl AtomicInt<$value> for Word<$value> {
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.modify(order, |old| Some(old.wrapping_add(value)))
            }

            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.modify(order, |old| Some(old.wrapping_sub(value)))
            }

            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.modify(order, |old| Some(old & value))
            }

            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.modify(order, |old| Some(old | value))
            }
        }
    };
}

atomic_int!(u8);
atomic_int!(u32);
atomic_int!(usize);

/// One plain store of a part on x86, as the native platform there; a
/// read-modify-write of the whole word elsewhere.
// SAFETY: as `Atomic`.
unsafe impl LockWord for Word<u32> {
    #[inline]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        let engine = engine();
        if engine.costs.x86 {
            // SAFETY: the first byte of our own word (little-endian).
            unsafe { drain::store(engine, self.address(), 1, u64::from(value), order) };
        } else {
            let old = self.load(Ordering::Relaxed) & 0xff;
            self.fetch_add(u32::from(value).wrapping_sub(old), order);
        }
    }

    #[inline]
    fn store_low_half(&self, value: u16, order: Ordering) {
        let engine = engine();
        if engine.costs.x86 {
            // SAFETY: the first half of our own word.
            unsafe { drain::store(engine, self.address(), 2, u64::from(value), order) };
        } else {
            let old = self.load(Ordering::Relaxed) & 0xffff;
            self.fetch_add(u32::from(value).wrapping_sub(old), order);
        }
    }

    #[inline]
    fn increment_low_half(&self, order: Ordering) {
        let engine = engine();
        let old = self.load(Ordering::Relaxed) as u16;
        if engine.costs.x86 {
            // SAFETY: the first half of our own word.
            unsafe {
                drain::store(
                    engine,
                    self.address(),
                    2,
                    u64::from(old.wrapping_add(1)),
                    order,
                )
            };
        } else {
            let change = u32::from(old.wrapping_add(1)).wrapping_sub(u32::from(old));
            self.fetch_add(change, order);
        }
    }

    #[inline]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        // It is one instruction on x86; elsewhere it is a loop that seldom repeats, which
        // here it never does.
        let old = self.modify(order, |old| Some((old & 0xffff) | (u32::from(value) << 16)));
        (old >> 16) as u16
    }
}

// SAFETY: a CPU is a coroutine, numbered by the engine, and each number has
// its queue nodes.
unsafe impl Platform for Sim {
    type U8 = Word<u8>;
    type U32 = Word<u32>;
    type Usize = Word<usize>;
    type Ptr<T: 'static> = Word<*mut T>;

    fn fence(order: Ordering) {
        let engine = engine();
        // TSO orders all but a store before a load.
        if order == Ordering::SeqCst || (!engine.costs.x86 && releases(order)) {
            fence_full(engine);
        }
    }

    fn relax() {
        let engine = engine();
        engine.time.set(engine.time.get() + engine.costs.pause);
    }

    fn relax_for(relaxes: u32) {
        let engine = engine();
        engine
            .time
            .set(engine.time.get() + u64::from(relaxes) * engine.costs.pause);
    }

    fn cpu() -> usize {
        engine().current.get()
    }

    fn node() -> usize {
        let engine = engine();
        engine.topology.socket(engine.current().core.get())
    }

    fn now() -> u64 {
        let engine = engine();
        engine.ns(engine.time.get()) as u64
    }

    #[track_caller]
    fn wait(word: &Word<u32>, expected: u32) {
        let cpu = engine().current();
        cpu.place.set(Some(Location::caller()));
        word.sleep(expected);
        cpu.place.set(None);
    }

    fn wake(word: &Word<u32>) {
        kick::<Sim>(engine(), word.address(), 1);
    }

    fn wake_if_any(word: &Word<u32>) -> bool {
        kick::<Sim>(engine(), word.address(), 1) > 0
    }

    fn wake_all(word: &Word<u32>) {
        kick::<Sim>(engine(), word.address(), usize::MAX);
    }

    fn yield_cpu() {
        yield_to_others(engine());
    }

    fn sleepers(address: usize) -> Option<&'static Sleepers<Self>> {
        sleepers::of(address)
    }

    fn virtualized() -> bool {
        engine().costs.virtualized
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        let engine = engine();
        // SAFETY: placed in the engine's arena when it was set up, and used
        // only by coroutines, which do not outlive it.
        unsafe { &*engine.cpus[cpu].nodes.get().cast() }
    }

    fn visible_readers() -> &'static [VisibleReader<Self>] {
        let (first, count) = engine().visible.get();
        if first.is_null() {
            return &[];
        }
        // SAFETY: as the queue nodes; so many were placed one after the other.
        unsafe { std::slice::from_raw_parts(first.cast(), count) }
    }

    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        let held = engine().cpus[cpu].held.get();
        // SAFETY: as the queue nodes.
        unsafe { held.cast::<HeldLocks<Self>>().as_ref() }
    }
}
