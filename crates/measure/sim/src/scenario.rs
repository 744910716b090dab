//! The description of one simulation, and what comes back.

use crate::error::{SimError, refused};
use crate::machine::{FigureKey, Machine};
use crate::outcome::Outcome;
use crate::topology::{Placement, Topology};
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// The most threads of a simulation.
pub const MOST_THREADS: usize = 1024;

/// The condition that ends a simulation; the warm-up precedes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// It ends after this many acquisitions by all threads together.
    Acquisitions(u64),
    /// It ends after this much simulated time, in ms.
    Milliseconds(f64),
    /// It ends after this much simulated time, in ms, in which CPUs that threads share have
    /// several time slices. Where waiters sleep, a slice seldom ends, because CPUs are given
    /// up before: there it ends after a quarter, a half or all of that time, when half the
    /// width of the rate's 95 % interval is this fraction of it.
    Slices {
        /// The time, in ms.
        ms: f64,
        /// The half-width that is enough, such as 0.04.
        half_width: f64,
    },
    /// It ends when half the width of the 95 % interval of the rate is this fraction of
    /// it, by batch means; the warm-up ends when the rate no longer drifts.
    /// Each of the two takes at most `most` acquisitions;
    /// [`Outcome::steady`] and [`Outcome::half_width`] show what was reached.
    Precise {
        /// The requested half-width, such as 0.01.
        half_width: f64,
        /// Acquisitions after which it ends however wide the interval is.
        most: u64,
    },
    /// It ends when each thread has done this many operations, without a warm-up, and
    /// the rate is that of the kernel benchmark of report 3: all operations
    /// by the mean of the times that the threads took. A thread that is done
    /// stops, and the others continue without it.
    Each(u64),
    /// It ends as [`Stop::Each`] does, and is one round of a program whose threads were
    /// started one after the other and sleep at a barrier. Another one lets them go, and sees
    /// that all have come to a second barrier: all operations by the time between.
    Round(u64),
}

/// The description of a simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The machine, with every assumed figure as it is to be used.
    pub machine: Machine,
    /// The name of the lock.
    pub lock: String,
    /// The work of its users.
    pub workload: Workload,
    /// Number of threads: each on a CPU of its own as long as there are as many; more
    /// share them under an operating system. In a virtual machine each has a virtual CPU.
    pub threads: usize,
    /// Hardware threads that are used, or none for as many as there are.
    pub hardware_threads: Option<usize>,
    /// The order in which CPUs are used.
    pub placement: Placement,
    /// The seed of all random choices.
    pub seed: u64,
    /// The condition that ends it.
    pub stop: Stop,
    /// Says whether [`Simulation::trace`] is recorded.
    pub trace: bool,
}

impl Stop {
    /// Returns enough time slices where virtual CPUs, or threads, share hardware threads.
    pub fn slices(machine: &Machine) -> Self {
        const SLICES: f64 = 4.0;
        /// Less than what seeds and variants of a machine differ by.
        const ENOUGH: f64 = 0.04;
        let ms = |slice: FigureKey| SLICES * machine.get(slice) / 1e3;
        match machine.get(FigureKey::VmVcpus) > 0.0 {
            true => Self::Milliseconds(ms(FigureKey::VmSliceUs)),
            false => Self::Slices {
                ms: ms(FigureKey::SchedulerSliceUs),
                half_width: ENOUGH,
            },
        }
    }
}

impl Scenario {
    /// Returns the default number of acquisitions for this many threads: enough for
    /// each to acquire a hundred times.
    pub fn acquisitions(threads: usize) -> u64 {
        (100 * threads as u64).max(10_000)
    }

    /// Returns a scenario with default settings: compact placement, seed 1, as many
    /// acquisitions as [`Scenario::acquisitions`] gives.
    pub fn new(machine: Machine, lock: &str, workload: Workload, threads: usize) -> Self {
        Self {
            machine,
            lock: lock.to_owned(),
            workload,
            threads,
            hardware_threads: None,
            placement: Placement::Compact,
            seed: 1,
            stop: Stop::Acquisitions(Self::acquisitions(threads)),
            trace: false,
        }
    }

    /// Returns whether there are more threads than hardware threads in use.
    pub fn is_oversubscribed(&self) -> bool {
        let there = self.machine.hardware_threads();
        self.threads > self.hardware_threads.unwrap_or(there)
    }

    /// Returns whether its threads start on CPUs of several sockets.
    pub fn spans_sockets(&self) -> bool {
        let topology = Topology::new(&self.machine);
        let order = topology.order(self.placement, self.seed);
        let socket = |hardware: &usize| topology.socket(hardware / topology.threads_per_core);
        let mut sockets = order.iter().take(self.threads).map(socket);
        let first = sockets.next();
        sockets.any(|socket| Some(socket) != first)
    }

    /// Returns the number of hardware threads in use, or why it cannot be run.
    pub(crate) fn check(&self) -> Result<usize, SimError> {
        let machine = &self.machine;
        let there = machine.hardware_threads();
        let hardware = self.hardware_threads.unwrap_or(there);
        let virtual_machine = machine.get(FigureKey::VmVcpus) > 0.0;
        let fault = |what: String| Err(refused(what));
        if self.threads == 0 {
            return fault("zero threads take no lock; give at least one".to_owned());
        }
        if hardware == 0 || hardware > there {
            return fault(format!(
                "{hardware} physical CPUs were asked for, but {} has {there}",
                machine.name
            ));
        }
        if virtual_machine && self.threads > machine.cpus() {
            return fault(format!(
                "{} threads on the {} virtual CPUs of {}: a system inside a virtual machine is \
                 not simulated, so each thread has a virtual CPU; raise vm.vcpus",
                self.threads,
                machine.cpus(),
                machine.name,
            ));
        }
        if self.threads > MOST_THREADS {
            return fault(format!(
                "{} threads cannot be simulated; give at most {MOST_THREADS}",
                self.threads
            ));
        }
        if let Some(what) = self.workload.fault() {
            return fault(what);
        }
        match self.stop {
            Stop::Acquisitions(0) => {
                fault("zero acquisitions were asked for; at least one is needed".to_owned())
            }
            Stop::Round(_) if virtual_machine => fault(
                "a round behind a barrier needs an operating system's barrier, and one inside a virtual \
                 machine is not simulated"
                    .to_owned(),
            ),
            Stop::Each(0) | Stop::Round(0) => {
                fault("zero operations a thread were asked for; at least one is needed".to_owned())
            }
            Stop::Precise { half_width, most }
                if !(half_width > 0.0 && half_width < 1.0) || most == 0 =>
            {
                fault(format!(
                    "a half-width of {half_width} within {most} acquisitions was asked for; it must be between 0 and 1, within at least one"
                ))
            }
            Stop::Milliseconds(ms) | Stop::Slices { ms, .. } if !(ms > 0.0 && ms < 1e9) => fault(format!(
                "a simulated time of {ms} ms was asked for; it must be above 0"
            )),
            _ => Ok(hardware),
        }
    }
}

/// An outcome, and a trace if one was requested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulation {
    /// Counts, rates and latencies of the run.
    pub outcome: Outcome,
    /// The trace as JSON for Perfetto.
    pub trace: Option<String>,
}
