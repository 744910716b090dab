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

use crate::ahead;
use crate::coherence::request;
use crate::cpu::Phase;
use crate::directory::miss;
use crate::engine::Engine;
use crate::requests::Want;
use crate::spin::wake_watchers;
use crate::store_buffer::{Store, write};
use locklab_locks::platform::Ordering;

/// Returns whether earlier stores must be visible before an access of this ordering.
#[inline(always)]
pub(crate) fn releases(order: Ordering) -> bool {
    matches!(
        order,
        Ordering::Release | Ordering::AcqRel | Ordering::SeqCst
    )
}

/// Executes a plain store by the running CPU.
///
/// # Safety
/// The same conditions as for [`write()`].
#[inline]
pub(crate) unsafe fn store(engine: &Engine, address: usize, size: u8, value: u64, order: Ordering) {
    let index = engine.line_of(address);
    let line = &engine.lines[index];
    engine.sync_for(line);
    ahead::write(engine, index);
    let cpu = engine.current();
    if cpu.stores.is_empty() {
        if line.writable(cpu.core.get(), engine.time.get()) {
            engine.note(2);
            // SAFETY: as promised.
            unsafe { publish(engine, index, address, size, value, engine.time.get()) };
            engine.hit(index);
            engine.time.set(engine.time.get() + 1);
            return;
        }
        engine.sync();
        if engine.costs.store_buffer == 0 {
            miss(engine, index, Want::Exclusive);
            engine.note(2);
            // SAFETY: as promised.
            unsafe { publish(engine, index, address, size, value, engine.time.get()) };
            engine.time.set(engine.time.get() + 1);
            return;
        }
    }
    engine.note(3);
    if cpu.stores.len() >= engine.costs.store_buffer {
        engine.stall(Phase::DrainSlot);
    }
    let now = engine.time.get();
    if !(engine.costs.x86 && cpu.stores.repeat(address, size, value, 1)) {
        let own = engine.costs.x86 && line.private.get();
        cpu.stores.push(Store {
            address,
            size,
            value,
            line: index,
            times: 1,
            last: engine.costs.x86 || releases(order),
            first: !cpu.stores.has(index),
            settled: own && line.writable(cpu.core.get(), now),
            asked: None,
            comes: u64::MAX,
        });
    }
    // Most stores wait behind one whose line is on its way, and change
    // nothing.
    if !(engine.costs.x86 && cpu.stores.asks_nothing() && oldest_waits(engine, now)) {
        drain(engine, engine.current.get(), now);
    }
    engine.time.set(engine.time.get() + 1);
}

/// Returns whether the oldest store of the running CPU, whose line has been requested,
/// can only wait at `now`.
#[inline]
pub(crate) fn oldest_waits(engine: &Engine, now: u64) -> bool {
    let cpu = engine.current();
    let stores = cpu.stores.stores.borrow();
    let Some(oldest) = stores.front() else {
        return false;
    };
    oldest.asked.is_some()
        && oldest.comes > now
        && !engine.lines[oldest.line].writable(cpu.core.get(), now)
}

/// Makes a value visible.
///
/// # Safety
/// The same conditions as for [`write()`].
#[inline]
pub(crate) unsafe fn publish(
    engine: &Engine,
    index: usize,
    address: usize,
    size: u8,
    value: u64,
    now: u64,
) {
    // SAFETY: as promised.
    unsafe { write(address, size, value) };
    engine.lines[index].clean.set(false);
    engine.tally.writes.set(engine.tally.writes.get() + 1);
    if engine.lines[index].watched() {
        wake_watchers(engine, index, now, None);
    }
}

/// Processes those stores of a CPU that wait for no other: makes visible
/// the ones that have their line, and requests the lines of the rest.
pub(crate) fn drain(engine: &Engine, cpu: usize, now: u64) {
    let stores = &engine.cpus[cpu].stores;
    let core = engine.cpus[cpu].core.get();
    let mut place = 0;
    let mut may_ask = 0;
    loop {
        let Some(store) = stores.stores.borrow().get(place).copied() else {
            return;
        };
        let behind = place > 0 && (store.last || !store.first);
        let line = &engine.lines[store.line];
        // A line that has just come for this store serves it, whoever
        // waits for it by now.
        let here = match store.asked {
            Some(asker) if store.comes == now => line.owned(usize::from(asker), now),
            _ => line.writable(core, now),
        };
        if !behind && here {
            retire(engine, cpu, place, now);
            continue;
        }
        // On x86 a line may have come too early, and be lost.
        let ask = match store.asked {
            None => !behind || (engine.costs.x86 && store.first && !here),
            Some(_) => !behind && store.comes <= now,
        };
        if ask {
            stores.change(place, |store| {
                store.asked = Some(core as u16);
                store.comes = u64::MAX;
            });
            request(engine, store.line, cpu, Want::Drain, now, None);
        }
        if here && line.private.get() {
            stores.change(place, |store| store.settled = true);
        }
        // Behind the oldest, an x86 store only requests its line, once. Other
        // processors make stores visible out of order, whereby a later one can
        // become one that may ask: there the walk goes to the end.
        if engine.costs.x86 {
            may_ask = match place {
                0 => stores.may_ask.get(),
                _ => may_ask - usize::from(store.may_ask()),
            };
            if may_ask == 0 {
                return;
            }
        }
        place += 1;
    }
}

/// Makes a store of a CPU visible.
pub(crate) fn retire(engine: &Engine, cpu: usize, place: usize, now: u64) {
    let stores = &engine.cpus[cpu].stores;
    let Some(store) = stores.remove(place) else {
        return;
    };
    // SAFETY: whoever put it here promised.
    unsafe {
        publish(
            engine,
            store.line,
            store.address,
            store.size,
            store.value,
            now,
        )
    };
    let more = u64::from(store.times) - 1;
    engine.tally.writes.set(engine.tally.writes.get() + more);
}

/// Handles the arrival of the line of one of a CPU's stores.
pub(crate) fn drained(engine: &Engine, cpu: usize, now: u64) {
    let who = &engine.cpus[cpu];
    // A line that has come is read, even if its store's turn has not.
    let filled =
        who.phase.get() == Phase::Fill && !who.stores.is_coming(who.stores.awaited.get(), now);
    drain(engine, cpu, now);
    // It may have run ahead before it came to wait.
    let now = now.max(who.since.get());
    match who.phase.get() {
        Phase::Drain if who.stores.is_empty() => {
            let delay = engine.rng.below(2 * engine.costs.drain as usize + 1) as u64;
            engine.schedule(cpu, now + delay);
        }
        Phase::DrainSlot => engine.schedule(cpu, now),
        _ if filled => engine.schedule(cpu, now),
        _ => {}
    }
}
