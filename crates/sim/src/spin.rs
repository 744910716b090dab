//! Spinning: a CPU that reads a word until it has the awaited value.
//!
//! The first read is made by the lock's code. After that the CPU sleeps while
//! its copy of the line is valid: its reads would see the same value, so when
//! the line is invalidated the engine computes when the next read is due,
//! and sends its request. Reads are made, and the lock's `poll` closure is
//! called, without switching to the CPU's stack, which is resumed only when the
//! spin ends.

use crate::coherence::Want;
use crate::engine::{Engine, Phase};
use std::cell::Cell;
use std::panic::Location;

/// What [`Step`] returns when the spin is over.
pub(crate) const DONE: u32 = u32::MAX;
/// The value for unlimited patience.
pub(crate) const FOREVER: u32 = u32::MAX;

/// Reads the word, calls the lock's closure, and returns [`DONE`] or how many
/// relaxes come before the next read.
pub(crate) type Step = unsafe fn(*mut ()) -> u32;

/// The state of a CPU's spin.
#[derive(Default)]
pub(crate) struct Spin {
    step: Cell<Option<(Step, usize)>>,
    line: Cell<usize>,
    next: Cell<u64>,
    period: Cell<u64>,
    reads_left: Cell<u32>,
    asked: Cell<u64>,
    /// The number of its latest request.
    pub(crate) turn: Cell<u32>,
    /// The number of the event of the next pause-loop exit.
    pub(crate) ple: Cell<u64>,
    /// The window of that exit.
    pub(crate) ple_window: Cell<u64>,
}

impl Spin {
    /// A sleeper's loop begins a round at `next`, and again each `period`.
    pub(crate) fn pace(&self, next: u64, period: u64) {
        self.next.set(next);
        self.period.set(period);
    }
}

impl Engine {
    /// Spins on behalf of the running CPU, which has read the word once and
    /// is to relax `relaxes` times.
    ///
    /// # Safety
    /// `step` may be called with `data` until this returns.
    pub(crate) unsafe fn spin(
        &self,
        word: (usize, u8),
        relaxes: u32,
        reads_left: u32,
        (step, data): (Step, *mut ()),
        place: Option<&'static Location<'static>>,
    ) {
        if self.has_store_at(word.0, word.1) {
            // It would read its own store for ever.
            self.drain_all();
        }
        let who = self.current.get();
        let cpu = self.current();
        cpu.place.set(place);
        cpu.word.set(word);
        let spin = &cpu.spin;
        spin.step.set(Some((step, data as usize)));
        spin.line.set(self.line_of(word.0));
        spin.reads_left.set(reads_left);
        let now = self.time.get();
        if self.hypervisor.ple > 0 {
            self.pause_until_exit(who, now, self.hypervisor.ple);
        }
        let phase = self.relax_then_read(who, now, relaxes);
        self.suspend(phase);
        spin.ple.set(0);
        spin.step.set(None);
        cpu.place.set(None);
    }

    /// After a fruitless read, sleeps while the copy is valid.
    fn relax_then_read(&self, who: usize, now: u64, relaxes: u32) -> Phase {
        let cpu = &self.cpus[who];
        let spin = &cpu.spin;
        let pause = if self.costs.wfe > 0 && relaxes == 1 {
            1
        } else {
            u64::from(relaxes) * self.costs.pause
        };
        let period = pause + self.costs.l1;
        let next = now + pause.max(1);
        spin.next.set(next);
        spin.period.set(period);
        let line = spin.line.get();
        if !self.lines[line].readable(cpu.core.get(), now) {
            self.poll_at(who, next);
            return cpu.phase.get();
        }
        cpu.phase.set(Phase::Watching);
        self.watch(line, who);
        let left = spin.reads_left.get();
        if left == FOREVER {
            cpu.event.set(0);
        } else {
            self.schedule(who, next + u64::from(left - 1) * period);
        }
        Phase::Watching
    }

    /// Handles a change or the loss of the line that a CPU watches.
    pub(crate) fn disturb(&self, line: usize, who: usize, now: u64) {
        let cpu = &self.cpus[who];
        if cpu.phase.get() == Phase::Asleep {
            let (next, period) = (cpu.spin.next.get(), cpu.spin.period.get());
            self.stop_sleep(who, Some(line));
            return self.schedule(
                who,
                next + now.saturating_sub(next).div_ceil(period) * period,
            );
        }
        let spin = &cpu.spin;
        if self.costs.wfe > 0 {
            // It sleeps on the line, and the loss wakes it.
            return self.poll_at(who, now.max(spin.next.get()) + self.costs.wfe);
        }
        let (next, period) = (spin.next.get(), spin.period.get());
        let missed = now.saturating_sub(next).div_ceil(period);
        self.spend(who, missed);
        self.poll_at(who, next + missed * period);
    }

    /// Makes a CPU in a spin read its word at `time`: requests the line then,
    /// or checks whether its core's copy is still valid.
    fn poll_at(&self, who: usize, time: u64) {
        let cpu = &self.cpus[who];
        let index = cpu.spin.line.get();
        if self.lines[index].readable(cpu.core.get(), time) {
            cpu.phase.set(Phase::Polling);
            self.schedule(who, time);
        } else {
            let turn = cpu.spin.turn.get().wrapping_add(1);
            cpu.spin.turn.set(turn);
            cpu.spin.asked.set(time);
            cpu.phase.set(Phase::SpinMiss);
            cpu.event.set(0);
            self.request(index, who, Want::Shared, time, Some(turn));
        }
    }

    /// Whether a CPU in a spin is between two reads at `now`.
    pub(crate) fn between_reads(&self, who: usize, now: u64) -> bool {
        let cpu = &self.cpus[who];
        match cpu.phase.get() {
            Phase::Watching | Phase::Polling | Phase::Asleep => true,
            Phase::SpinMiss => cpu.spin.asked.get() > now,
            _ => false,
        }
    }

    fn spend(&self, who: usize, reads: u64) {
        let left = &self.cpus[who].spin.reads_left;
        if left.get() != FOREVER {
            left.set(u64::from(left.get()).saturating_sub(reads).max(1) as u32);
        }
    }

    /// Lets a CPU in a spin read its word again. Returns whether its code is to
    /// be resumed.
    pub(crate) fn spin_poll(&self, who: usize, now: u64) -> bool {
        let cpu = &self.cpus[who];
        let index = cpu.spin.line.get();
        if cpu.phase.get() == Phase::Watching {
            // Patience has ended with the line unchanged.
            self.unwatch(index, who);
            cpu.spin.reads_left.set(1);
            cpu.phase.set(Phase::Polling);
        }
        if cpu.preempt.get() {
            self.deschedule(who, now);
            return false;
        }
        cpu.spin.asked.set(now);
        if self.lines[index].readable(cpu.core.get(), now) {
            return self.look(who, now + self.costs.l1);
        }
        self.poll_at(who, now);
        false
    }

    /// Delivers the line, with its present value, to a CPU in a spin,
    /// whose read is complete at `done`.
    pub(crate) fn spin_read(&self, index: usize, who: usize, done: u64) {
        let cpu = &self.cpus[who];
        debug_assert_eq!(cpu.phase.get(), Phase::SpinMiss);
        debug_assert_eq!(cpu.spin.line.get(), index);
        let asked = cpu.spin.asked.get();
        let done = done.max(asked + self.costs.l1);
        cpu.stalled.set(cpu.stalled.get() + done - asked);
        if self.look(who, done) {
            cpu.phase.set(Phase::Found);
            self.schedule(who, done);
        } else if cpu.preempt.get() {
            self.deschedule(who, done);
        }
    }

    /// Lets a CPU in a spin check the value; returns whether the spin is over.
    fn look(&self, who: usize, now: u64) -> bool {
        let spin = &self.cpus[who].spin;
        self.current.set(who);
        self.time.set(now);
        self.note(1);
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
        self.relax_then_read(who, now, relaxes);
        false
    }

    /// Ends the sleep of a CPU because it is descheduled: it reads when
    /// it runs again.
    pub(crate) fn stop_watching(&self, who: usize) {
        let cpu = &self.cpus[who];
        match cpu.phase.get() {
            Phase::Watching => {
                self.unwatch(cpu.spin.line.get(), who);
                cpu.phase.set(Phase::Polling);
            }
            Phase::Asleep => self.stop_sleep(who, None),
            Phase::SpinMiss => {
                // Its request is void.
                cpu.spin.turn.set(cpu.spin.turn.get().wrapping_add(1));
                cpu.phase.set(Phase::Polling);
            }
            _ => {}
        }
        cpu.event.set(0);
    }
}
