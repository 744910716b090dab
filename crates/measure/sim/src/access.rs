//! One access of the running CPU, from the sync before it to its cost after it.

use crate::ahead;
use crate::coherence::atomic;
use crate::directory::miss;
use crate::drain::publish;
use crate::drain::releases;
use crate::engine::Engine;
use crate::line::Line;
use crate::own_stores::{await_own_request, drain_all, drain_line, forward};
use crate::requests::Want;
use crate::store_buffer::Forward;
use locklab_locks::platform::Ordering;

/// Lets the running CPU read `size` bytes of memory, which it reads when
/// this returns; or returns the value of its own store, if that is not
/// visible yet.
#[inline(always)]
pub(crate) fn reach_to_read(engine: &Engine, address: usize, size: u8) -> Option<u64> {
    let index = engine.line_of(address);
    let line = &engine.lines[index];
    engine.sync_for(line);
    if !engine.current().stores.is_empty() {
        match forward(engine, index, address, size) {
            Forward::Nothing => {}
            Forward::Value(bits) => {
                engine.note(1);
                engine.time.set(engine.time.get() + engine.costs.l1);
                return Some(bits);
            }
            Forward::Part => drain_all(engine),
        }
    }
    engine.note(1);
    if engine.costs.reads_ahead > 0 && ahead::read(engine, index) {
        engine.time.set(engine.time.get() + engine.costs.l1);
        return None;
    }
    if line.readable(engine.current().core.get(), engine.time.get()) {
        engine.time.set(engine.time.get() + engine.costs.l1);
        engine.hit(index);
    } else {
        engine.sync();
        if await_own_request(engine, index) {
            return None;
        }
        let often = engine.costs.early_ownership;
        let early = often > 0
            && engine.current().read_to_modify.get() == index
            && engine.rng.below(1024) < often;
        let want = if early { Want::Exclusive } else { Want::Shared };
        miss(engine, index, want);
    }
    None
}

/// Reads as [`reach_to_read`] does, where the CPU does not wait after the read: a
/// read-modify-write of the same line may follow at once. A processor that
/// executes out of order then has asked for the only copy before the read is
/// done, and both are served by one request; it is assumed where that was so the
/// last time.
#[inline(always)]
pub(crate) fn reach_to_read_once(engine: &Engine, address: usize, size: u8) -> Option<u64> {
    let own = reach_to_read(engine, address, size);
    if engine.costs.early_ownership > 0 {
        let cpu = engine.current();
        let index = engine.line_of(address);
        if cpu.read_to_modify.get() == cpu.just_read.get() {
            // Nothing has followed that read but this.
            cpu.read_to_modify.set(usize::MAX);
        }
        cpu.just_read.set(index);
    }
    own
}

/// Begins a read-modify-write of the running CPU: the present value of
/// memory is the one it reads. Returns the line, and whether it is done in
/// the core.
#[inline(always)]
pub(crate) fn reach_to_modify(engine: &Engine, address: usize, order: Ordering) -> (usize, bool) {
    let index = engine.line_of(address);
    let line = &engine.lines[index];
    engine.sync_for(line);
    let cpu = engine.current();
    if cpu.just_read.replace(usize::MAX) == index {
        cpu.read_to_modify.set(index);
    }
    if engine.costs.x86 || releases(order) {
        drain_all(engine);
    } else {
        drain_line(engine, index);
    }
    let core = engine.current().core.get();
    let now = engine.time.get();
    let mut near = true;
    if line.writable(core, now) || line.takes_again(engine.current.get(), core, now) {
        engine.hit(index);
        line.clean.set(false);
        await_sibling(engine, line);
    } else {
        engine.sync();
        let want = atomic(engine, line, core);
        near = want == Want::Locked;
        ahead::ask(engine, (index, releases(order)));
        miss(engine, index, want);
    }
    ahead::begin(engine, (index, releases(order)));
    engine.note(4);
    (index, near)
}

/// Waits until a locked operation of a sibling thread is over, which keeps the line in
/// their core: two of them on one line are done one after the other. What has begun before
/// the line leaves is done before it leaves.
fn await_sibling(engine: &Engine, line: &Line) {
    let until = line.locked.get();
    if until > engine.time.get() {
        line.lock_until(until + engine.costs.rmw);
        engine.time.set(until);
        engine.sync();
    }
}

/// Ends a read-modify-write, with the new value if there is one.
///
/// # Safety
/// The same conditions as for [`crate::store_buffer::write`].
#[inline(always)]
pub(crate) unsafe fn modified(
    engine: &Engine,
    (index, near): (usize, bool),
    address: usize,
    size: u8,
    new: Option<u64>,
) {
    if let Some(new) = new {
        // SAFETY: the caller's promise.
        unsafe { publish(engine, index, address, size, new, engine.time.get()) };
    }
    if near {
        let done = engine.time.get() + engine.costs.rmw;
        engine.lines[index].lock_until(done);
        engine.time.set(done);
    }
}

pub(crate) fn fence_full(engine: &Engine) {
    engine.sync();
    drain_all(engine);
    engine.time.set(engine.time.get() + engine.costs.rmw);
}
