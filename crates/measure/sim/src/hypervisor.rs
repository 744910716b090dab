//! The state of the scheduler of CPUs on hardware threads: see `scheduler`.
//!
//! Its CPUs are those of a virtual machine, or threads under an operating system:
//! both are run on too few hardware threads by slices, and sleep until another wakes
//! them. They differ in what that costs, in who is next (a system has `run_queues`),
//! and in that no thread leaves its CPU because it pauses.

use crate::machine::{BETWEEN_TENTHS, FigureKey, Machine};
use crate::rng::Rng;
use crate::run_queues::RunQueues;
use crate::topology::Topology;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// No CPU.
pub(crate) const NOBODY: usize = usize::MAX;

/// Sets how often a CPU without a thread looks for one that waits elsewhere: Linux's tick
/// with `CONFIG_HZ=1000`, the default of kernels for desktops (of Ubuntu's since 24.10).
const TICK_US: f64 = 1000.0;
/// The time for which the cache of a CPU is thought to be warm for a thread, which nobody else
/// takes meanwhile: `sysctl_sched_migration_cost` in `kernel/sched/fair.c`.
const MIGRATION_US: f64 = 500.0;

/// A hardware thread.
pub(crate) struct Hardware {
    pub(crate) id: usize,
    pub(crate) running: Cell<usize>,
    /// The number of the event that ends the present slice.
    pub(crate) slice: Cell<u64>,
    /// The time at which a system's slice ends, however long before that its event is due.
    until: Cell<u64>,
    /// The time at which the event of a slice is due.
    armed: Cell<u64>,
}

impl Hardware {
    fn new(id: usize) -> Self {
        Self {
            id,
            running: Cell::new(NOBODY),
            slice: Cell::new(0),
            until: Cell::new(u64::MAX),
            armed: Cell::new(u64::MAX),
        }
    }

    /// Lets a system's slice end at `until`. Threads that sleep give their CPU up long before
    /// that, so an event that is due earlier stays and is moved when it comes: otherwise
    /// the queue would hold thousands that mean nothing.
    pub(crate) fn slice_until(&self, until: u64, push: impl FnOnce() -> u64) {
        self.until.set(until);
        if until < self.armed.get() {
            self.armed.set(until);
            self.slice.set(push());
        }
    }

    /// Takes note that the event of a hypervisor's slice has this number and is due then.
    /// Returns that of the slice before, by its time and number, which means nothing now.
    pub(crate) fn slice_is(&self, seq: u64, due: u64) -> (u64, u64) {
        (self.armed.replace(due), self.slice.replace(seq))
    }

    /// Takes note that nothing runs, so that no slice ends.
    pub(crate) fn no_slice(&self) {
        self.until.set(u64::MAX);
    }

    /// Takes note that the event of a system's slice has come. Returns when the slice ends.
    pub(crate) fn slice_came(&self) -> u64 {
        self.armed.set(u64::MAX);
        self.until.get()
    }
}

/// The state of the scheduler.
pub(crate) struct Hypervisor {
    pub(crate) hardware: Box<[Hardware]>,
    /// Says whether there are more CPUs than hardware threads.
    pub(crate) shared: bool,
    /// The queues of an operating system that shares its hardware threads.
    pub(crate) fair: Option<RunQueues>,
    /// Says how often hardware threads without a CPU look for one, if they are a
    /// system's.
    pub(crate) tick: u64,
    /// A hypervisor's CPUs that are ready.
    pub(crate) ready: RefCell<VecDeque<usize>>,
    /// Halted CPUs and the word each waits for, in the order of halting.
    pub(crate) halted: RefCell<Vec<(usize, usize)>>,
    pub(crate) slice: u64,
    pub(crate) switch: u64,
    /// Cycles of pausing before the first exit; 0 if there is none.
    pub(crate) ple: u64,
    /// The time that a CPU must have waited before another yields to it.
    pub(crate) eligible: u64,
    /// The time of a call that waits for nothing, beside its accesses to the system's memory.
    pub(crate) call: u64,
    /// The time of a call that wakes nobody: it looks whether anybody sleeps, and takes no
    /// lock of the system for that (`futex_hb_waiters_pending` in `kernel/futex/waitwake.c`).
    pub(crate) wake_nobody: u64,
    /// The time of a call that gives the CPU to another, where there is no other.
    pub(crate) yields: u64,
    pub(crate) halt: u64,
    /// The time of a kick beside that of a call, whoever waits.
    pub(crate) kick: u64,
    /// The time that each CPU adds to the kick that wakes it.
    pub(crate) woken: u64,
    /// The median, from the end of a kick until the one who halted runs.
    wake: u64,
    /// The factor by which the slowest tenth of these differs from the quickest.
    wake_spread: f64,
    /// Says whether that is the time of an idle hardware thread: without one, who is
    /// woken is ready at once.
    wakes_the_idle: bool,
}

impl Hypervisor {
    /// Makes the hypervisor of this many CPUs on these hardware threads.
    pub(crate) fn new(machine: &Machine, cpus: usize, hardware: &[usize]) -> Self {
        let us = |key: FigureKey| cycles(machine, key);
        let shared = cpus > hardware.len();
        Self {
            hardware: hardware.iter().map(|&id| Hardware::new(id)).collect(),
            shared,
            fair: None,
            tick: 0,
            ready: RefCell::new(VecDeque::new()),
            halted: RefCell::new(Vec::new()),
            slice: us(FigureKey::VmSliceUs).max(1),
            switch: us(FigureKey::VmSwitchUs),
            ple: if shared {
                machine.get(FigureKey::VmPleWindowCycles) as u64
            } else {
                0
            },
            eligible: us(FigureKey::VmPleWaitUs),
            call: 0,
            wake_nobody: 0,
            yields: 0,
            halt: us(FigureKey::VmHaltUs),
            kick: us(FigureKey::VmKickUs),
            woken: 0,
            wake: us(FigureKey::VmWakeUs),
            wake_spread: 1.0,
            wakes_the_idle: false,
        }
    }

    /// Makes the scheduler of an operating system that runs this many threads on
    /// these hardware threads.
    pub(crate) fn of_system(machine: &Machine, threads: usize, hardware: &[usize]) -> Self {
        let us = |key: FigureKey| cycles(machine, key);
        let slice = us(FigureKey::SchedulerSliceUs).max(1);
        let time = |us: f64| (us * 1e3 * machine.get(FigureKey::CoreClockGhz)) as u64;
        let warm = time(MIGRATION_US);
        let small = (1024.0 / machine.get(FigureKey::CoreSmallSpeed)) as u64;
        let (latency, tick) = (us(FigureKey::SchedulerLatencyUs), time(TICK_US));
        let times = [slice, warm, small, latency, tick];
        let [rmw, l1] =
            [FigureKey::CoreRmwCycles, FigureKey::CoreL1Cycles].map(|key| machine.get(key) as u64);
        let queues = || RunQueues::new(threads, hardware, &Topology::new(machine), times);
        Self {
            fair: (threads > hardware.len()).then(queues),
            tick,
            slice,
            switch: us(FigureKey::SchedulerSwitchUs),
            ple: 0,
            // The rest is two counts, a lock and its release, which are simulated.
            call: us(FigureKey::SchedulerCallUs).saturating_sub(3 * rmw + 2 * l1),
            wake_nobody: us(FigureKey::SchedulerWakeNobodyUs),
            yields: us(FigureKey::SchedulerYieldUs),
            halt: us(FigureKey::SchedulerSleepUs),
            kick: 0,
            woken: us(FigureKey::SchedulerWakeCallUs)
                .saturating_sub(us(FigureKey::SchedulerWakeNobodyUs)),
            wake: us(FigureKey::SchedulerWakeUs),
            wake_spread: machine.get(FigureKey::SchedulerWakeSpread),
            wakes_the_idle: true,
            ..Self::new(machine, threads, hardware)
        }
    }

    /// Returns the same where the first of all that are ready runs next, on whatever CPU is
    /// free: no thread then waits while a CPU has none.
    pub(crate) fn without_queues(self) -> Self {
        Self { fair: None, ..self }
    }

    /// Returns the time from the end of a kick until the one who halted is ready. It
    /// differs from wake-up to wake-up: if all took as long, threads that are woken one
    /// after the other would keep a step that on hardware they soon lose.
    pub(crate) fn wake(&self, rng: &Rng) -> u64 {
        let idle = (0..self.hardware.len()).any(|place| self.is_idle(place));
        if self.wakes_the_idle && self.shared && !idle {
            return 0;
        }
        if self.wake_spread <= 1.0 {
            return self.wake;
        }
        (self.wake as f64 * self.wake_spread.powf((rng.unit() - 0.5) / BETWEEN_TENTHS)) as u64
    }

    /// Returns whether nothing runs on this one.
    pub(crate) fn is_idle(&self, place: usize) -> bool {
        self.hardware[place].running.get() == NOBODY
    }

    /// Returns the longest that a ready CPU waits if every other uses its slice.
    pub(crate) fn round(&self, cpus: usize) -> u64 {
        if self.shared {
            (self.slice + self.switch) * (cpus.div_ceil(self.hardware.len().max(1)) as u64 + 1)
        } else {
            0
        }
    }
}

/// Returns a figure in microseconds as cycles.
fn cycles(machine: &Machine, key: FigureKey) -> u64 {
    (machine.get(key) * 1e3 * machine.get(FigureKey::CoreClockGhz)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_in_ten_wake_ups_take_so_many_times_as_long_as_one_in_ten() {
        let machine = Machine::builtin("epyc-7763-2s").unwrap();
        let machine = machine.with(FigureKey::SchedulerWakeSpread, 3.0).unwrap();
        let system = Hypervisor::of_system(&machine, 2, &[0, 1]);
        let rng = Rng::new(1);
        let mut wakes: Vec<u64> = (0..10_001).map(|_| system.wake(&rng)).collect();
        wakes.sort_unstable();
        let [tenth, median, nine_tenths] = [1000, 5000, 9000].map(|place| wakes[place] as f64);
        let us = machine.get(FigureKey::CoreClockGhz) * 1e3;
        assert!(
            (median / us - machine.get(FigureKey::SchedulerWakeUs)).abs() < 0.1,
            "{median}"
        );
        assert!(
            (nine_tenths / tenth - 3.0).abs() < 0.2,
            "{tenth} {nine_tenths}"
        );
    }

    #[test]
    fn wake_ups_have_the_mean_that_was_recorded() {
        for spread in [1.0, 3.0, 12.0] {
            let machine = Machine::builtin("epyc-7763-2s").unwrap();
            let machine = machine.with_wakes(20.0, spread).unwrap();
            let system = Hypervisor::of_system(&machine, 2, &[0, 1]);
            let rng = Rng::new(1);
            let mean = (0..20_000).map(|_| system.wake(&rng) as f64).sum::<f64>() / 20_000.0;
            let us = mean / (machine.get(FigureKey::CoreClockGhz) * 1e3);
            assert!((us - 20.0).abs() < 0.4, "{us} with {spread}");
        }
    }

    #[test]
    fn where_no_cpu_is_idle_a_woken_thread_is_ready_at_once() {
        let machine = Machine::builtin("epyc-7763-2s").unwrap();
        let system = Hypervisor::of_system(&machine, 4, &[0, 1]);
        let rng = Rng::new(1);
        assert!(system.wake(&rng) > 0, "both are idle");
        for hardware in &system.hardware {
            hardware.running.set(3);
        }
        assert_eq!(system.wake(&rng), 0);
        let virtual_machine = Hypervisor::new(&machine, 4, &[0, 1]);
        for hardware in &virtual_machine.hardware {
            hardware.running.set(3);
        }
        assert!(virtual_machine.wake(&rng) > 0);
    }

    #[test]
    fn the_event_of_a_slice_stays_until_it_is_due_and_moves_then() {
        let hardware = Hardware::new(0);
        let pushed = RefCell::new(Vec::new());
        let until = |at: u64| {
            hardware.slice_until(at, || {
                pushed.borrow_mut().push(at);
                at
            });
        };
        for at in [100, 150, 170] {
            until(at);
        }
        assert_eq!(*pushed.borrow(), [100], "threads came and went meanwhile");
        assert_eq!(hardware.slice_came(), 170);
        until(170);
        until(120);
        assert_eq!(*pushed.borrow(), [100, 170, 120], "an earlier end counts");
        assert_eq!(hardware.slice.get(), 120);
        hardware.no_slice();
        assert_eq!(hardware.slice_came(), u64::MAX);
    }

    #[test]
    fn without_a_spread_all_take_as_long() {
        let machine = Machine::builtin("epyc-7763-2s").unwrap();
        let machine = machine.with(FigureKey::SchedulerWakeSpread, 1.0).unwrap();
        let system = Hypervisor::of_system(&machine, 2, &[0, 1]);
        let rng = Rng::new(1);
        assert_eq!(system.wake(&rng), system.wake(&rng));
    }
}
