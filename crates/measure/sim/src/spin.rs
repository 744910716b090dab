//! Spinning: a CPU that reads a word until it has the awaited value.
//!
//! The first read is made by the lock's code. After that the CPU sleeps while
//! its copy of the line is valid: its reads would see the same value, so when
//! the line is invalidated the engine computes when the next read is due,
//! and sends its request. Reads are made, and the lock's `poll` closure is
//! called, without switching to the CPU's stack, which is resumed only when the
//! spin ends.

use crate::coherence::request;
use crate::cpu::{DONE, FOREVER, Phase, Step};
use crate::engine::Engine;
use crate::event::Kind;
use crate::own_stores::{drain_all, has_store_at};
use crate::requests::Want;
use std::panic::Location;

/// Spins on behalf of the running CPU, which has read the word once and
/// is to relax `relaxes` times.
///
/// # Safety
/// `step` may be called with `data` until this returns.
pub(crate) unsafe fn spin(
    engine: &Engine,
    word: (usize, u8),
    relaxes: u32,
    reads_left: u32,
    (step, data): (Step, *mut ()),
    place: Option<&'static Location<'static>>,
) {
    if has_store_at(engine, word.0, word.1) {
        // It would read its own store for ever.
        drain_all(engine);
    }
    let who = engine.current.get();
    let cpu = engine.current();
    cpu.place.set(place);
    cpu.word.set(word);
    let spin = &cpu.spin;
    spin.step.set(Some((step, data as usize)));
    spin.line.set(engine.line_of(word.0));
    spin.reads_left.set(reads_left);
    let now = engine.time.get();
    if engine.hypervisor.ple > 0 {
        pause_until_exit(engine, who, now, engine.hypervisor.ple);
    }
    let phase = relax_then_read(engine, who, now, relaxes);
    engine.suspend(phase);
    spin.ple.set(0);
    spin.step.set(None);
    cpu.place.set(None);
}

/// Sleeps, after a fruitless read, while the copy is valid.
pub(crate) fn relax_then_read(engine: &Engine, who: usize, now: u64, relaxes: u32) -> Phase {
    let cpu = &engine.cpus[who];
    let spin = &cpu.spin;
    let pause = if engine.costs.wfe > 0 && relaxes == 1 {
        1
    } else {
        u64::from(relaxes) * engine.costs.pause
    };
    let period = pause + engine.costs.l1;
    let next = now + pause.max(1);
    spin.next.set(next);
    spin.period.set(period);
    let line = spin.line.get();
    if !engine.lines[line].readable(cpu.core.get(), now) {
        poll_at(engine, who, next);
        return cpu.phase.get();
    }
    cpu.phase.set(Phase::Watching);
    watch(engine, line, who);
    let left = spin.reads_left.get();
    if left == FOREVER {
        cpu.event.set(0);
    } else {
        engine.schedule(who, next + u64::from(left - 1) * period);
    }
    Phase::Watching
}

/// Makes a CPU sleep until the line changes.
pub(crate) fn watch(engine: &Engine, index: usize, cpu: usize) {
    let line = &engine.lines[index];
    line.watchers.borrow_mut().push(cpu as u16);
    line.watched.set(true);
}

/// Removes one CPU from the list of those that watch a line.
pub(crate) fn unwatch(engine: &Engine, index: usize, cpu: usize) {
    let line = &engine.lines[index];
    let mut watchers = line.watchers.borrow_mut();
    watchers.retain(|&watcher| watcher as usize != cpu);
    line.watched.set(!watchers.is_empty());
}

/// Ends the sleep of the CPUs that watch a line, except those on core
/// `but`, whose copy is still valid.
pub(crate) fn wake_watchers(engine: &Engine, index: usize, now: u64, but: Option<usize>) {
    let line = &engine.lines[index];
    let mut watchers = line.watchers.borrow_mut();
    watchers.retain(|&cpu| {
        let stays = Some(engine.cpus[cpu as usize].core.get()) == but;
        if !stays {
            disturb(engine, index, cpu as usize, now);
        }
        stays
    });
    line.watched.set(!watchers.is_empty());
}

/// Handles a change or the loss of the line that a CPU watches.
pub(crate) fn disturb(engine: &Engine, line: usize, who: usize, now: u64) {
    let cpu = &engine.cpus[who];
    if cpu.phase.get() == Phase::Asleep {
        let (next, period) = (cpu.spin.next.get(), cpu.spin.period.get());
        stop_sleep(engine, who, Some(line));
        return engine.schedule(
            who,
            next + now.saturating_sub(next).div_ceil(period) * period,
        );
    }
    let spin = &cpu.spin;
    if engine.costs.wfe > 0 {
        // It sleeps on the line, and the loss wakes it.
        return poll_at(engine, who, now.max(spin.next.get()) + engine.costs.wfe);
    }
    let (next, period) = (spin.next.get(), spin.period.get());
    let missed = now.saturating_sub(next).div_ceil(period);
    spend(engine, who, missed);
    poll_at(engine, who, next + missed * period);
}

/// Makes a CPU in a spin read its word at `time`: requests the line then,
/// or checks whether its core's copy is still valid.
pub(crate) fn poll_at(engine: &Engine, who: usize, time: u64) {
    let cpu = &engine.cpus[who];
    let index = cpu.spin.line.get();
    if engine.lines[index].readable(cpu.core.get(), time) {
        cpu.phase.set(Phase::Polling);
        engine.schedule(who, time);
    } else {
        let turn = cpu.spin.turn.get().wrapping_add(1);
        cpu.spin.turn.set(turn);
        cpu.spin.asked.set(time);
        cpu.phase.set(Phase::SpinMiss);
        cpu.event.set(0);
        request(engine, index, who, Want::Shared, time, Some(turn));
    }
}

/// Returns whether a CPU in a spin is between two reads at `now`.
pub(crate) fn between_reads(engine: &Engine, who: usize, now: u64) -> bool {
    let cpu = &engine.cpus[who];
    match cpu.phase.get() {
        Phase::Watching | Phase::Polling | Phase::Asleep => true,
        Phase::SpinMiss => cpu.spin.asked.get() > now,
        _ => false,
    }
}

pub(crate) fn spend(engine: &Engine, who: usize, reads: u64) {
    let left = &engine.cpus[who].spin.reads_left;
    if left.get() != FOREVER {
        left.set(u64::from(left.get()).saturating_sub(reads).max(1) as u32);
    }
}

/// Lets a CPU in a spin check the value; returns whether the spin is over.
pub(crate) fn recheck(engine: &Engine, who: usize, now: u64) -> bool {
    let spin = &engine.cpus[who].spin;
    engine.current.set(who);
    engine.time.set(now);
    engine.note(1);
    let (step, data) = spin.step.get().expect("a CPU that spins has set it");
    // SAFETY: promised to `spin`, which has not returned.
    let relaxes = unsafe { step(data as *mut ()) };
    if relaxes == DONE {
        return true;
    }
    let left = spin.reads_left.get();
    if left != FOREVER {
        if left <= 1 {
            return true;
        }
        spin.reads_left.set(left - 1);
    }
    relax_then_read(engine, who, now, relaxes);
    false
}

/// Ends the sleep of a CPU because it is descheduled: it reads when
/// it runs again.
pub(crate) fn stop_watching(engine: &Engine, who: usize) {
    let cpu = &engine.cpus[who];
    match cpu.phase.get() {
        Phase::Watching => {
            unwatch(engine, cpu.spin.line.get(), who);
            cpu.phase.set(Phase::Polling);
        }
        Phase::Asleep => stop_sleep(engine, who, None),
        Phase::SpinMiss => {
            // Its request is void.
            cpu.spin.turn.set(cpu.spin.turn.get().wrapping_add(1));
            cpu.phase.set(Phase::Polling);
        }
        _ => {}
    }
    cpu.event.set(0);
}

/// Ends the sleep of a CPU that watches several lines, except on `but`.
pub(crate) fn stop_sleep(engine: &Engine, who: usize, but: Option<usize>) {
    let cpu = &engine.cpus[who];
    for line in cpu.watched.take() {
        if Some(line) != but {
            unwatch(engine, line, who);
        }
    }
    cpu.phase.set(Phase::Sync);
}

/// Schedules the exit of a CPU that pauses for `window` more cycles.
pub(crate) fn pause_until_exit(engine: &Engine, who: usize, now: u64, window: u64) {
    let spin = &engine.cpus[who].spin;
    spin.ple_window.set(window);
    spin.ple
        .set(engine.queue.push(now + window, Kind::Ple, who));
}
