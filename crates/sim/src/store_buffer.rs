//! The store buffer: plain stores that wait for their line while the CPU
//! continues.
//!
//! All of them request their lines at once. On x86 (TSO) they become visible
//! in program order, one after the other: a line that arrives before its
//! store's turn may be lost again, and is then requested once more. On Arm they
//! become visible as their lines arrive; a release store waits for all that are
//! before it, and stores to one line keep their order. On both a load may pass
//! them, unless it reads what they write; a full fence waits until they are
//! out, and so does a read-modify-write, on Arm only one that releases.

use crate::coherence::Want;
use crate::engine::{Engine, Phase};
use crate::platform::releases;
use locklab_locks::platform::Ordering;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// One store, or several in a row to one place on x86, which become visible
/// together: then the value is that of the last.
#[derive(Clone, Copy)]
struct Store {
    address: usize,
    size: u8,
    value: u64,
    line: usize,
    /// How many there are.
    times: u16,
    /// Whether it waits for all stores before it.
    last: bool,
    /// Whether no store before it has the same line.
    first: bool,
    /// Whether its line is its CPU's own, which no other core can take.
    settled: bool,
    /// The core for which its line has been requested: the CPU may have been
    /// moved to another since.
    asked: Option<u16>,
    /// The time when the requested line arrives, once that is known.
    comes: u64,
}

impl Store {
    /// Whether its line may still have to be requested before its turn.
    fn may_ask(&self) -> bool {
        self.first && self.asked.is_none() && !self.settled
    }
}

const REMAINDERS: usize = 32;

/// Stores of one CPU that are not visible yet, oldest first.
#[derive(Default)]
pub(crate) struct StoreBuffer {
    len: Cell<usize>,
    /// Number of stores that may have to request their lines before their turn.
    may_ask: Cell<usize>,
    /// Number of stores to lines of each remainder: most lookups find none.
    lines: [Cell<u16>; REMAINDERS],
    stores: RefCell<VecDeque<Store>>,
}

impl StoreBuffer {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Whether a store to this line may be waiting.
    #[inline(always)]
    fn may_have(&self, line: usize) -> bool {
        self.lines[line % REMAINDERS].get() > 0
    }

    /// Whether a store to this line waits.
    fn has(&self, line: usize) -> bool {
        if !self.may_have(line) {
            return false;
        }
        let stores = self.stores.borrow();
        stores.iter().rev().any(|store| store.line == line)
    }

    /// Adds a store to the youngest, if it has the same place. Returns whether
    /// it has.
    #[inline(always)]
    fn repeat(&self, address: usize, size: u8, value: u64) -> bool {
        let mut stores = self.stores.borrow_mut();
        match stores.back_mut() {
            Some(last) if last.address == address && last.size == size => {
                last.value = value;
                last.times += 1;
                self.len.set(self.len.get() + 1);
                true
            }
            _ => false,
        }
    }

    fn push(&self, store: Store) {
        self.count(0, store.may_ask());
        let lines = &self.lines[store.line % REMAINDERS];
        lines.set(lines.get() + 1);
        self.stores.borrow_mut().push_back(store);
        self.len.set(self.len.get() + 1);
    }

    /// Takes a store out; the next one to its line is the first from now on.
    fn remove(&self, place: usize) -> Option<Store> {
        let mut stores = self.stores.borrow_mut();
        let removed = match place {
            0 => stores.pop_front()?,
            _ => stores.remove(place)?,
        };
        self.len.set(self.len.get() - usize::from(removed.times));
        self.count(usize::from(removed.may_ask()), false);
        let lines = &self.lines[removed.line % REMAINDERS];
        lines.set(lines.get() - 1);
        if removed.first && self.may_have(removed.line) {
            let mut after = stores.iter_mut().skip(place);
            if let Some(next) = after.find(|store| store.line == removed.line) {
                next.first = true;
                self.count(0, next.may_ask());
            }
        }
        Some(removed)
    }

    /// Whether no store may have to request its line before its turn.
    #[inline(always)]
    fn asks_nothing(&self) -> bool {
        self.may_ask.get() == 0
    }

    /// Changes a store without changing its line.
    fn change(&self, place: usize, change: impl FnOnce(&mut Store)) {
        let store = &mut self.stores.borrow_mut()[place];
        let before = store.may_ask();
        change(store);
        self.count(usize::from(before), store.may_ask());
    }

    /// Notes that its CPU is on another core, which has none of its lines.
    pub(crate) fn moved(&self) {
        let places = self.stores.borrow().len();
        for place in 0..places {
            self.change(place, |store| store.settled = false);
        }
    }

    fn count(&self, less: usize, more: bool) {
        self.may_ask
            .set(self.may_ask.get() - less + usize::from(more));
    }
}

/// The result of a lookup in the store buffer.
pub(crate) enum Forward {
    /// No store covers its bytes.
    Nothing,
    /// A store has its value.
    Value(u64),
    /// A store covers a part of it.
    Part,
}

/// Writes the low `size` bytes of `value`, none of them if `size` is 0.
///
/// # Safety
/// `address` is that of an atomic of this size in the engine's arena.
pub(crate) unsafe fn write(address: usize, size: u8, value: u64) {
    // The place is an `UnsafeCell` in memory that only this thread uses.
    // SAFETY: promised by the caller; the size is that of the atomic, or of a
    // part of a lock word, at its natural alignment.
    unsafe {
        match size {
            // The code writes by itself.
            0 => {}
            1 => (address as *mut u8).write(value as u8),
            2 => (address as *mut u16).write(value as u16),
            4 => (address as *mut u32).write(value as u32),
            _ => (address as *mut u64).write(value),
        }
    }
}

/// Reads `size` bytes.
///
/// # Safety
/// The same conditions as for [`write`].
pub(crate) unsafe fn read(address: usize, size: u8) -> u64 {
    // SAFETY: as in `write`.
    unsafe {
        match size {
            1 => u64::from((address as *const u8).read()),
            2 => u64::from((address as *const u16).read()),
            4 => u64::from((address as *const u32).read()),
            _ => (address as *const u64).read(),
        }
    }
}

impl Engine {
    /// Executes a plain store by the running CPU.
    ///
    /// # Safety
    /// The same conditions as for [`write`].
    #[inline]
    pub(crate) unsafe fn store(&self, address: usize, size: u8, value: u64, order: Ordering) {
        let index = self.line_of(address);
        let line = &self.lines[index];
        self.sync_for(line);
        let cpu = self.current();
        if cpu.stores.is_empty() {
            if line.writable(cpu.core.get(), self.time.get()) {
                self.note(2);
                // SAFETY: as promised.
                unsafe { self.publish(index, address, size, value, self.time.get()) };
                self.hit(index);
                self.time.set(self.time.get() + 1);
                return;
            }
            self.sync();
            if self.costs.store_buffer == 0 {
                self.miss(index, Want::Exclusive);
                self.note(2);
                // SAFETY: as promised.
                unsafe { self.publish(index, address, size, value, self.time.get()) };
                self.time.set(self.time.get() + 1);
                return;
            }
        }
        self.note(3);
        if cpu.stores.len() >= self.costs.store_buffer {
            let from = self.time.get();
            self.suspend(Phase::DrainSlot);
            cpu.stalled.set(cpu.stalled.get() + self.time.get() - from);
        }
        let now = self.time.get();
        if !(self.x86 && cpu.stores.repeat(address, size, value)) {
            let own = self.x86 && line.private.get();
            cpu.stores.push(Store {
                address,
                size,
                value,
                line: index,
                times: 1,
                last: self.x86 || releases(order),
                first: !cpu.stores.has(index),
                settled: own && line.writable(cpu.core.get(), now),
                asked: None,
                comes: u64::MAX,
            });
        }
        // Most stores wait behind one whose line is on its way, and change
        // nothing.
        if !(self.x86 && cpu.stores.asks_nothing() && self.oldest_waits(now)) {
            self.drain(self.current.get(), now);
        }
        self.time.set(self.time.get() + 1);
    }

    /// Whether the oldest store of the running CPU, whose line has been
    /// requested, can only wait at `now`.
    #[inline]
    fn oldest_waits(&self, now: u64) -> bool {
        let cpu = self.current();
        let stores = cpu.stores.stores.borrow();
        let Some(oldest) = stores.front() else {
            return false;
        };
        oldest.asked.is_some()
            && oldest.comes > now
            && !self.lines[oldest.line].writable(cpu.core.get(), now)
    }

    /// Makes a value visible.
    ///
    /// # Safety
    /// The same conditions as for [`write`].
    #[inline]
    pub(crate) unsafe fn publish(
        &self,
        index: usize,
        address: usize,
        size: u8,
        value: u64,
        now: u64,
    ) {
        // SAFETY: as promised.
        unsafe { write(address, size, value) };
        self.writes.set(self.writes.get() + 1);
        if self.lines[index].watched() {
            self.wake_watchers(index, now, None);
        }
    }

    /// Waits until the running CPU's stores are visible.
    #[inline]
    pub(crate) fn drain_all(&self) {
        let cpu = self.current();
        if !cpu.stores.is_empty() {
            let from = self.time.get();
            self.suspend(Phase::Drain);
            cpu.stalled.set(cpu.stalled.get() + self.time.get() - from);
        }
    }

    /// Waits until the running CPU's stores to a line are visible.
    #[inline]
    pub(crate) fn drain_line(&self, index: usize) {
        let cpu = self.current();
        if !cpu.stores.is_empty() && cpu.stores.has(index) {
            self.drain_all();
        }
    }

    /// The value of some bytes of a line in the running CPU's own stores.
    #[inline(always)]
    pub(crate) fn forward(&self, index: usize, address: usize, size: u8) -> Forward {
        if self.current().stores.may_have(index) {
            self.forward_from_line(address, size)
        } else {
            Forward::Nothing
        }
    }

    /// Whether a store of the running CPU that is not visible yet writes some
    /// of these bytes.
    pub(crate) fn has_store_at(&self, address: usize, size: u8) -> bool {
        let index = self.line_of(address);
        !matches!(self.forward(index, address, size), Forward::Nothing)
    }

    #[inline(never)]
    fn forward_from_line(&self, address: usize, size: u8) -> Forward {
        for store in self.current().stores.stores.borrow().iter().rev() {
            if store.address == address && store.size == size {
                return Forward::Value(store.value);
            }
            if store.address < address + size as usize
                && address < store.address + store.size as usize
            {
                return Forward::Part;
            }
        }
        Forward::Nothing
    }

    /// Processes those stores of a CPU that wait for no other: makes visible
    /// the ones that have their line, and requests the lines of the rest.
    fn drain(&self, cpu: usize, now: u64) {
        let stores = &self.cpus[cpu].stores;
        let core = self.cpus[cpu].core.get();
        let mut place = 0;
        let mut may_ask = 0;
        loop {
            let Some(store) = stores.stores.borrow().get(place).copied() else {
                return;
            };
            let behind = place > 0 && (store.last || !store.first);
            let line = &self.lines[store.line];
            // A line that has just come for this store serves it, whoever
            // waits for it by now.
            let here = match store.asked {
                Some(asker) if store.comes == now => line.owned(usize::from(asker), now),
                _ => line.writable(core, now),
            };
            if !behind && here {
                self.retire(cpu, place, now);
                continue;
            }
            // On x86 a line may have come too early, and be lost.
            let ask = match store.asked {
                None => !behind || (self.x86 && store.first && !here),
                Some(_) => !behind && store.comes <= now,
            };
            if ask {
                stores.change(place, |store| {
                    store.asked = Some(core as u16);
                    store.comes = u64::MAX;
                });
                self.request(store.line, cpu, Want::Drain, now, None);
            }
            if here && line.private.get() {
                stores.change(place, |store| store.settled = true);
            }
            // Behind the oldest, an x86 store only requests its line, once.
            may_ask = match place {
                0 => stores.may_ask.get(),
                _ => may_ask - usize::from(store.may_ask()),
            };
            if self.x86 && may_ask == 0 {
                return;
            }
            place += 1;
        }
    }

    /// Notes that the line which a store of a CPU has requested arrives at
    /// `done`.
    pub(crate) fn comes(&self, cpu: usize, index: usize, done: u64) {
        let mut stores = self.cpus[cpu].stores.stores.borrow_mut();
        if let Some(store) = stores
            .iter_mut()
            .find(|store| store.line == index && store.asked.is_some() && store.comes == u64::MAX)
        {
            store.comes = done;
        }
    }

    /// Makes a store of a CPU visible.
    fn retire(&self, cpu: usize, place: usize, now: u64) {
        let stores = &self.cpus[cpu].stores;
        let Some(store) = stores.remove(place) else {
            return;
        };
        // SAFETY: whoever put it here promised.
        unsafe { self.publish(store.line, store.address, store.size, store.value, now) };
        let more = u64::from(store.times) - 1;
        self.writes.set(self.writes.get() + more);
    }

    /// Handles the arrival of the line of one of a CPU's stores.
    pub(crate) fn drained(&self, cpu: usize, now: u64) {
        self.drain(cpu, now);
        let who = &self.cpus[cpu];
        // It may have run ahead before it came to wait.
        let now = now.max(who.since.get());
        match who.phase.get() {
            Phase::Drain if who.stores.is_empty() => {
                let delay = self.rng.below(2 * self.costs.drain as usize + 1) as u64;
                self.schedule(cpu, now + delay);
            }
            Phase::DrainSlot => self.schedule(cpu, now),
            _ => {}
        }
    }

    /// Charges for a hit, which costs more if the line has been evicted from L1
    /// meanwhile.
    #[inline(always)]
    pub(crate) fn hit(&self, index: usize) {
        let line = &self.lines[index];
        let generation = self.l1_generation(self.current().core.get());
        if line.generation.get() != generation {
            line.generation.set(generation);
            self.time.set(self.time.get() + self.costs.l2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn what_is_counted_is_what_is_there() {
        let rng = Rng::new(1);
        let buffer = StoreBuffer::default();
        for _ in 0..20_000 {
            let places = buffer.stores.borrow().len();
            let place = rng.below(places + 1);
            if place == places && place < 56 {
                let line = rng.below(80);
                if rng.below(4) == 0 {
                    let last = buffer.stores.borrow().back().map(|store| store.address);
                    assert_eq!(buffer.repeat(line * 64, 4, 1), last == Some(line * 64));
                    assert!(!buffer.repeat(line * 64, 2, 1));
                    last.inspect(|&address| assert!(buffer.repeat(address, 4, 1)));
                    continue;
                }
                buffer.push(Store {
                    address: line * 64,
                    size: 4,
                    value: 0,
                    line,
                    times: 1,
                    last: true,
                    first: !buffer.has(line),
                    settled: false,
                    asked: None,
                    comes: u64::MAX,
                });
            } else if rng.below(3) == 0 {
                buffer.remove(place.min(places - 1));
            } else if rng.below(20) == 0 {
                buffer.moved();
            } else {
                buffer.change(place.min(places - 1), |store| match rng.below(2) {
                    0 => store.settled = true,
                    _ => store.asked = Some(3),
                });
            }
            let stores = buffer.stores.borrow();
            for (place, store) in stores.iter().enumerate() {
                let before = stores.range(..place).any(|one| one.line == store.line);
                assert_eq!(store.first, !before);
                assert!(buffer.has(store.line));
            }
            let may_ask = stores.iter().filter(|store| store.may_ask()).count();
            assert_eq!(buffer.may_ask.get(), may_ask);
            let times = stores.iter().map(|store| usize::from(store.times));
            assert_eq!(buffer.len(), times.sum::<usize>());
        }
    }
}
