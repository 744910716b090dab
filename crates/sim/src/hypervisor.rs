//! The scheduling of CPUs on hardware threads.
//!
//! On bare metal, and in a virtual machine with no more virtual CPUs than
//! hardware threads, each has its own permanently. Otherwise a hypervisor
//! shares the threads: first come, first served, a time slice each. A CPU that
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

use crate::engine::{Engine, Phase};
use crate::event::Kind;
use crate::machine::Machine;
use crate::topology::Distance;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

const NOBODY: usize = usize::MAX;

struct Hardware {
    id: usize,
    running: Cell<usize>,
    /// The number of the event that ends the present slice.
    slice: Cell<u64>,
}

/// The state of the scheduler.
pub(crate) struct Hypervisor {
    hardware: Box<[Hardware]>,
    /// Whether there are more CPUs than hardware threads.
    shared: bool,
    ready: RefCell<VecDeque<usize>>,
    /// Halted CPUs and the word each waits for, in the order of halting.
    halted: RefCell<Vec<(usize, usize)>>,
    slice: u64,
    switch: u64,
    /// Cycles of pausing before the first exit; 0 if there is none.
    pub(crate) ple: u64,
    /// The time that a CPU must have waited before another yields to it.
    eligible: u64,
    halt: u64,
    kick: u64,
    wake: u64,
}

impl Hypervisor {
    /// Makes the hypervisor of this many CPUs on these hardware threads.
    pub(crate) fn new(machine: &Machine, cpus: usize, hardware: &[usize]) -> Self {
        let us = |key: &str| (machine.get(key) * 1e3 * machine.get("core.clock_ghz")) as u64;
        let shared = cpus > hardware.len();
        Self {
            hardware: hardware
                .iter()
                .map(|&id| Hardware {
                    id,
                    running: Cell::new(NOBODY),
                    slice: Cell::new(0),
                })
                .collect(),
            shared,
            ready: RefCell::new(VecDeque::new()),
            halted: RefCell::new(Vec::new()),
            slice: us("vm.slice_us").max(1),
            switch: us("vm.switch_us"),
            ple: if shared {
                machine.get("vm.ple_window_cycles") as u64
            } else {
                0
            },
            eligible: us("vm.ple_wait_us"),
            halt: us("vm.halt_us"),
            kick: us("vm.kick_us"),
            wake: us("vm.wake_us"),
        }
    }

    /// The longest that a ready CPU waits if every other uses its slice.
    pub(crate) fn round(&self, cpus: usize) -> u64 {
        if self.shared {
            (self.slice + self.switch) * (cpus.div_ceil(self.hardware.len().max(1)) as u64 + 1)
        } else {
            0
        }
    }
}

impl Engine {
    /// Puts the CPUs on hardware threads.
    pub(crate) fn start(&self) {
        let core = |hardware: &Hardware| hardware.id / self.topology.threads_per_core;
        let mut used = vec![0; self.topology.cores()];
        for hardware in &self.hypervisor.hardware {
            used[core(hardware)] += 1;
        }
        if used.iter().all(|&threads| threads <= 1) {
            let nearest = self.costs.transfer[Distance::Cluster as usize];
            for cpu in &self.cpus {
                cpu.lookahead.set(self.travel(nearest) / 2);
            }
        }
        for who in 0..self.cpus.len() {
            let cpu = &self.cpus[who];
            if self.costs.interrupt.0 > 0.0 && self.costs.interrupt.1 > 0 {
                cpu.next_interrupt
                    .set(self.rng.exponential(self.costs.interrupt.0));
            }
            if self.costs.steal.0 > 0.0 && self.costs.steal.1 > 0 {
                cpu.next_steal.set(self.rng.exponential(self.costs.steal.0));
            }
            if who < self.hypervisor.hardware.len() {
                // They start in a random order, and far enough apart that a
                // queue forms in that order and not by distance: otherwise a
                // first-come lock would continue for ever in the order of the
                // CPUs' numbers, socket by socket.
                let window = 1000
                    + 2 * self.cpus.len() * self.costs.transfer[Distance::Remote as usize] as usize;
                let now = self.rng.below(window) as u64;
                self.schedule_in(who, who, now);
                if self.hypervisor.shared {
                    // As in a long run, some slice is about to end.
                    let left = self.rng.below(self.hypervisor.slice as usize) as u64;
                    let hardware = &self.hypervisor.hardware[who];
                    hardware
                        .slice
                        .set(self.queue.push(now + left + 1, Kind::Slice, who));
                }
            } else {
                self.hypervisor.ready.borrow_mut().push_back(who);
            }
        }
    }

    fn schedule_in(&self, who: usize, place: usize, now: u64) {
        let hardware = &self.hypervisor.hardware[place];
        let cpu = &self.cpus[who];
        hardware.running.set(who);
        cpu.hardware.set(place);
        cpu.core.set(hardware.id / self.topology.threads_per_core);
        cpu.stores.moved();
        cpu.on.set(true);
        cpu.preempt.set(false);
        cpu.stolen
            .set(cpu.stolen.get() + now.saturating_sub(cpu.ready_since.get()));
        self.schedule(who, now);
        if self.hypervisor.shared {
            // Slices are not in step.
            let slice = self.hypervisor.slice;
            let length = slice - slice / 8 + self.rng.below((slice / 4).max(1) as usize) as u64;
            hardware
                .slice
                .set(self.queue.push(now + length, Kind::Slice, place));
            if cpu.phase.get() == Phase::Polling && self.hypervisor.ple > 0 {
                self.pause_until_exit(who, now, self.hypervisor.ple);
            }
        }
    }

    /// Gives a hardware thread to the first ready CPU.
    fn next_in(&self, place: usize, now: u64) {
        let next = self.hypervisor.ready.borrow_mut().pop_front();
        match next {
            Some(next) => self.schedule_in(next, place, now),
            None => {
                let hardware = &self.hypervisor.hardware[place];
                hardware.running.set(NOBODY);
                hardware.slice.set(0);
            }
        }
    }

    /// Takes a running CPU off; it must be between accesses.
    pub(crate) fn deschedule(&self, who: usize, now: u64) {
        let cpu = &self.cpus[who];
        self.stop_watching(who);
        self.set_busy(who, false);
        cpu.on.set(false);
        cpu.preempt.set(false);
        cpu.ready_since.set(now);
        self.hypervisor.ready.borrow_mut().push_back(who);
        if let Some(trace) = &self.trace {
            trace.descheduled(who, now);
        }
        self.next_in(cpu.hardware.get(), now + self.hypervisor.switch);
    }

    /// Handles the end of a hardware thread's slice.
    pub(crate) fn slice_ends(&self, place: usize, seq: u64, now: u64) {
        let hardware = &self.hypervisor.hardware[place];
        if hardware.slice.get() != seq {
            return;
        }
        if self.hypervisor.ready.borrow().is_empty() {
            hardware.slice.set(
                self.queue
                    .push(now + self.hypervisor.slice, Kind::Slice, place),
            );
            return;
        }
        self.preempt(hardware.running.get(), now);
    }

    fn preempt(&self, who: usize, now: u64) {
        if self.between_reads(who, now) {
            self.deschedule(who, now);
        } else {
            self.cpus[who].preempt.set(true);
        }
    }

    /// Handles a CPU that has paused for as long as it may.
    pub(crate) fn pause_loop_exit(&self, who: usize, seq: u64, now: u64) {
        let cpu = &self.cpus[who];
        if cpu.spin.ple.get() != seq || !cpu.on.get() {
            return;
        }
        let first = self.hypervisor.ready.borrow().front().copied();
        let waited = |first: usize| now.saturating_sub(self.cpus[first].ready_since.get());
        if first.is_some_and(|first| waited(first) >= self.hypervisor.eligible) {
            cpu.spin.ple.set(0);
            self.preempt(who, now);
        } else {
            let window = cpu.spin.ple_window.get().saturating_mul(2);
            self.pause_until_exit(who, now, window);
        }
    }

    /// Schedules the exit of a CPU that pauses for `window` more cycles.
    pub(crate) fn pause_until_exit(&self, who: usize, now: u64, window: u64) {
        let spin = &self.cpus[who].spin;
        spin.ple_window.set(window);
        spin.ple.set(self.queue.push(now + window, Kind::Ple, who));
    }

    /// Halts the running CPU until it is woken for `word`.
    pub(crate) fn halt(&self, word: usize) {
        let who = self.current.get();
        let cpu = self.current();
        self.hypervisor.halted.borrow_mut().push((who, word));
        cpu.word.set((word, 4));
        cpu.on.set(false);
        cpu.event.set(0);
        let now = self.time.get();
        if self.hypervisor.shared {
            self.next_in(cpu.hardware.get(), now + self.hypervisor.halt);
        }
        self.suspend(Phase::Halted);
    }

    /// Lets the running CPU wake one that has halted on `word`.
    pub(crate) fn kick(&self, word: usize) {
        self.sync();
        self.drain_all();
        let now = self.time.get() + self.hypervisor.kick;
        let mut halted = self.hypervisor.halted.borrow_mut();
        if let Some(place) = halted.iter().position(|&(_, awaited)| awaited == word) {
            let (who, _) = halted.remove(place);
            self.queue.push(now + self.hypervisor.wake, Kind::Wake, who);
        }
        self.time.set(now);
    }

    /// Makes a halted CPU ready.
    pub(crate) fn woken(&self, who: usize, now: u64) {
        let cpu = &self.cpus[who];
        // It may have run ahead before it halted.
        let now = now.max(cpu.since.get());
        cpu.phase.set(Phase::Sync);
        cpu.ready_since.set(now);
        if !self.hypervisor.shared {
            cpu.on.set(true);
            return self.schedule(who, now);
        }
        let idle = |place: &usize| self.hypervisor.hardware[*place].running.get() == NOBODY;
        let place = Some(cpu.hardware.get())
            .filter(idle)
            .or_else(|| (0..self.hypervisor.hardware.len()).find(idle));
        match place {
            Some(place) => self.schedule_in(who, place, now),
            None => self.hypervisor.ready.borrow_mut().push_front(who),
        }
    }

    /// Removes a CPU whose code has returned.
    pub(crate) fn gone(&self, who: usize, now: u64) {
        self.cpus[who].on.set(false);
        if self.hypervisor.shared {
            self.next_in(self.cpus[who].hardware.get(), now);
        }
    }
}
