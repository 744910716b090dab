//! The loop that wakes simulated CPUs in the order of simulated time.

use crate::cpu::Phase;
use crate::directory::line_free;
use crate::drain::drained;
use crate::engine::Engine;
use crate::event::{Event, Kind};
use crate::scheduler::{
    deschedule, gone, pause_loop_exit, slice_ends, spin_poll, start, ticks, woken,
};
use crate::stack::ColouredStack;
use crate::watchdog::Watchdog;
use corosensei::{Coroutine, CoroutineResult};

/// Runs coroutines, one a CPU, until all return, one stops the engine, or
/// it fails.
pub(crate) fn run(engine: &Engine, coroutines: &mut [Coroutine<(), (), (), ColouredStack>]) {
    engine.enter(|| {
        start(engine);
        let mut watchdog = Watchdog::new(engine);
        engine.queue.push(watchdog.interval(), Kind::Watchdog, 0);
        let mut alive = coroutines.len();
        while alive > 0 && !engine.stopped.get() {
            let Some(event) = engine.queue.pop() else {
                break;
            };
            engine.tally.events.set(engine.tally.events.get() + 1);
            if event.kind == Kind::Watchdog {
                match watchdog.check(engine, event.time) {
                    None => {
                        engine
                            .queue
                            .push(event.time + watchdog.interval(), Kind::Watchdog, 0);
                    }
                    Some(error) => engine.fail(error),
                }
            } else if happens(engine, event) {
                let cpu = event.target;
                engine.current.set(cpu);
                engine.set_busy(cpu, true);
                if let CoroutineResult::Return(()) = coroutines[cpu].resume(()) {
                    engine.cpus[cpu].phase.set(Phase::Done);
                    engine.set_busy(cpu, false);
                    gone(engine, cpu, engine.time.get());
                    alive -= 1;
                }
            }
        }
    });
}

/// Processes an event; returns whether its CPU's code is to be resumed,
/// with [`Engine::time`] set.
#[inline]
pub(crate) fn happens(engine: &Engine, event: Event) -> bool {
    let Event {
        time,
        seq,
        kind,
        target,
    } = event;
    match kind {
        Kind::Cpu => {
            let cpu = &engine.cpus[target];
            if cpu.event.get() != seq {
                return false;
            }
            match cpu.phase.get() {
                Phase::Sync if cpu.preempt.get() => {
                    deschedule(engine, target, time);
                    false
                }
                Phase::Polling | Phase::Watching => spin_poll(engine, target, time),
                _ => {
                    engine.time.set(time);
                    true
                }
            }
        }
        Kind::Line => {
            line_free(engine, target, seq, time);
            false
        }
        Kind::Drain => {
            drained(engine, target, time);
            false
        }
        Kind::Slice => {
            slice_ends(engine, target, seq, time);
            false
        }
        Kind::Ple => {
            pause_loop_exit(engine, target, seq, time);
            false
        }
        Kind::Wake => {
            woken(engine, target, time);
            false
        }
        Kind::Tick => {
            ticks(engine, time);
            false
        }
        Kind::Watchdog => false,
    }
}
