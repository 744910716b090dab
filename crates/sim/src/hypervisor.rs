//! The state of the scheduler of CPUs on hardware threads: see `scheduler`.
//!
//! Its CPUs are those of a virtual machine, or the threads of a program under an
//! operating system: both are run on too few hardware threads by slices, and
//! sleep until another wakes them. They differ in what that costs, and in that no
//! thread leaves its CPU because it pauses.

use crate::machine::Machine;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// No CPU.
pub(crate) const NOBODY: usize = usize::MAX;

/// A hardware thread.
pub(crate) struct Hardware {
    pub(crate) id: usize,
    pub(crate) running: Cell<usize>,
    /// The number of the event that ends the present slice.
    pub(crate) slice: Cell<u64>,
}

/// The state of the scheduler.
pub(crate) struct Hypervisor {
    pub(crate) hardware: Box<[Hardware]>,
    /// Whether there are more CPUs than hardware threads.
    pub(crate) shared: bool,
    pub(crate) ready: RefCell<VecDeque<usize>>,
    /// Halted CPUs and the word each waits for, in the order of halting.
    pub(crate) halted: RefCell<Vec<(usize, usize)>>,
    pub(crate) slice: u64,
    pub(crate) switch: u64,
    /// Cycles of pausing before the first exit; 0 if there is none.
    pub(crate) ple: u64,
    /// The time that a CPU must have waited before another yields to it.
    pub(crate) eligible: u64,
    /// Before a CPU that would halt looks whether it must.
    pub(crate) call: u64,
    pub(crate) halt: u64,
    pub(crate) kick: u64,
    /// A kick for which nobody waits.
    pub(crate) fruitless: u64,
    pub(crate) wake: u64,
}

impl Hypervisor {
    /// Makes the hypervisor of this many CPUs on these hardware threads.
    pub(crate) fn new(machine: &Machine, cpus: usize, hardware: &[usize]) -> Self {
        let us = |key: &str| cycles(machine, key);
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
            call: 0,
            halt: us("vm.halt_us"),
            kick: us("vm.kick_us"),
            fruitless: us("vm.kick_us"),
            wake: us("vm.wake_us"),
        }
    }

    /// Makes the scheduler of an operating system that runs this many threads on
    /// these hardware threads.
    pub(crate) fn of_system(machine: &Machine, threads: usize, hardware: &[usize]) -> Self {
        let us = |key: &str| cycles(machine, key);
        Self {
            slice: us("scheduler.slice_us").max(1),
            switch: us("scheduler.switch_us"),
            ple: 0,
            call: us("scheduler.call_us"),
            halt: us("scheduler.sleep_us"),
            kick: us("scheduler.wake_call_us"),
            fruitless: us("scheduler.call_us"),
            wake: us("scheduler.wake_us"),
            ..Self::new(machine, threads, hardware)
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

/// A figure in microseconds as cycles.
fn cycles(machine: &Machine, key: &str) -> u64 {
    (machine.get(key) * 1e3 * machine.get("core.clock_ghz")) as u64
}
