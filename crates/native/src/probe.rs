//! Probes this machine before anything is planned, and gives the facts
//! for a report.

use crate::disturbance;
use crate::lock_code::LAYOUTS;
use crate::plan::Plan;
use crate::work::Calibration;
use locklab_host::clock;
use locklab_host::environment::Environment;
use locklab_host::machine::Machine;
use locklab_host::topology::{Topology, idle_policy, pin_to, ranges};
use locklab_lab::experiment::Facts;

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
/// CPUs that differ by more than this factor are of different kinds; the least of
/// many rounds repeats to within less.
const ANOTHER_KIND: f64 = 1.1;

/// The time to start a thread on each of these CPUs and to end them, in ns: the
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

    /// Facts about the set-up, for the head of a report.
    #[must_use]
    pub fn facts(&self, plan: &Plan) -> Facts {
        let spec = &plan.spec;
        let Calibration { unit_ns, cycle_ns } = self.calibration;
        let line = |name: &str, text: String| (name.to_owned(), text);
        let mut facts = self.environment.facts();
        let turns = spec.mix.words(&spec.locks);
        if let Some(replay) = &plan.replay {
            facts.extend(replay.facts());
        } else if !turns.is_empty() {
            facts.push(line("Turns", turns.join("; ")));
        }
        facts.extend([
            line(
                "Unit",
                format!(
                    "{unit_ns:.2} ns, {:.1} cycles of {cycle_ns:.3} ns; {:.4} units a ns",
                    unit_ns / cycle_ns,
                    1.0 / unit_ns
                ),
            ),
            line(
                "Pinned to",
                format!(
                    "CPUs {}{}",
                    plan.cpus
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join(","),
                    match (&spec.pin, self.topology.known) {
                        (Some(_), _) => " (as asked)",
                        (None, true) => " (cores, then siblings, then other nodes)",
                        (None, false) => " (no topology in /sys: in the order of the mask)",
                    }
                ),
            ),
            line(
                "Method",
                format!(
                    "alternating slices by the same threads, both locks at one address; a pair is \
                     a block of such slices; another address each block; {}",
                    match spec.layout {
                        None => format!("{} code layouts in turn", LAYOUTS),
                        Some(layout) => format!("code layout {layout}, as asked"),
                    }
                ),
            ),
        ]);
        facts
    }

    /// The caveats for a reader of figures of `plan` on this
    /// machine.
    #[must_use]
    pub fn caveats(&self, plan: &Plan) -> Vec<String> {
        let spec = &plan.spec;
        let mut caveats = self.environment.caveats();
        if plan.cpus.len() == 1 {
            caveats.push(format!(
                "Only CPU {} may be used: no two threads ever run at the same time, so \
                 contention is between threads that wait for their time slices.",
                plan.cpus[0]
            ));
        }
        let fastest = self.speeds.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = self.speeds.iter().copied().fold(0.0, f64::max);
        if slowest > ANOTHER_KIND * fastest {
            caveats.push(format!(
                "The CPUs differ in speed: one took {:.2} times as long for a unit of work as \
                 another. Ratios are over the CPUs in use; --pin chooses them.",
                slowest / fastest
            ));
        }
        if idle_policy() {
            caveats.push(
                "This process has the policy SCHED_IDLE: any other program takes its CPUs. Start \
                 it without chrt --idle."
                    .into(),
            );
        }
        if !self.unpinnable.is_empty() {
            caveats.push(format!(
                "Threads could not be bound to the CPUs {}; they ran where the kernel put them.",
                ranges(&self.unpinnable)
            ));
        }
        if spec.layout.is_some() {
            caveats.push(
                "One code layout was measured: figures include the effect of its alignment.".into(),
            );
        }
        if spec.latency {
            caveats.push(format!(
                "Each latency includes one clock read, {:.0} ns. Latencies and rates are of slices of \
                 their own, so the rates do not include it.",
                self.clock_cost
            ));
        }
        caveats
    }
}
