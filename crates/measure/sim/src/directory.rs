//! The directory: which cores hold each line, and which gets it next.
//!
//! A line is exclusive to one core (MESI's M or E), or shared by some, with
//! or without a core that still owes memory the last write (MOESI's O). A
//! request travels to the directory for a part of the transfer time, waits
//! there until it is picked; a snoop travels to
//! the owner, who loses the line when it arrives; then the data travels. So an
//! owner may continue to hit its line for a while after it got it, whichever
//! other core wants it, and nearby requests arrive first. A line that no core
//! holds exclusively is granted by the directory itself: it knows when the
//! grant is complete, and the next snoop follows at once. Nothing here knows of
//! locks or of values: what was written is written by the CPU when its request
//! completes, and no other CPU can have the line before that.
//!
//! Where the machine has far atomics (Arm's LSE), a read-modify-write of a
//! line that another core has used is done at the line's home: the line is
//! taken from the core that has it and stays there.
//!
//! Where `directory.writes_first` says so, a write goes before the reads that
//! wait with it, so that a release is not held up by all the waiters. The reads
//! of CPUs that spin are answered here, one after the other as long as no
//! other event is due, without an event or a switch for each.

use crate::ahead;
use crate::coherence::{answers, arm, request, transfer_for, travel, travel_from, vary};
use crate::cpu::Phase;
use crate::distance::Distance;
use crate::engine::Engine;
use crate::event::Kind;
use crate::line::{Line, NOBODY};
use crate::machine::Arbitration;
use crate::requests::{Pick, Requests, Want};
use crate::scheduler::spin_read;
use crate::spin::wake_watchers;

/// Counts a transfer of a line; called for each grant.
pub(crate) fn count_transfer(
    engine: &Engine,
    line: usize,
    cpu: usize,
    want: Want,
    now: u64,
    transfer: u64,
) {
    if transfer > engine.costs.transfer[Distance::Core as usize] {
        engine.tally.transfers.set(engine.tally.transfers.get() + 1);
    }
    if let Some(trace) = &engine.trace {
        let line = engine.memory.describe_line(line);
        trace.transfer(&line, cpu, want, now, transfer);
    }
}

/// Requests a line on behalf of a CPU's running code, which continues when
/// the line has arrived. Must be called between `sync` and the access.
pub(crate) fn miss(engine: &Engine, index: usize, want: Want) {
    let cpu = engine.current();
    let asked = engine.time.get();
    let line = &engine.lines[index];
    if line.requests.borrow().is_empty() && line.free_at.get() <= asked {
        let core = cpu.core.get();
        let (transfer, extra) = transfer_for(engine, line, core, want);
        let farther = engine.places.as_ref().map_or(0, |places| places.most);
        if asked + transfer + ((transfer * engine.costs.spread) >> 10) + extra + farther + 1
            < engine.queue.horizon()
        {
            // No other event happens before it completes.
            let arrives = asked + travel_from(engine, index, core, transfer);
            let done = grant(engine, index, core, engine.current.get(), want, arrives);
            engine.time.set(done);
            cpu.stalled.set(cpu.stalled.get() + (done - asked));
            return;
        }
    }
    request(engine, index, engine.current.get(), want, asked, None);
    engine.stall(Phase::Miss);
}

/// Grants the line to `core`; returns when it arrives.
pub(crate) fn grant(
    engine: &Engine,
    index: usize,
    core: usize,
    cpu: usize,
    want: Want,
    now: u64,
) -> u64 {
    let line = &engine.lines[index];
    line.claimed.set(false);
    let (transfer, extra) = transfer_for(engine, line, core, want);
    let exclusive = line.exclusive.get();
    let mut rest = vary(engine, transfer - travel(engine, transfer));
    if let Some(places) = &engine.places {
        let owner = (exclusive != NOBODY).then_some(usize::from(exclusive));
        let farther = places.of_answer(&engine.memory, index, core, owner);
        rest = rest.saturating_add_signed(farther);
    }
    count_transfer(engine, index, cpu, want, now, transfer);
    if exclusive == core as u16 && want != Want::Far {
        // The core has it already (the store buffer of a sibling fetched
        // it).
        let done = (now + 1).max(line.ready.get());
        line.free_at.set(done);
        return done;
    }
    let migrates = want.is_read() && exclusive != NOBODY && migrates(engine, line);
    if want.is_read() && !migrates {
        let done = now + rest.max(1);
        if exclusive == NOBODY {
            let busy = match answers(engine, line) {
                Some(_) => rest.max(1),
                None => engine.costs.shared_read,
            };
            line.free_at.set(now + busy);
        } else {
            // The owner's copy goes to the reader and to the directory.
            line.exclusive.set(NOBODY);
            line.share(exclusive as usize);
            line.free_at.set(done.max(line.ready.get()));
        }
        line.share(core);
        debug_assert_eq!(line.check(), Ok(()), "line {index}");
        return done;
    }
    let done = now + (rest + extra).max(1);
    for word in &line.sharers {
        word.set(0);
    }
    line.copies.set(0);
    if want == Want::Far {
        return grant_far(engine, index, core, now, done);
    }
    line.at_home.set(false);
    line.far_streak.set(0);
    line.clean.set(migrates);
    line.exclusive.set(core as u16);
    line.owner.set(core as u16);
    line.ready.set(done);
    // The next request waits at the directory, whose snoop has yet to reach
    // the new owner: a part of a transfer after the old owner's answer, or
    // right after a grant that the directory itself has made.
    let mut snoop = vary(engine, (transfer * engine.costs.snoop_share) >> 10);
    if exclusive == NOBODY {
        snoop = snoop.min(engine.costs.shared_read);
    }
    let held = if want == Want::Locked {
        engine.costs.rmw
    } else {
        1
    };
    line.free_at.set(done + snoop.max(held));
    line.again.set((NOBODY, 0));
    line.generation.set(engine.l1_generation(core));
    debug_assert_eq!(line.check(), Ok(()), "line {index}");
    if line.watched() {
        wake_watchers(engine, index, now, Some(core));
    }
    done
}

/// Returns whether a read takes the only copy from the core that has it. A line that was
/// only read since it has come so is shared by its next reader, and so is one that a third core
/// waits to read: that a read takes the only copy was measured between two.
fn migrates(engine: &Engine, line: &Line) -> bool {
    let often = engine.costs.migrates;
    let of_two = !line.clean.get() && line.requests.borrow().reads.is_empty();
    often > 0 && of_two && engine.rng.below(1024) < often
}

/// Does a read-modify-write at the line's home, whose result is back at
/// `done`. The line is free for the next request when the operation is
/// complete.
pub(crate) fn grant_far(engine: &Engine, index: usize, core: usize, now: u64, done: u64) -> u64 {
    let line = &engine.lines[index];
    let owned = line.exclusive.get() != NOBODY;
    let same = line.at_home.get() && line.owner.get() == core as u16;
    line.far_streak.set(if same {
        line.far_streak.get().saturating_add(1)
    } else {
        1
    });
    line.exclusive.set(NOBODY);
    line.owner.set(core as u16);
    line.at_home.set(true);
    // If there is an owner, its data is fetched first.
    let start = if owned { (now + done) / 2 } else { now };
    line.free_at.set(start + engine.costs.far_rmw);
    debug_assert_eq!(line.check(), Ok(()), "line {index}");
    if line.watched() {
        wake_watchers(engine, index, now, None);
    }
    done.max(line.free_at.get())
}

/// Handles the event of a line.
pub(crate) fn line_free(engine: &Engine, index: usize, seq: u64, now: u64) {
    let line = &engine.lines[index];
    if line.event.get().1 != seq {
        return;
    }
    line.event.set((u64::MAX, 0));
    let mut now = now;
    loop {
        let next = serve(engine, index, line, now);
        if next == u64::MAX {
            return;
        }
        // No other event happens before: there is no need to queue it.
        if next >= engine.queue.horizon() {
            return arm(engine, index, next);
        }
        engine.tally.events.set(engine.tally.events.get() + 1);
        now = next;
    }
}

/// Grants a line to one request, if it is free; returns when to try
/// again.
pub(crate) fn serve(engine: &Engine, index: usize, line: &Line, now: u64) -> u64 {
    if line.free_at.get() > now {
        line.claim();
        return line.free_at.get();
    }
    let mut requests = line.requests.borrow_mut();
    requests.arrive(now);
    let Some(place) = arbitrate(engine, line, &mut requests, now) else {
        return requests.next().unwrap_or(u64::MAX);
    };
    let Some(request) = requests.take(place) else {
        return u64::MAX;
    };
    drop(requests);
    let (cpu, core) = (request.cpu(), usize::from(request.core()));
    match request.turn() {
        // The CPU that made it has been descheduled since.
        Some(turn) if engine.cpus[cpu].spin.turn.get() != turn => return now,
        // A sibling thread has fetched it meanwhile.
        Some(_) if line.readable(core, now) => {
            spin_read(engine, index, cpu, now + engine.costs.l1);
            return now;
        }
        Some(_) => {
            let done = grant(engine, index, core, cpu, request.want(), now);
            spin_read(engine, index, cpu, done);
        }
        None => {
            let done = grant(engine, index, core, cpu, request.want(), now);
            complete(engine, index, cpu, request.want(), done);
            if line.exclusive.get() == core as u16
                && !serve_siblings(engine, index, line, core, done)
                && request.want() == Want::Locked
            {
                offer_again(engine, line, cpu);
            }
        }
    }
    if line.requests.borrow().is_empty() {
        return u64::MAX;
    }
    line.free_at.get().max(now + 1)
}

/// Continues a CPU, or its store, whose line arrives at `done`.
fn complete(engine: &Engine, index: usize, cpu: usize, want: Want, done: u64) {
    match want {
        Want::Drain => {
            engine.cpus[cpu].stores.comes(index, done);
            engine.queue.push(done, Kind::Drain, cpu);
        }
        Want::Ahead | Want::AheadToWrite => ahead::comes(engine, index, cpu, done),
        _ => engine.schedule(cpu, done),
    }
}

/// Serves what waits on the same core, and returns whether anything did. The hardware
/// threads of a core share its cache, and so the one request that it has for a line: what
/// waits for a line that has come to the core is served before the line leaves it, each
/// once. `core.line_reuse` is how often what the core begins meanwhile is done too: then a
/// thread that has just acquired a lock releases it at once, and otherwise one rotation of
/// the line later.
fn serve_siblings(engine: &Engine, index: usize, line: &Line, core: usize, done: u64) -> bool {
    let mut done = done;
    for sibling in 1..engine.topology.threads_per_core {
        let request = line.requests.borrow_mut().take_write_of(core, done);
        let Some(request) = request else {
            return sibling > 1;
        };
        let reuse = engine.costs.line_reuse;
        if reuse < 1024 && !line.requests.borrow().is_empty() && engine.rng.below(1024) >= reuse {
            // What the core begins from now on waits for the line to return.
            line.claim();
        }
        done += engine.costs.rmw;
        complete(engine, index, request.cpu(), request.want(), done);
        line.free_at
            .set(line.free_at.get().max(done + engine.costs.rmw));
    }
    engine.topology.threads_per_core > 1
}

/// Lets a CPU whose locked operation a line has come for do one more, if that begins
/// directly after the first. `core.own_reuse` is how often the snoop comes late enough. A
/// read between the two, or work, lets the line go.
fn offer_again(engine: &Engine, line: &Line, cpu: usize) {
    let often = engine.costs.own_reuse;
    if often > 0 && engine.rng.below(1024) < often {
        let until = line.free_at.get() + 1;
        line.again.set((cpu as u16, until));
        line.free_at.set(until + 1);
    }
}

pub(crate) fn arbitrate(
    engine: &Engine,
    line: &Line,
    requests: &mut Requests,
    now: u64,
) -> Option<Pick> {
    let both = requests.reads.has_arrived(now) && requests.writes.has_arrived(now);
    let writes_only =
        both && engine.costs.writes_first > 0 && engine.rng.below(1024) < engine.costs.writes_first;
    let (reads, writes) = (&requests.reads, &requests.writes);
    match engine.costs.arbitration {
        Arbitration::Fifo => requests.first(now, writes_only),
        _ if reads.arrived(now) + writes.arrived(now) <= 1 => requests.first(now, false),
        Arbitration::Random if writes_only => Some((true, engine.rng.below(writes.arrived(now)))),
        Arbitration::Random => {
            let (reads, writes) = (reads.arrived(now), writes.arrived(now));
            let place = engine.rng.below(reads + writes);
            Some(match place.checked_sub(reads) {
                None => (false, place),
                Some(place) => (true, place),
            })
        }
        Arbitration::Nearest => {
            let owner = match line.exclusive.get() {
                NOBODY => line.owner.get(),
                owner => owner,
            };
            if owner == NOBODY {
                return requests.first(now, writes_only);
            }
            let owner = owner as usize;
            requests.begin_round(now);
            let writes_only = writes_only && requests.writes.has_arrived(requests.round);
            [
                engine.topology.cluster_range(owner),
                engine.topology.socket_range(owner),
            ]
            .iter()
            .find_map(|cores| requests.first_from(cores, writes_only))
            .or_else(|| requests.first(now, writes_only))
        }
    }
}
