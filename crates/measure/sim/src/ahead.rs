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
use crate::drain::releases;
use crate::engine::Engine;
use crate::requests::Want;
use locklab_locks::platform::Ordering;
use std::cell::{Cell, RefCell};

/// Number of locked operations, by line, of which a CPU remembers what followed.
const OPERATIONS: usize = 8;
/// The most lines that are asked for at once, as many as matter to a critical section.
const LINES: usize = 4;
/// Cycles after which a read is no longer within reach: about as many instructions as a
/// processor looks ahead.
const REACH: u64 = 100;

/// What one CPU has read after its locked operations, and what is on its way.
pub(crate) struct Ahead {
    follows: [RefCell<Followers>; OPERATIONS],
    /// The line of the last locked operation, and until when a read counts as near it.
    last: Cell<(usize, Ordering, u64)>,
    /// The time when that operation was done.
    done: Cell<u64>,
    /// Lines that have been asked for, and the time when each comes, once that is known.
    asked: RefCell<Vec<(usize, Option<u64>)>>,
}

/// The lines that were used after an operation on a line, and what for.
struct Followers {
    /// The line and the ordering, which tells an acquisition from a release.
    operation: (usize, Ordering),
    lines: Vec<(usize, Want)>,
}

impl Ahead {
    pub(crate) fn new() -> Self {
        let none = || Followers {
            operation: (usize::MAX, Ordering::Relaxed),
            lines: Vec::new(),
        };
        Self {
            follows: std::array::from_fn(|_| RefCell::new(none())),
            last: Cell::new((0, Ordering::Relaxed, 0)),
            done: Cell::new(0),
            asked: RefCell::new(Vec::new()),
        }
    }
}

/// Returns where the followers of an operation are remembered.
fn place(line: usize, order: Ordering) -> usize {
    (line * 2 + usize::from(releases(order))) % OPERATIONS
}

/// Asks for what followed the last operation on a line, which has to be fetched.
pub(crate) fn ask(engine: &Engine, index: usize, order: Ordering) {
    let often = engine.costs.reads_ahead;
    if often == 0 {
        return;
    }
    let (cpu, now) = (engine.current(), engine.time.get());
    let follows = cpu.ahead.follows[place(index, order)].borrow();
    let mut asked = cpu.ahead.asked.borrow_mut();
    asked.clear();
    if follows.operation != (index, order) || now <= cpu.ahead.done.get() {
        // Another one, or one that begins directly after a locked operation.
        return;
    }
    for &(line, want) in &follows.lines {
        let (to, core) = (&engine.lines[line], cpu.core.get());
        let here = match want {
            Want::Ahead => to.readable(core, now),
            _ => to.owned(core, now),
        };
        if !here && engine.rng.below(1024) < often {
            request(engine, line, engine.current.get(), want, now, None);
            asked.push((line, None));
        }
    }
}

/// Notes that a locked operation on a line is done: what is read now follows it.
pub(crate) fn begin(engine: &Engine, index: usize, order: Ordering) {
    if engine.costs.reads_ahead == 0 {
        return;
    }
    let ahead = &engine.current().ahead;
    ahead.last.set((index, order, engine.time.get() + REACH));
    let done = engine.time.get() + engine.costs.rmw + engine.costs.l1;
    ahead.done.set(done);
    let mut follows = ahead.follows[place(index, order)].borrow_mut();
    follows.operation = (index, order);
    follows.lines.clear();
}

/// Notes a read of the running CPU, and waits for its line if that is on its way. Returns
/// whether it was.
pub(crate) fn read(engine: &Engine, index: usize) -> bool {
    learn(engine, index, Want::Ahead);
    let cpu = engine.current();
    let place = (cpu.ahead.asked.borrow().iter()).position(|(line, _)| *line == index);
    let Some(place) = place else {
        return false;
    };
    // It may have run ahead of the line.
    engine.sync();
    let (_, comes) = cpu.ahead.asked.borrow_mut().swap_remove(place);
    let now = engine.time.get();
    match comes {
        Some(comes) if comes > now => {
            engine.time.set(comes);
            cpu.stalled.set(cpu.stalled.get() + (comes - now));
            engine.sync();
        }
        Some(_) => {}
        None => await_line(engine, index, now),
    }
    engine.lines[index].readable(cpu.core.get(), engine.time.get())
}

/// Notes a store of the running CPU.
pub(crate) fn write(engine: &Engine, index: usize) {
    if engine.costs.reads_ahead > 0 {
        learn(engine, index, Want::AheadToWrite);
    }
}

fn learn(engine: &Engine, index: usize, want: Want) {
    let ahead = &engine.current().ahead;
    let ((line, order, until), now) = (ahead.last.get(), engine.time.get());
    if until == 0 {
        return;
    }
    if now > until {
        return ahead.last.set((0, order, 0));
    }
    ahead.last.set((line, order, now + REACH));
    if line == index {
        return;
    }
    let mut follows = ahead.follows[place(line, order)].borrow_mut();
    let known = follows.lines.iter().position(|(line, _)| *line == index);
    match known {
        Some(at) if want == Want::AheadToWrite => follows.lines[at].1 = want,
        None if follows.lines.len() < LINES => follows.lines.push((index, want)),
        _ => {}
    }
}

/// Waits for a line that has been asked for, and is not on its way yet.
fn await_line(engine: &Engine, index: usize, now: u64) {
    let waits = engine.lines[index]
        .requests
        .borrow_mut()
        .is_awaited(engine.current.get());
    if waits {
        engine.suspend(Phase::Miss);
        let cpu = engine.current();
        cpu.stalled
            .set(cpu.stalled.get() + (engine.time.get() - now));
    }
}

/// Notes when a line comes that a CPU has asked for.
pub(crate) fn comes(engine: &Engine, index: usize, cpu: usize, done: u64) {
    let mut asked = engine.cpus[cpu].ahead.asked.borrow_mut();
    if let Some(entry) = asked.iter_mut().find(|(line, _)| *line == index) {
        entry.1 = Some(done);
    }
}
