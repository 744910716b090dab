//! The simulator as a platform of locks: each atomic access is an event.
//!
//! The atomics are plain memory of the native size. They may only be used by
//! code that runs on a simulated CPU, or while one sets up its memory.

use crate::coherence::Want;
use crate::engine::{Engine, engine};
use crate::spin::{DONE, FOREVER};
use crate::store_buffer::Forward;
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use locklab_locks::{HeldLocks, QueueNodes};
use std::cell::UnsafeCell;
use std::panic::Location;

/// The simulator.
#[derive(Debug)]
pub struct Sim;

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
    /// Zero-extended.
    fn to_bits(self) -> u64;
    /// The low bits.
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

/// Whether earlier stores must be visible before an access of this ordering.
#[inline(always)]
pub(crate) fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

impl<T: Bits> Word<T> {
    const SIZE: u8 = size_of::<T>() as u8;

    #[inline(always)]
    fn address(&self) -> usize {
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
        match engine().reach_to_read(self.address(), Self::SIZE) {
            Some(own) => T::from_bits(own),
            None => self.get(),
        }
    }

    /// A read-modify-write of a part of this word: locked on x86, ordered as
    /// far as `order` requires elsewhere.
    #[inline(always)]
    fn modify(&self, order: Ordering, change: impl FnOnce(T) -> Option<T>) -> T {
        let engine = engine();
        let place = engine.reach_to_modify(self.address(), order);
        let old = self.get();
        let new = change(old)
            .filter(|new| *new != old)
            .map(|new| new.to_bits());
        // SAFETY: our own address and size.
        unsafe { engine.modified(place, self.address(), Self::SIZE, new) };
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
                self.read()
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                if order == Ordering::SeqCst {
                    self.modify(order, |_| Some(value));
                    return;
                }
                // SAFETY: our own address and size.
                unsafe { engine().store(self.address(), Self::SIZE, value.to_bits(), order) };
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

/// A spin as the engine sees it: a word, the lock's closure, the last value.
struct Spinner<'a, T, F> {
    word: &'a Word<T>,
    poll: F,
    value: T,
}

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
    let Poll::Relax(relaxes) = poll(value) else {
        return value;
    };
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
        engine().spin(
            (word.address(), Word::<T>::SIZE),
            relaxes,
            left,
            (step::<T, F>, data),
            Some(place),
        )
    };
    spinner.value
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
        if engine.x86 {
            // SAFETY: the first byte of our own word (little-endian).
            unsafe { engine.store(self.address(), 1, u64::from(value), order) };
        } else {
            let old = self.load(Ordering::Relaxed) & 0xff;
            self.fetch_add(u32::from(value).wrapping_sub(old), order);
        }
    }

    #[inline]
    fn store_low_half(&self, value: u16, order: Ordering) {
        let engine = engine();
        if engine.x86 {
            // SAFETY: the first half of our own word.
            unsafe { engine.store(self.address(), 2, u64::from(value), order) };
        } else {
            let old = self.load(Ordering::Relaxed) & 0xffff;
            self.fetch_add(u32::from(value).wrapping_sub(old), order);
        }
    }

    #[inline]
    fn increment_low_half(&self, order: Ordering) {
        let engine = engine();
        let old = self.load(Ordering::Relaxed) as u16;
        if engine.x86 {
            // SAFETY: the first half of our own word.
            unsafe { engine.store(self.address(), 2, u64::from(old.wrapping_add(1)), order) };
        } else {
            let change = u32::from(old.wrapping_add(1)).wrapping_sub(u32::from(old));
            self.fetch_add(change, order);
        }
    }

    #[inline]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        // One instruction on x86; elsewhere a loop that seldom repeats, which
        // here it never does.
        let old = self.modify(order, |old| Some((old & 0xffff) | (u32::from(value) << 16)));
        (old >> 16) as u16
    }
}

impl Engine {
    /// Lets the running CPU read `size` bytes of memory, which it reads when
    /// this returns; or returns the value of its own store, if that is not
    /// visible yet.
    #[inline(always)]
    pub(crate) fn reach_to_read(&self, address: usize, size: u8) -> Option<u64> {
        let index = self.line_of(address);
        let line = &self.lines[index];
        self.sync_for(line);
        if !self.current().stores.is_empty() {
            match self.forward(index, address, size) {
                Forward::Nothing => {}
                Forward::Value(bits) => {
                    self.note(1);
                    self.time.set(self.time.get() + self.costs.l1);
                    return Some(bits);
                }
                Forward::Part => self.drain_all(),
            }
        }
        self.note(1);
        if line.readable(self.current().core.get(), self.time.get()) {
            self.time.set(self.time.get() + self.costs.l1);
            self.hit(index);
        } else {
            self.sync();
            self.miss(index, Want::Shared);
        }
        None
    }

    /// Begins a read-modify-write of the running CPU: the present value of
    /// memory is the one it reads. Returns the line, and whether it is done in
    /// the core.
    #[inline(always)]
    pub(crate) fn reach_to_modify(&self, address: usize, order: Ordering) -> (usize, bool) {
        let index = self.line_of(address);
        let line = &self.lines[index];
        self.sync_for(line);
        if self.x86 || releases(order) {
            self.drain_all();
        } else {
            self.drain_line(index);
        }
        let core = self.current().core.get();
        let mut near = true;
        if line.writable(core, self.time.get()) {
            self.hit(index);
        } else {
            self.sync();
            let want = self.atomic(line, core);
            near = want == Want::Locked;
            self.miss(index, want);
        }
        self.note(4);
        (index, near)
    }

    /// Ends a read-modify-write, with the new value if there is one.
    ///
    /// # Safety
    /// The same conditions as for [`crate::store_buffer::write`].
    #[inline(always)]
    pub(crate) unsafe fn modified(
        &self,
        (index, near): (usize, bool),
        address: usize,
        size: u8,
        new: Option<u64>,
    ) {
        if let Some(new) = new {
            // SAFETY: the caller's promise.
            unsafe { self.publish(index, address, size, new, self.time.get()) };
        }
        if near {
            let done = self.time.get() + self.costs.rmw;
            self.lines[index].lock_until(done);
            self.time.set(done);
        }
    }

    fn fence_full(&self) {
        self.sync();
        self.drain_all();
        self.time.set(self.time.get() + self.costs.rmw);
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
        if order == Ordering::SeqCst || (!engine.x86 && releases(order)) {
            engine.fence_full();
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
        let engine = engine();
        engine.current().place.set(Some(Location::caller()));
        // A full barrier, as a hypercall is; the check and the halt are one
        // step.
        engine.drain_all();
        if word.read() == expected && word.get() == expected {
            engine.halt(word.address());
        }
        engine.current().place.set(None);
    }

    fn wake(word: &Word<u32>) {
        engine().kick(word.address());
    }

    fn virtualized() -> bool {
        engine().virtualized
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        let engine = engine();
        // SAFETY: placed in the engine's arena when it was set up, and used
        // only by coroutines, which do not outlive it.
        unsafe { &*engine.nodes.borrow()[cpu] }
    }

    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        let held = engine().held.borrow().get(cpu).copied();
        // SAFETY: as the queue nodes.
        held.map(|held| unsafe { &*held })
    }
}
