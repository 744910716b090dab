//! This machine as an [`Instrument`]: what stays the same from run to run.

use super::round_trip::{Around, measure_all};
use super::run::{Order, Stopped};
use super::work::Calibration;
use super::{round_trip, subject};
use crate::matrix::{Run, Spec, Work};
use crate::matrix_run::Instrument;
use crate::plan::{Plan, PlannedCell};
use locklab_host::clock;
use locklab_host::environment::Environment;
use locklab_host::machine::Machine;
use locklab_host::topology::{Topology, pin_to, ranges};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::AtomicBool;

/// What is found out about this machine before anything is planned.
#[derive(Clone, Debug)]
pub struct Native {
    /// Its settings before the first run.
    pub environment: Environment,
    /// Its CPUs.
    pub topology: Topology,
    /// Who it is.
    pub machine: Machine,
    /// Of a unit of work.
    pub calibration: Calibration,
    /// Of a look at the clock, in ns.
    pub clock_cost: f64,
    /// CPUs that threads could not be bound to.
    pub unpinnable: Vec<usize>,
}

impl Native {
    /// Looks at this machine, for about 20 ms, and tells the locks whether
    /// it is virtual.
    #[must_use]
    pub fn probe() -> Self {
        let environment = Environment::read();
        let topology = Topology::read();
        let machine = Machine::new(&environment, &topology.order);
        locklab_locks::Threads::set_virtualized(environment.is_virtual());
        // On a thread of its own, because it binds itself to CPUs.
        let order = topology.order.clone();
        let (unpinnable, calibration) = std::thread::spawn(move || {
            let unpinnable: Vec<usize> = order.iter().copied().filter(|c| !pin_to(*c)).collect();
            if let Some(first) = order.first() {
                pin_to(*first);
            }
            (unpinnable, Calibration::measure())
        })
        .join()
        .unwrap_or_else(|_| (Vec::new(), Calibration::measure()));
        Self {
            clock_cost: clock::cost(),
            environment,
            topology,
            machine,
            calibration,
            unpinnable,
        }
    }

    /// Facts about the set-up, for the head of a report.
    #[must_use]
    pub fn facts(&self, plan: &Plan) -> Vec<(String, String)> {
        let spec = &plan.spec;
        let Calibration { unit_ns, cycle_ns } = self.calibration;
        let line = |name: &str, text: String| (name.to_owned(), text);
        let mut facts = self.environment.facts();
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
                "Placement",
                format!(
                    "cache-line round trip: near to {} ns, mid to {} ns, else far",
                    round_trip::NEAR,
                    round_trip::MID
                ),
            ),
        ]);
        facts
    }

    /// What a reader must know before believing figures of `plan` on this
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
        if !self.unpinnable.is_empty() {
            caveats.push(format!(
                "Threads could not be bound to the CPUs {}; they ran where the kernel put them.",
                ranges(&self.unpinnable)
            ));
        }
        if spec.latency {
            caveats.push(format!(
                "Each latency includes one look at the clock, {:.0} ns, and each turn two.",
                self.clock_cost
            ));
        }
        caveats
    }

    /// Ready to run the cells of `plan`.
    ///
    /// # Errors
    /// The files that fstat needs could not be made.
    pub fn bench<'a>(
        &self,
        plan: &'a Plan,
        interrupt: &'a AtomicBool,
    ) -> Result<Bench<'a>, String> {
        let most = plan.spec.threads.iter().max().copied().unwrap_or(0);
        let files: Vec<File> = match plan.spec.work {
            Work::Units => Vec::new(),
            Work::Fstat => (0..most)
                .map(|_| tempfile::tempfile())
                .collect::<Result<_, _>>()
                .map_err(|e| {
                    format!(
                        "cannot make {most} files in {} for fstat: {e}; set TMPDIR or ask for \
                         fewer threads",
                        std::env::temp_dir().display()
                    )
                })?,
        };
        Ok(Bench {
            descriptors: files.iter().map(AsRawFd::as_raw_fd).collect(),
            _files: files,
            spec: &plan.spec,
            cpus: &plan.cpus,
            clock_cost: self.clock_cost,
            interrupt,
        })
    }
}

/// Runs cells of one plan.
pub struct Bench<'a> {
    spec: &'a Spec,
    cpus: &'a [usize],
    descriptors: Vec<RawFd>,
    /// Open as long as their descriptors are used.
    _files: Vec<File>,
    clock_cost: f64,
    interrupt: &'a AtomicBool,
}

impl Instrument for Bench<'_> {
    fn run(&mut self, lock: &str, cell: &PlannedCell) -> Result<(Run, Around), Stopped> {
        let order = Order {
            threads: cell.point.threads,
            processes: self.spec.processes,
            cpus: self.cpus,
            work: self.spec.work,
            critical: cell.critical,
            non_critical: cell.non_critical,
            files: &self.descriptors,
            warm_up: self.spec.warm_up,
            run: self.spec.run,
            latency: self.spec.latency,
            clock_cost: self.clock_cost,
            interrupt: self.interrupt,
        };
        let before = measure_all(&cell.links);
        let run = subject::visit(lock, &order)
            .ok_or_else(|| Stopped::Fatal(format!("there is no lock called '{lock}'")))??;
        let after = measure_all(&cell.links);
        Ok((run, Around { before, after }))
    }
}
