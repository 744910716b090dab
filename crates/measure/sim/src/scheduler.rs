//! The scheduling of CPUs on hardware threads.
//!
//! With no more CPUs than hardware threads, each has its own permanently. Otherwise
//! the CPUs of this module are threads, which an operating system runs by its
//! `run_queues`, or virtual CPUs. A hypervisor shares hardware threads: first come, first served, a time slice each. A CPU that
//! has been pausing for long leaves the guest (pause-loop exiting) and gives
//! its thread to the first ready CPU, if that one has waited for long enough: a
//! fair scheduler does not immediately run a CPU that has just used up its
//! slice, even if another yields to it. If it has not, the CPU continues to
//! pause, and the time until its next exit doubles, as KVM's does. A CPU that
//! halts gives its thread up; one that is woken goes to the front of those that
//! are ready.
//!
//! A CPU is descheduled between accesses, never within one: at the earliest
//! when its present piece of work is done.

use crate::coherence::travel;
use crate::cpu::Phase;
use crate::distance::Distance;
use crate::engine::Engine;
use crate::event::Kind;
use crate::futex_queue::FutexQueue;
use crate::hypervisor::{Hardware, NOBODY};
use crate::own_stores::drain_all;
use crate::spin::{between_reads, pause_until_exit, poll_at, recheck, stop_watching, unwatch};
use locklab_locks::platform::Platform;

/// Puts the CPUs on hardware threads.
pub(crate) fn start(engine: &Engine) {
    let core = |hardware: &Hardware| hardware.id / engine.topology.threads_per_core;
    let mut used = vec![0; engine.topology.cores()];
    for hardware in &engine.hypervisor.hardware {
        used[core(hardware)] += 1;
    }
    if used.iter().all(|&threads| threads <= 1) {
        let travel = travel(engine, engine.costs.transfer[Distance::Cluster as usize]);
        let nearer = engine.places.as_ref().map_or(0, |places| places.least);
        for cpu in &engine.cpus {
            cpu.lookahead
                .set((travel / 2).min(travel.saturating_sub(nearer)));
        }
    }
    for who in 0..engine.cpus.len() {
        let cpu = &engine.cpus[who];
        if engine.costs.interrupt.0 > 0.0 && engine.costs.interrupt.1 > 0 {
            cpu.next_interrupt
                .set(engine.rng.exponential(engine.costs.interrupt.0));
        }
        if engine.costs.steal.0 > 0.0 && engine.costs.steal.1 > 0 {
            cpu.next_steal
                .set(engine.rng.exponential(engine.costs.steal.0));
        }
        if who < engine.hypervisor.hardware.len() {
            // They start in a random order, and far enough apart that a
            // queue forms in that order and not by distance: otherwise a
            // first-come lock would continue for ever in the order of the
            // CPUs' numbers, socket by socket.
            let window = 1000
                + 2 * engine.cpus.len() * engine.costs.transfer[Distance::Remote as usize] as usize;
            let now = engine.rng.below(window) as u64;
            if engine.hypervisor.fair.is_some() {
                continue;
            }
            schedule_in(engine, who, who, now);
            if engine.hypervisor.shared {
                // As in a long run, some slice is about to end.
                let left = engine.rng.below(engine.hypervisor.slice as usize) as u64;
                slice_ends_at(engine, who, now + left + 1);
            }
        } else if engine.hypervisor.fair.is_none() {
            engine.hypervisor.ready.borrow_mut().push_back(who);
        }
    }
    start_system(engine);
}

/// Puts the threads of an operating system on its hardware threads, as evenly as they go.
fn start_system(engine: &Engine) {
    let Some(queues) = &engine.hypervisor.fair else {
        return;
    };
    let limits = &engine.counts.limits;
    for who in 0..engine.cpus.len() {
        let place = queues.shortest();
        // The last is who starts the others.
        if limits.is_round && who + 1 < engine.cpus.len() {
            queues.start_after_others(place, who);
        }
        queues.add(place, who, 0);
    }
    let slice = engine.hypervisor.slice as usize;
    for place in 0..engine.hypervisor.hardware.len() {
        let window = engine.hypervisor.switch as usize + 1000;
        let now = engine.rng.below(window) as u64;
        if let Some(who) = queues.next(place, &engine.topology, 0) {
            if !limits.counts_all() {
                queues.begin_with(who, engine.rng.below(slice) as u64);
            }
            schedule_in(engine, who, place, now);
        }
    }
    let tick = engine.hypervisor.tick;
    engine.queue.push(tick, Kind::Tick, 0);
}

/// Handles the system's tick: CPUs without a thread look for one again.
pub(crate) fn ticks(engine: &Engine, now: u64) {
    if let Some(queues) = &engine.hypervisor.fair {
        let soon = now + engine.hypervisor.switch;
        for place in 0..engine.hypervisor.hardware.len() {
            if engine.hypervisor.is_idle(place)
                && let Some(next) = queues.next_at_tick(place, &engine.topology, soon)
            {
                schedule_in(engine, next, place, soon);
            }
        }
    }
    let tick = engine.hypervisor.tick;
    engine.queue.push(now + tick, Kind::Tick, 0);
}

pub(crate) fn schedule_in(engine: &Engine, who: usize, place: usize, now: u64) {
    let hardware = &engine.hypervisor.hardware[place];
    let cpu = &engine.cpus[who];
    hardware.running.set(who);
    cpu.hardware.set(place);
    cpu.core.set(hardware.id / engine.topology.threads_per_core);
    cpu.stores.moved();
    cpu.on.set(true);
    cpu.preempt.set(false);
    cpu.stolen
        .set(cpu.stolen.get() + now.saturating_sub(cpu.ready_since.get()));
    engine.schedule(who, now);
    if let Some(queues) = &engine.hypervisor.fair {
        queues.runs(place, who, now);
        slice_until(engine, place, now + queues.slice_left(place, now));
    } else if engine.hypervisor.shared {
        // Slices are not in step.
        let slice = engine.hypervisor.slice;
        let length = slice - slice / 8 + engine.rng.below((slice / 4).max(1) as usize) as u64;
        slice_ends_at(engine, place, now + length);
        if cpu.phase.get() == Phase::Polling && engine.hypervisor.ple > 0 {
            pause_until_exit(engine, who, now, engine.hypervisor.ple);
        }
    }
}

/// Gives a hardware thread to the first ready CPU.
pub(crate) fn next_in(engine: &Engine, place: usize, now: u64) {
    let next = match &engine.hypervisor.fair {
        Some(queues) => queues.next(place, &engine.topology, now),
        None => engine.hypervisor.ready.borrow_mut().pop_front(),
    };
    match next {
        Some(next) => schedule_in(engine, next, place, now),
        None => {
            let hardware = &engine.hypervisor.hardware[place];
            hardware.running.set(NOBODY);
            match engine.hypervisor.fair {
                Some(_) => hardware.no_slice(),
                None => {
                    let (due, seq) = hardware.slice_is(0, u64::MAX);
                    engine.queue.remove(due, seq);
                }
            }
        }
    }
}

/// Lets the present slice of a system's hardware thread end at `until`.
fn slice_until(engine: &Engine, place: usize, until: u64) {
    let push = || engine.queue.push(until, Kind::Slice, place);
    engine.hypervisor.hardware[place].slice_until(until, push);
}

/// Lets a hypervisor's slice end at `due`, and no other: vCPUs that halt give their hardware
/// thread up long before that, thousands of times a slice.
fn slice_ends_at(engine: &Engine, place: usize, due: u64) {
    let seq = engine.queue.push(due, Kind::Slice, place);
    let (due, seq) = engine.hypervisor.hardware[place].slice_is(seq, due);
    engine.queue.remove(due, seq);
}

/// Takes a running CPU off; it must be between accesses.
pub(crate) fn deschedule(engine: &Engine, who: usize, now: u64) {
    let cpu = &engine.cpus[who];
    stop_watching(engine, who);
    engine.set_busy(who, false);
    cpu.on.set(false);
    cpu.preempt.set(false);
    cpu.ready_since.set(now);
    match &engine.hypervisor.fair {
        Some(queues) => queues.leaves(cpu.hardware.get(), now, true),
        None => engine.hypervisor.ready.borrow_mut().push_back(who),
    }
    if let Some(trace) = &engine.trace {
        trace.descheduled(who, now);
    }
    next_in(engine, cpu.hardware.get(), now + engine.hypervisor.switch);
}

/// Handles the end of a hardware thread's slice.
pub(crate) fn slice_ends(engine: &Engine, place: usize, seq: u64, now: u64) {
    let hardware = &engine.hypervisor.hardware[place];
    if hardware.slice.get() != seq {
        return;
    }
    if let Some(queues) = &engine.hypervisor.fair {
        return match hardware.slice_came() {
            u64::MAX => {}
            until if until > now => slice_until(engine, place, until),
            _ if queues.must_leave(place, now, None) => {
                hardware.no_slice();
                preempt(engine, hardware.running.get(), now);
            }
            _ => slice_until(engine, place, now + queues.slice_left(place, now)),
        };
    }
    if !engine.hypervisor.ready.borrow().is_empty() {
        return preempt(engine, hardware.running.get(), now);
    }
    slice_ends_at(engine, place, now + engine.hypervisor.slice);
}

pub(crate) fn preempt(engine: &Engine, who: usize, now: u64) {
    let cpu = &engine.cpus[who];
    if cpu.in_system.get() {
        cpu.preempt_after.set(true);
    } else if between_reads(engine, who, now) {
        deschedule(engine, who, now);
    } else {
        cpu.preempt.set(true);
    }
}

/// Handles a CPU that has paused for as long as it may.
pub(crate) fn pause_loop_exit(engine: &Engine, who: usize, seq: u64, now: u64) {
    let cpu = &engine.cpus[who];
    if cpu.spin.ple.get() != seq || !cpu.on.get() {
        return;
    }
    let first = engine.hypervisor.ready.borrow().front().copied();
    let waited = |first: usize| now.saturating_sub(engine.cpus[first].ready_since.get());
    if first.is_some_and(|first| waited(first) >= engine.hypervisor.eligible) {
        cpu.spin.ple.set(0);
        preempt(engine, who, now);
    } else {
        let window = cpu.spin.ple_window.get().saturating_mul(2);
        pause_until_exit(engine, who, now, window);
    }
}

/// Lets the running CPU enter the system by a call of so many cycles, as far as its look at a
/// word or at who sleeps: what others do until then is seen. Returns the time of the call
/// after that: as long, because entry and exit are.
pub(crate) fn enter_call(engine: &Engine, call: u64) -> u64 {
    let before = call / 2;
    if before > 0 {
        engine.time.set(engine.time.get() + before);
        engine.sync();
    }
    call - before
}

/// Halts the running CPU until it is woken for `word`, after what is left of its call.
pub(crate) fn halt(engine: &Engine, word: usize, left: u64) {
    let who = engine.current.get();
    let cpu = engine.current();
    engine.hypervisor.halted.borrow_mut().push((who, word));
    cpu.word.set((word, 4));
    cpu.on.set(false);
    cpu.event.set(0);
    give_up(engine, left + engine.hypervisor.halt);
    engine.suspend(Phase::Halted);
}

/// Gives the hardware thread of the running CPU, which waits for something, to another
/// after so many cycles.
fn give_up(engine: &Engine, after: u64) {
    let (place, now) = (engine.current().hardware.get(), engine.time.get());
    if let Some(queues) = &engine.hypervisor.fair {
        queues.leaves(place, now, false);
    }
    if engine.hypervisor.shared {
        next_in(engine, place, now + after);
    }
}

/// Lets the running CPU wake those that have halted on `word` first, at most so many,
/// by one call. Returns how many those were.
pub(crate) fn kick<P: Platform>(engine: &Engine, word: usize, most: usize) -> usize {
    engine.sync();
    drain_all(engine);
    let hypervisor = &engine.hypervisor;
    let after = enter_call(engine, hypervisor.wake_nobody);
    let mut found = Vec::new();
    let mut find = || {
        let mut halted = hypervisor.halted.borrow_mut();
        halted.retain(|&(who, awaited)| {
            let wakes = awaited == word && found.len() < most;
            if wakes {
                found.push(who);
            }
            !wakes
        });
        found.len() as u32
    };
    match FutexQueue::<P>::of(engine, word) {
        Some(queue) if queue.is_empty() => {}
        Some(queue) => queue.wakes(engine, find),
        None => _ = find(),
    }
    let mut now = engine.time.get() + after + hypervisor.kick;
    for &who in &found {
        engine.cpus[who].waker.set(engine.current().hardware.get());
        now += hypervisor.woken;
        engine
            .queue
            .push(now + hypervisor.wake(&engine.rng), Kind::Wake, who);
    }
    engine.time.set(now);
    found.len()
}

/// Lets the running CPU, a thread, give its hardware thread to another that is ready,
/// if there is one, by a call of the system.
pub(crate) fn yield_to_others(engine: &Engine) {
    engine.sync();
    drain_all(engine);
    let now = engine.time.get() + engine.hypervisor.yields;
    engine.time.set(now);
    let another = match &engine.hypervisor.fair {
        Some(queues) => queues.yields(engine.current().hardware.get(), now),
        None => !engine.hypervisor.ready.borrow().is_empty(),
    };
    if another {
        engine.current().preempt.set(true);
        engine.schedule(engine.current.get(), now);
        engine.suspend(Phase::Sync);
    }
}

/// Lets the running CPU, a thread, sleep without its CPU for so many cycles.
pub(crate) fn sleep(engine: &Engine, cycles: u64) {
    engine.sync();
    drain_all(engine);
    let now = engine.time.get();
    engine
        .queue
        .push(now + cycles.max(1), Kind::Wake, engine.current.get());
    rest(engine, engine.hypervisor.halt);
}

/// Takes the running CPU off until an event wakes it; after so many cycles
/// another may run.
pub(crate) fn rest(engine: &Engine, halt: u64) {
    let cpu = engine.current();
    cpu.word.set((0, 0));
    cpu.on.set(false);
    cpu.event.set(0);
    cpu.waker.set(NOBODY);
    give_up(engine, halt);
    engine.suspend(Phase::Halted);
}

/// Makes a halted CPU ready.
pub(crate) fn woken(engine: &Engine, who: usize, now: u64) {
    let cpu = &engine.cpus[who];
    // It may have run ahead before it halted.
    let now = now.max(cpu.since.get());
    cpu.halted.set(cpu.halted.get() + now - cpu.since.get());
    cpu.phase.set(Phase::Sync);
    cpu.ready_since.set(now);
    if !engine.hypervisor.shared {
        cpu.on.set(true);
        return engine.schedule(who, now);
    }
    if let Some(queues) = &engine.hypervisor.fair {
        let waker = Some(cpu.waker.get()).filter(|&waker| waker != NOBODY);
        let idle = |place| engine.hypervisor.is_idle(place);
        let from = (cpu.hardware.get(), waker);
        let place = queues.place_of(who, from, &engine.topology, idle);
        queues.add(place, who, now);
        if idle(place) {
            next_in(engine, place, now);
        } else if queues.must_leave(place, now, Some(who)) {
            let running = engine.hypervisor.hardware[place].running.get();
            preempt(engine, running, now);
        }
        return;
    }
    let idle = |place: &usize| engine.hypervisor.is_idle(*place);
    let place = Some(cpu.hardware.get())
        .filter(idle)
        .or_else(|| (0..engine.hypervisor.hardware.len()).find(idle));
    match place {
        Some(place) => schedule_in(engine, who, place, now),
        None => engine.hypervisor.ready.borrow_mut().push_front(who),
    }
}

/// Removes a CPU whose code has returned.
pub(crate) fn gone(engine: &Engine, who: usize, now: u64) {
    let place = engine.cpus[who].hardware.get();
    engine.cpus[who].on.set(false);
    if let Some(queues) = &engine.hypervisor.fair {
        queues.leaves(place, now, false);
    }
    if engine.hypervisor.shared {
        next_in(engine, place, now);
    }
}

/// Lets a CPU in a spin read its word again. Returns whether its code is to
/// be resumed.
pub(crate) fn spin_poll(engine: &Engine, who: usize, now: u64) -> bool {
    let cpu = &engine.cpus[who];
    let index = cpu.spin.line.get();
    if cpu.phase.get() == Phase::Watching {
        // Patience has ended with the line unchanged.
        unwatch(engine, index, who);
        cpu.spin.reads_left.set(1);
        cpu.phase.set(Phase::Polling);
    }
    if cpu.preempt.get() {
        deschedule(engine, who, now);
        return false;
    }
    cpu.spin.asked.set(now);
    if engine.lines[index].readable(cpu.core.get(), now) {
        return recheck(engine, who, now + engine.costs.l1);
    }
    poll_at(engine, who, now);
    false
}

/// Delivers the line, with its present value, to a CPU in a spin,
/// whose read is complete at `done`.
pub(crate) fn spin_read(engine: &Engine, index: usize, who: usize, done: u64) {
    let cpu = &engine.cpus[who];
    debug_assert_eq!(cpu.phase.get(), Phase::SpinMiss);
    debug_assert_eq!(cpu.spin.line.get(), index);
    let asked = cpu.spin.asked.get();
    let done = done.max(asked + engine.costs.l1);
    cpu.stalled.set(cpu.stalled.get() + done - asked);
    if recheck(engine, who, done) {
        cpu.phase.set(Phase::Found);
        engine.schedule(who, done);
    } else if cpu.preempt.get() {
        deschedule(engine, who, done);
    }
}
