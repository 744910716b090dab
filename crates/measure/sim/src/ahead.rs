//! Lines that a CPU asks for before a locked operation which precedes their use.
//!
//! A processor that executes out of order comes to the reads and stores behind a locked
//! operation while it still computes what comes before it; only when the operation itself is
//! under way, they wait for it. So their lines come no later than the operation's. Which lines
//! those are is what the CPU used the last time after such an operation on that line; where
//! that was nothing, because the lock was held, nothing is asked for. Only lines are fetched
//! here: the read itself is made in its turn, and finds what memory holds then.

use crate::coherence::request;
use crate::cpu::Phase;
use crate::engine::Engine;
use crate::followers::Operation;
use crate::requests::Want;

/// Asks for what followed the last such operation, whose line has to be fetched.
pub(crate) fn ask(engine: &Engine, operation: Operation) {
    let often = engine.costs.reads_ahead;
    if often == 0 {
        return;
    }
    let (cpu, now) = (engine.current(), engine.time.get());
    let mut asked = cpu.followers.asked.borrow_mut();
    asked.clear();
    if now <= cpu.followers.done.get() {
        // It begins directly after another locked operation.
        return;
    }
    cpu.followers.after(operation, |index, want| {
        let (line, core) = (&engine.lines[index], cpu.core.get());
        let here = match want {
            Want::Ahead => line.readable(core, now),
            _ => line.owned(core, now),
        };
        if !here && engine.rng.below(1024) < often {
            request(engine, index, engine.current.get(), want, now, None);
            asked.push((index, None));
        }
    });
}

/// Notes that a locked operation is done: what is used now follows it.
pub(crate) fn begin(engine: &Engine, operation: Operation) {
    if engine.costs.reads_ahead > 0 {
        let cycles = engine.costs.rmw + engine.costs.l1;
        let followers = &engine.current().followers;
        followers.begin(operation, engine.time.get(), cycles);
    }
}

/// Notes a store of the running CPU.
pub(crate) fn write(engine: &Engine, index: usize) {
    if engine.costs.reads_ahead > 0 {
        let followers = &engine.current().followers;
        followers.learn(index, Want::AheadToWrite, engine.time.get());
    }
}

/// Notes a read of the running CPU, and waits for its line if that is on its way. Returns
/// whether the line was, and is here.
pub(crate) fn read(engine: &Engine, index: usize) -> bool {
    let cpu = engine.current();
    let followers = &cpu.followers;
    followers.learn(index, Want::Ahead, engine.time.get());
    let place = (followers.asked.borrow().iter()).position(|(line, _)| *line == index);
    let Some(place) = place else {
        return false;
    };
    // It may have run ahead of the line.
    engine.sync();
    let (_, comes) = followers.asked.borrow_mut().swap_remove(place);
    let now = engine.time.get();
    match comes {
        Some(comes) if comes > now => {
            engine.time.set(comes);
            cpu.stalled.set(cpu.stalled.get() + (comes - now));
            engine.sync();
        }
        Some(_) => {}
        None => await_line(engine, index),
    }
    engine.lines[index].readable(cpu.core.get(), engine.time.get())
}

/// Waits for a line that has been asked for, and is not on its way yet.
fn await_line(engine: &Engine, index: usize) {
    let mut requests = engine.lines[index].requests.borrow_mut();
    let waits = requests.await_ahead(engine.current.get());
    drop(requests);
    if waits {
        engine.stall(Phase::Miss);
    }
}

/// Notes when a line comes that a CPU has asked for.
pub(crate) fn comes(engine: &Engine, index: usize, cpu: usize, done: u64) {
    let mut asked = engine.cpus[cpu].followers.asked.borrow_mut();
    if let Some(entry) = asked.iter_mut().find(|(line, _)| *line == index) {
        entry.1 = Some(done);
    }
}
