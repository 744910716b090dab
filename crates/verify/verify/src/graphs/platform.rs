//! The engine's world: its atomics behind [`Platform`].
//!
//! What waits is one event of the engine; a bounded spin is one read, which may see any
//! value. Who sleeps is in a queue of its own for each word, as in the
//! system, whose lock orders those who use it. Nothing here knows any lock.

use super::world::{self, Words};
use crate::execution;
use crate::journal::{self, Entry, Journal, Operation};
use crate::pointer::Pointer;
use locklab_graph::Place;
use locklab_graph::model::{self, Location, Orders};
use locklab_locks::platform::{Atomic, AtomicInt, LockWord, Ordering, Patience, Platform, Poll};
use locklab_locks::{HeldLocks, QueueNodes, Sleepers, VisibleReader};
use std::marker::PhantomData;

/// Locks whose every execution is explored, as graphs. Works only inside a model of
/// [`super`].
pub(crate) struct Graphs;

/// A word of the engine.
pub(crate) struct Word<T> {
    location: Location,
    value: PhantomData<fn() -> T>,
}

/// A value of a word.
pub(crate) trait Bits: Copy {
    /// Says whether it is an address.
    const POINTER: bool;
    fn into_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($int:ty)*) => {$(
        impl Bits for $int {
            const POINTER: bool = false;

            fn into_bits(self) -> u64 {
                self as u64
            }

            fn from_bits(bits: u64) -> Self {
                bits as $int
            }
        }
    )*};
}

bits!(u8 u32 usize);

impl Bits for *mut () {
    const POINTER: bool = true;

    fn into_bits(self) -> u64 {
        self.expose_provenance() as u64
    }

    fn from_bits(bits: u64) -> Self {
        std::ptr::with_exposed_provenance_mut(bits as usize)
    }
}

/// The end of a word is an access to it: whoever uses a queue node after its owner has
/// taken it back is found.
impl<T> Drop for Word<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() && world::is_running() {
            model::retire(self.location, Place::here());
        }
    }
}

/// Returns a place as the journal has it.
pub(crate) fn in_journal(place: Place) -> journal::Place {
    let (file, line, column) = match place {
        Place::Source { file, line, column } => (file, line, column),
        Place::Address(_) => ("", 0, 0),
    };
    journal::Place { file, line, column }
}

impl<T: Bits> Word<T> {
    /// Notes a step for the trace.
    fn note(&self, operation: Operation, place: Place, old: u64, new: u64) {
        Journal::current().push(Entry {
            word: std::ptr::from_ref(self).addr() as u64,
            old,
            new,
            pointer: T::POINTER,
            ..Entry::new(operation, execution::cpu(), in_journal(place))
        });
    }

    fn update_as(
        &self,
        operation: Operation,
        order: Ordering,
        place: Place,
        new: impl FnOnce(T) -> T,
    ) -> T {
        let mut written = 0;
        let new = |bits| {
            written = new(T::from_bits(bits)).into_bits();
            Some(written)
        };
        let old = model::rmw(self.location, order, place, new);
        self.note(operation, place, old, written);
        T::from_bits(old)
    }

    fn update(&self, order: Ordering, place: Place, new: impl FnOnce(T) -> T) -> T {
        self.update_as(Operation::Update, order, place, new)
    }

    fn read(&self, operation: Operation, order: Ordering, place: Place) -> T {
        let value = model::load(self.location, order, place);
        self.note(operation, place, value, value);
        T::from_bits(value)
    }

    /// Waits: one event, unless the caller must not wait.
    fn await_at(&self, order: Ordering, place: Place, mut done: impl FnMut(T) -> bool) -> T {
        execution::about_to_wait();
        if execution::must_not_wait() {
            let value = self.read(Operation::Seen, order, place);
            execution::may_wait(done(value), in_journal(place));
            return value;
        }
        let ends = |bits| done(T::from_bits(bits));
        let value = model::await_load(self.location, order, place, ends);
        self.note(Operation::Seen, place, value, value);
        T::from_bits(value)
    }
}

// SAFETY: each method is one operation of the engine, with the ordering given.
unsafe impl<T: Bits + 'static> Atomic<T> for Word<T> {
    const ZERO: Self = panic!("a word of a model is made when the model runs");

    fn new(value: T) -> Self {
        let location = Location::new(size_of::<T>() as u32);
        model::create(location, value.into_bits(), Place::here());
        Self {
            location,
            value: PhantomData,
        }
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> T {
        self.read(Operation::Load, order, Place::here())
    }

    #[track_caller]
    fn store(&self, value: T, order: Ordering) {
        let (place, value) = (Place::here(), value.into_bits());
        model::store(self.location, value, order, place);
        self.note(Operation::Store, place, value, value);
    }

    #[track_caller]
    fn swap(&self, value: T, order: Ordering) -> T {
        self.update_as(Operation::Swap, order, Place::here(), |_| value)
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        let orders = Orders { success, failure };
        let (current, new, place) = (current.into_bits(), new.into_bits(), Place::here());
        let made = model::compare_exchange(self.location, current, new, orders, false, place);
        match made {
            Ok(old) => self.note(Operation::CompareExchange, place, old, new),
            Err(old) => self.note(Operation::CompareFailed, place, old, current),
        }
        made.map(T::from_bits).map_err(T::from_bits)
    }

    /// A spin that may end by itself is one read: those before it only narrow what it may
    /// see.
    #[track_caller]
    fn spin(&self, order: Ordering, patience: Patience, mut poll: impl FnMut(T) -> Poll) -> T {
        let place = Place::here();
        let mut done = |value| poll(value) == Poll::Done;
        if patience == Patience::Forever {
            return self.await_at(order, place, done);
        }
        let value = self.read(Operation::InVain, order, place);
        match done(value) {
            true => execution::patient(),
            false => execution::impatient(in_journal(place)),
        }
        value
    }

    // It does what the default does, but under the caller's name.
    #[track_caller]
    fn spin_until(&self, order: Ordering, done: impl FnMut(T) -> bool) -> T {
        self.await_at(order, Place::here(), done)
    }
}

macro_rules! int {
    ($($int:ty)*) => {$(
        // SAFETY: as `Atomic`.
        unsafe impl AtomicInt<$int> for Word<$int> {
            #[track_caller]
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.update(order, Place::here(), |old| old.wrapping_add(value))
            }

            #[track_caller]
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.update(order, Place::here(), |old| old.wrapping_sub(value))
            }

            #[track_caller]
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.update(order, Place::here(), |old| old & value)
            }

            #[track_caller]
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.update(order, Place::here(), |old| old | value)
            }
        }
    )*};
}

int!(u8 u32 usize);

/// Each is one update of the whole word, which no machine makes weaker.
// SAFETY: as `Atomic`.
unsafe impl LockWord for Word<u32> {
    #[track_caller]
    fn take_if_zero(&self, held: u32, order: Ordering) -> bool {
        self.load(Ordering::Relaxed) == 0
            && self
                .compare_exchange(0, held, order, Ordering::Relaxed)
                .is_ok()
    }

    #[track_caller]
    fn draw_ticket(&self, order: Ordering) -> Result<(), u16> {
        let word = self.fetch_add(1 << 16, order);
        let ticket = (word >> 16) as u16;
        match word as u16 == ticket {
            true => Ok(()),
            false => Err(ticket),
        }
    }

    #[track_caller]
    fn store_low_byte(&self, value: u8, order: Ordering) {
        self.update(order, Place::here(), |old| old & !0xff | u32::from(value));
    }

    #[track_caller]
    fn store_low_half(&self, value: u16, order: Ordering) {
        self.update(order, Place::here(), |old| old & !0xffff | u32::from(value));
    }

    #[track_caller]
    fn increment_low_half(&self, order: Ordering) {
        let next = |old: u32| old & !0xffff | u32::from((old as u16).wrapping_add(1));
        self.update(order, Place::here(), next);
    }

    #[track_caller]
    fn swap_high_half(&self, value: u16, order: Ordering) -> u16 {
        let next = |old: u32| old & 0xffff | u32::from(value) << 16;
        (self.update_as(Operation::Swap, order, Place::here(), next) >> 16) as u16
    }
}

/// The bits of a sleeper in the queue of a word, from the one that has slept the longest:
/// four of its number, which is above 0, then four of how often it has slept.
const SLEEPER: u32 = 8;
const NUMBER: u64 = 0xf;

/// Ends the sleep of so many that sleep on a word, and returns how many those were.
fn wake(word: &Word<u32>, most: usize, place: Place) -> usize {
    let mut woken = Vec::new();
    // The system's lock: pairs with the updates of those who sleep and wake there.
    model::rmw(word.location.beside(), Ordering::AcqRel, place, |queue| {
        let mut left = queue;
        woken.clear();
        while left != 0 && woken.len() < most {
            woken.push(left & ((1 << SLEEPER) - 1));
            left >>= SLEEPER;
        }
        Some(left)
    });
    for sleeper in &woken {
        let called = world::called((sleeper & NUMBER) as usize - 1);
        let times = sleeper >> 4;
        // Pairs with the wait of `wait`. What is called later may be here before.
        model::rmw(called, Ordering::Release, place, |old| {
            (old < times).then_some(times)
        });
    }
    let wakes = match woken.len() {
        0 => Operation::WakeNobody,
        1 => Operation::Wake,
        _ => Operation::WakeSome,
    };
    word.note(wakes, place, 0, 0);
    woken.len()
}

/// Sleeps on a word unless it holds something else.
fn wait(word: &Word<u32>, expected: u32, place: Place) {
    // Whoever sleeps is interrupted as whoever spins; and then looks again.
    execution::interrupt();
    if execution::spurious() {
        return;
    }
    let own = model::thread_id();
    let (called, times) = (world::called(own), world::sleeps(own));
    let queue = word.location.beside();
    let number = (own as u64 + 1) | (times << 4);
    // The system's lock: pairs with the updates of those who sleep and wake there. To look
    // after that is as good as to do both at once: who is woken meanwhile returns.
    model::rmw(queue, Ordering::AcqRel, place, |queue| {
        let others = (u64::BITS - queue.leading_zeros()).div_ceil(SLEEPER);
        Some(queue | number << (others * SLEEPER))
    });
    // A full fence, as the system has in the call: pairs with that of who looks for sleepers.
    model::fence(Ordering::SeqCst, place);
    let value = model::load(word.location, Ordering::Relaxed, place);
    if value == u64::from(expected) {
        word.note(Operation::Sleep, place, value, value);
        execution::falls_asleep(in_journal(place));
        // Pairs with the store of `wake`.
        model::await_load(called, Ordering::Acquire, place, |called| called >= times);
        return;
    }
    word.note(Operation::NoSleep, place, value, u64::from(expected));
    model::rmw(queue, Ordering::AcqRel, place, |queue| {
        let mut others = 0;
        let mut at = 0;
        for sleeper in (0..u64::BITS / SLEEPER).map(|n| queue >> (n * SLEEPER) & 0xff) {
            if sleeper != 0 && sleeper != number {
                others |= sleeper << at;
                at += SLEEPER;
            }
        }
        Some(others)
    });
}

// SAFETY: each thread of an execution has its number and its queue nodes.
unsafe impl Platform for Graphs {
    type U8 = Word<u8>;
    type U32 = Word<u32>;
    type Usize = Word<usize>;
    type Ptr<T: 'static> = Pointer<T, Word<*mut ()>>;

    #[track_caller]
    fn fence(order: Ordering) {
        let place = Place::here();
        if order != Ordering::Relaxed {
            model::fence(order, place);
            let entry = Entry::new(Operation::Fence, execution::cpu(), in_journal(place));
            Journal::current().push(entry);
        }
    }

    #[track_caller]
    fn relax() {
        execution::interrupt();
        execution::may_wait(false, in_journal(Place::here()));
    }

    fn cpu() -> usize {
        execution::number()
    }

    fn try_cpu() -> Option<usize> {
        execution::is_numbered().then(Self::cpu)
    }

    fn node() -> usize {
        execution::numa_node()
    }

    fn now() -> u64 {
        execution::now()
    }

    #[track_caller]
    fn wait(word: &Self::U32, expected: u32) {
        wait(word, expected, Place::here());
    }

    #[track_caller]
    fn wake(word: &Self::U32) {
        wake(word, 1, Place::here());
    }

    #[track_caller]
    fn wake_if_any(word: &Self::U32) -> bool {
        wake(word, 1, Place::here()) > 0
    }

    #[track_caller]
    fn wake_all(word: &Self::U32) {
        wake(word, usize::MAX, Place::here());
    }

    fn sleepers(_: usize) -> Option<&'static Sleepers<Self>> {
        let made = world::words(Words::Sleepers, |made| &made.sleepers);
        made.first().map(|sleepers| &**sleepers)
    }

    fn preferences(bound: u32) -> u32 {
        execution::asks_for_preferences(bound);
        execution::preferences()
    }

    fn virtualized() -> bool {
        execution::virtualized()
    }

    fn queue_nodes(cpu: usize) -> &'static QueueNodes<Self> {
        &world::words(Words::Nodes, |made| &made.nodes)[cpu]
    }

    fn visible_readers() -> &'static [VisibleReader<Self>] {
        let made = world::words(Words::Readers, |made| &made.readers);
        // SAFETY: `ManuallyDrop` has the layout of what it holds.
        unsafe { &*(std::ptr::from_ref(made) as *const [VisibleReader<Self>]) }
    }

    fn held_locks(cpu: usize) -> Option<&'static HeldLocks<Self>> {
        let made = world::words(Words::Held, |made| &made.held);
        made.get(cpu).map(|held| &**held)
    }
}
