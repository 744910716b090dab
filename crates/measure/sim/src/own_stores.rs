//! Answers a CPU from its own stores that are not visible yet: it reads them,
//! and waits for them.

use crate::cpu::Phase;
use crate::engine::Engine;
use crate::store_buffer::Forward;

/// Waits until the running CPU's stores are visible.
#[inline]
pub(crate) fn drain_all(engine: &Engine) {
    if !engine.current().stores.is_empty() {
        engine.stall(Phase::Drain);
    }
}

/// Waits for a line that one of the running CPU's stores has requested, and returns whether one
/// has. A core has one request for a line: what misses it meanwhile waits for that (D. Kroft,
/// "Lockup-free instruction fetch/prefetch cache organization", ISCA 1981).
#[inline]
pub(crate) fn await_own_request(engine: &Engine, index: usize) -> bool {
    let stores = &engine.current().stores;
    let comes = stores.is_coming(index, engine.time.get());
    if comes {
        stores.awaited.set(index);
        engine.stall(Phase::Fill);
    }
    comes
}

/// Waits until the running CPU's stores to a line are visible.
#[inline]
pub(crate) fn drain_line(engine: &Engine, index: usize) {
    let cpu = engine.current();
    if !cpu.stores.is_empty() && cpu.stores.has(index) {
        drain_all(engine);
    }
}

/// Returns the value of some bytes of a line in the running CPU's own stores.
#[inline(always)]
pub(crate) fn forward(engine: &Engine, index: usize, address: usize, size: u8) -> Forward {
    if engine.current().stores.may_have(index) {
        forward_from_line(engine, address, size)
    } else {
        Forward::Nothing
    }
}

/// Returns whether a store of the running CPU that is not visible yet writes some of
/// these bytes.
pub(crate) fn has_store_at(engine: &Engine, address: usize, size: u8) -> bool {
    let index = engine.line_of(address);
    !matches!(forward(engine, index, address, size), Forward::Nothing)
}

#[inline(never)]
pub(crate) fn forward_from_line(engine: &Engine, address: usize, size: u8) -> Forward {
    for store in engine.current().stores.stores.borrow().iter().rev() {
        if store.address == address && store.size == size {
            return Forward::Value(store.value);
        }
        if store.address < address + size as usize && address < store.address + store.size as usize
        {
            return Forward::Part;
        }
    }
    Forward::Nothing
}
