//! Collects what a report says of this machine and of a plan on it: facts for its head,
//! and the caveats for a reader.

use crate::layout::LAYOUTS;
use crate::plan::Plan;
use crate::probe::Native;
use crate::work::Calibration;
use locklab_harness::experiment::Facts;
use locklab_host::topology::{idle_policy, ranges};

/// CPUs that differ by more than this factor are of different kinds; the least of
/// many rounds repeats to within less.
const ANOTHER_KIND: f64 = 1.1;

impl Native {
    /// Returns the facts about the set-up, for the head of a report.
    #[must_use]
    pub fn facts(&self, plan: &Plan) -> Facts {
        let spec = &plan.spec;
        let Calibration { unit_ns, cycle_ns } = self.calibration;
        let line = |name: &str, text: String| (name.to_owned(), text);
        let mut facts = self.environment.facts();
        let turns = spec.cells.words();
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
                    "alternating slices by the same threads, both locks at one address, then at \
                     another; a pair is a block of such slices; {}",
                    match spec.layout {
                        None => format!("{} code layouts in turn", LAYOUTS),
                        Some(layout) => format!("code layout {layout}, as asked"),
                    }
                ),
            ),
        ]);
        facts
    }

    /// Returns the caveats for a reader of figures of `plan` on this
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
        if spec.cells.latency {
            caveats.push(format!(
                "Each latency includes one clock read, {:.0} ns. Latencies and rates are of slices of \
                 their own, so the rates do not include it.",
                self.clock_cost
            ));
        }
        caveats
    }
}
