//! The state of the scheduler of CPUs on hardware threads: see `scheduler`.

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
    pub(crate) halt: u64,
    pub(crate) kick: u64,
    pub(crate) wake: u64,
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
