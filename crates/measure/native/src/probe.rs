//! Probes this machine before anything is planned.

use crate::disturbance;
use crate::work::Calibration;
use locklab_host::clock;
use locklab_host::environment::Environment;
use locklab_host::machine::Machine;
use locklab_host::topology::{Topology, pin_to};

/// The properties of this machine.
#[derive(Clone, Debug)]
pub struct Native {
    /// Its settings before the first run.
    pub environment: Environment,
    /// Its CPUs that this process may use, by socket and core.
    pub topology: Topology,
    /// The identity of the machine.
    pub machine: Machine,
    /// Calibration of a unit of work.
    pub calibration: Calibration,
    /// Cost of one clock read, in ns.
    pub clock_cost: f64,
    /// Time without a CPU, in ns, that the kernel's accounting shows although
    /// nothing was lost.
    pub grain: u64,
    /// The time to start and end threads that are bound to CPUs, in ns: of one, and
    /// of one for each CPU.
    pub start: [u64; 2],
    /// CPUs that threads could not be bound to.
    pub unpinnable: Vec<usize>,
    /// Nanoseconds of one unit on each of some CPUs, the first and the last
    /// among them.
    pub speeds: Vec<f64>,
}

/// The most CPUs whose speed is measured.
const MOST_SPEEDS: usize = 8;
/// Returns the time to start a thread on each of these CPUs and to end them, in ns: the
/// middle one of a few times.
fn start(cpus: &[usize]) -> u64 {
    const TIMES: usize = 5;
    let mut took = [0; TIMES];
    for took in &mut took {
        let began = clock::now();
        std::thread::scope(|scope| {
            for cpu in cpus {
                // Where there is no room for so many threads, the run says so.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || pin_to(*cpu));
            }
        });
        *took = clock::now() - began;
    }
    took.sort_unstable();
    took[TIMES / 2]
}

impl Native {
    /// Probes this machine for some tens of milliseconds, more where it has hundreds
    /// of CPUs, on each of which a thread is started; and sets for the locks whether
    /// it is virtual.
    #[must_use]
    pub fn probe() -> Self {
        let environment = Environment::read();
        let topology = Topology::read();
        let machine = Machine::new(&environment, &topology.order);
        locklab_locks::Threads::set_virtualized(environment.is_virtual());
        // This runs on a thread of its own, because it binds itself to CPUs.
        let order = topology.order.clone();
        let (unpinnable, calibration, grain, speeds) = std::thread::spawn(move || {
            let unpinnable: Vec<usize> = order.iter().copied().filter(|c| !pin_to(*c)).collect();
            if let Some(first) = order.first() {
                pin_to(*first);
            }
            let (calibration, grain) = (Calibration::measure(), disturbance::grain());
            let mut speeds = vec![calibration.unit_ns];
            let step = order.len().div_ceil(MOST_SPEEDS).max(1);
            for cpu in order.iter().skip(1).rev().step_by(step) {
                if pin_to(*cpu) {
                    speeds.push(Calibration::measure().unit_ns);
                }
            }
            (unpinnable, calibration, grain, speeds)
        })
        .join()
        .unwrap_or_else(|_| (Vec::new(), Calibration::measure(), 0, Vec::new()));
        let start = [
            &topology.order[..topology.order.len().min(1)],
            &topology.order,
        ]
        .map(start);
        Self {
            clock_cost: clock::cost(),
            grain,
            start,
            environment,
            topology,
            machine,
            calibration,
            unpinnable,
            speeds,
        }
    }
}
