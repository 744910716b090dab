//! Sends requests for lines: what each costs, and how far it travels.
//!
//! The line is granted in `directory`, when the request has arrived.

use crate::distance::Distance;
use crate::engine::Engine;
use crate::event::Kind;
use crate::line::{Line, NOBODY};
use crate::requests::{Request, Want};

/// Returns the distance of the nearest other copy of a line.
#[inline]
pub(crate) fn nearest(engine: &Engine, line: &Line, core: usize) -> Option<Distance> {
    let topology = &engine.topology;
    let exclusive = line.exclusive.get();
    if exclusive != NOBODY {
        return Some(topology.distance(core, exclusive as usize));
    }
    let mine = u32::from(line.readable(core, u64::MAX));
    if line.copies.get() == mine {
        None
    } else if line.has_other_in(topology.cluster_range(core), core) {
        Some(Distance::Cluster)
    } else if line.has_other_in(topology.socket_range(core), core) {
        Some(Distance::Socket)
    } else {
        Some(Distance::Remote)
    }
}

/// Returns the distance of the farthest other copy of a line.
pub(crate) fn farthest(engine: &Engine, line: &Line, core: usize) -> Option<Distance> {
    let topology = &engine.topology;
    let exclusive = line.exclusive.get();
    if exclusive != NOBODY {
        return Some(topology.distance(core, exclusive as usize));
    }
    let total = line.copies.get();
    if total == u32::from(line.readable(core, u64::MAX)) {
        None
    } else if line.copies_in(topology.cluster_range(core)) == total {
        Some(Distance::Cluster)
    } else if line.copies_in(topology.socket_range(core)) == total {
        Some(Distance::Socket)
    } else {
        Some(Distance::Remote)
    }
}

/// Returns whether another core of this one's socket has a copy of a line that no core
/// has exclusively: what most reads of waiters find.
#[inline]
pub(crate) fn is_in_socket(engine: &Engine, line: &Line, core: usize) -> bool {
    let copies = line.copies.get();
    if copies == 0 {
        return false;
    }
    if engine.topology.sockets > 1 {
        return line.has_other_in(engine.topology.socket_range(core), core);
    }
    let mine = line.sharers[core / 64].get() >> (core % 64) & 1;
    copies > mine as u32
}

/// Returns the core that answers every read of a line which it has written and others
/// share: a directory that knows no more than the owner sends each read there, one
/// after the other.
#[inline]
pub(crate) fn answers(engine: &Engine, line: &Line) -> Option<usize> {
    let owner = line.owner.get();
    let only = engine.costs.broadcast && line.exclusive.get() == NOBODY && owner != NOBODY;
    (only && line.readable(usize::from(owner), u64::MAX)).then_some(usize::from(owner))
}

#[inline]
pub(crate) fn transfer(engine: &Engine, distance: Option<Distance>) -> u64 {
    match distance {
        Some(distance) => engine.costs.transfer[distance as usize],
        None => engine.costs.memory,
    }
}

/// Returns the time that `want` of `core` would take if granted at once.
pub(crate) fn transfer_for(engine: &Engine, line: &Line, core: usize, want: Want) -> (u64, u64) {
    if want.is_read()
        && let Some(owner) = answers(engine, line)
    {
        return (
            transfer(engine, Some(engine.topology.distance(core, owner))),
            0,
        );
    }
    if want.is_read() && engine.costs.llc_is_nearest && is_in_socket(engine, line, core) {
        return (engine.costs.llc, 0);
    }
    let unowned = line.exclusive.get() == NOBODY;
    // No core has it, and it is not in memory: the home has it.
    let home = |distance| match distance {
        // A machine without a figure for that treats it as a neighbour's
        // copy.
        None if line.at_home.get() => {
            let neighbour = engine.costs.transfer[Distance::Cluster as usize];
            if engine.costs.llc == u64::MAX {
                neighbour
            } else {
                engine.costs.llc
            }
        }
        _ => transfer(engine, distance),
    };
    if want.is_read() {
        // Read from the last-level cache of the socket that has it.
        let nearest = nearest(engine, line, core);
        return match nearest {
            Some(Distance::Cluster | Distance::Socket) if unowned => {
                (engine.costs.llc.min(transfer(engine, nearest)), 0)
            }
            _ => (home(nearest), 0),
        };
    }
    let farthest = farthest(engine, line, core);
    if !unowned {
        return (transfer(engine, farthest), 0);
    }
    let mine = u32::from(line.readable(core, u64::MAX));
    let others = u64::from(line.copies.get() - mine);
    if others == 0 && mine == 1 {
        // An upgrade goes to the directory, which is as far as a neighbour.
        return (transfer(engine, Some(Distance::Cluster)), 0);
    }
    let farthest = match engine.costs.broadcast && engine.topology.sockets > 1 {
        true => Some(Distance::Remote),
        false => farthest,
    };
    (
        home(farthest),
        others.saturating_sub(1) * engine.costs.invalidate,
    )
}

/// Returns the kind of request for a read-modify-write of `core`, which does not
/// own the line: it is done at the line's home if another core has used it
/// last.
pub(crate) fn atomic(engine: &Engine, line: &Line, core: usize) -> Want {
    /// Far atomics in a row until a core takes the line for itself.
    const NEAR_AGAIN: u8 = 3;
    if !engine.costs.far_atomics {
        return Want::Locked;
    }
    let owner = line.owner.get();
    let own = owner == core as u16 || (owner == NOBODY && line.copies.get() == 0);
    if !own || (line.at_home.get() && line.far_streak.get() < NEAR_AGAIN) {
        Want::Far
    } else {
        Want::Locked
    }
}

/// Returns the time that a request of `core` would take, without invalidations.
pub(crate) fn distant(engine: &Engine, line: &Line, core: usize, want: Want) -> u64 {
    transfer_for(engine, line, core, want).0
}

/// Returns the part of a transfer until the owner loses the line, if it is free.
#[inline]
pub(crate) fn travel(engine: &Engine, transfer: u64) -> u64 {
    (transfer * engine.costs.travel_share) >> 10
}

/// Returns the part of a transfer until the request of a core has reached the home of a line.
#[inline]
pub(crate) fn travel_from(engine: &Engine, line: usize, core: usize, transfer: u64) -> u64 {
    let travel = travel(engine, transfer);
    match &engine.places {
        Some(places) => travel.saturating_add_signed(places.of_request(&engine.memory, line, core)),
        None => travel,
    }
}

/// Returns a time that is varied by the spread.
#[inline]
pub(crate) fn vary(engine: &Engine, cycles: u64) -> u64 {
    let spread = (cycles * engine.costs.spread) >> 10;
    if spread == 0 {
        return cycles;
    }
    cycles - spread + engine.rng.below(2 * spread as usize + 1) as u64
}

/// Sends a request of a CPU at time `asks`. In a spin it
/// has a `turn`.
pub(crate) fn request(
    engine: &Engine,
    index: usize,
    cpu: usize,
    want: Want,
    asks: u64,
    turn: Option<u32>,
) {
    let line = &engine.lines[index];
    let core = engine.cpus[cpu].core.get();
    let arrives = asks + travel_from(engine, index, core, distant(engine, line, core, want));
    let request = Request::new(arrives, cpu, core, want, turn);
    line.requests.borrow_mut().push(request);
    arm(engine, index, arrives.max(line.free_at.get()));
}

/// Ensures that the line is served no later than `time`.
pub(crate) fn arm(engine: &Engine, index: usize, time: u64) {
    let line = &engine.lines[index];
    if line.event.get().0 > time {
        let seq = engine.queue.push(time, Kind::Line, index);
        line.event.set((time, seq));
    }
}
