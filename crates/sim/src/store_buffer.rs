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

#[derive(Clone, Copy)]
struct Store {
    address: usize,
    size: u8,
    value: u64,
    line: usize,
    /// Whether it waits for all stores before it.
    last: bool,
    /// The core for which its line has been requested: the CPU may have been
    /// moved to another since.
    asked: Option<u16>,
    /// The time when the requested line arrives, once that is known.
    comes: u64,
}

/// Stores of one CPU that are not visible yet, oldest first.
#[derive(Default)]
pub(crate) struct StoreBuffer {
    len: Cell<usize>,
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
        cpu.stores.stores.borrow_mut().push_back(Store {
            address,
            size,
            value,
            line: index,
            last: self.x86 || releases(order),
            asked: None,
            comes: u64::MAX,
        });
        cpu.stores.len.set(cpu.stores.len.get() + 1);
        self.drain(self.current.get(), self.time.get());
        self.time.set(self.time.get() + 1);
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
        if !cpu.stores.is_empty()
            && cpu
                .stores
                .stores
                .borrow()
                .iter()
                .any(|store| store.line == index)
        {
            self.drain_all();
        }
    }

    /// The value of some bytes in the running CPU's own stores.
    #[cold]
    pub(crate) fn forward(&self, address: usize, size: u8) -> Forward {
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
        loop {
            let Some(store) = stores.stores.borrow().get(place).copied() else {
                return;
            };
            let same_line = place > 0
                && stores
                    .stores
                    .borrow()
                    .iter()
                    .take(place)
                    .any(|before| before.line == store.line);
            let behind = place > 0 && (store.last || same_line);
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
                None => !behind || (self.x86 && !same_line && !here),
                Some(_) => !behind && store.comes <= now,
            };
            if ask {
                let mut stores = stores.stores.borrow_mut();
                stores[place].asked = Some(core as u16);
                stores[place].comes = u64::MAX;
                drop(stores);
                self.request(store.line, cpu, Want::Drain, now, None);
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
        let Some(store) = stores.stores.borrow_mut().remove(place) else {
            return;
        };
        stores.len.set(stores.len.get() - 1);
        // SAFETY: whoever put it here promised.
        unsafe { self.publish(store.line, store.address, store.size, store.value, now) };
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
