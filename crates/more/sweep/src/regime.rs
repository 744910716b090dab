//! Regimes of contention: the cells of one regime are summarised together.

use crate::plan::{Block, Plan};
use locklab_sim::{FigureKey, Fstat, Machine};
use locklab_workload::Work;
use serde::Serialize;

/// A regime of contention, from none to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Regime {
    /// One thread, so that nothing contends.
    Alone,
    /// Several threads that together hold the lock for less than the whole time.
    Light,
    /// Threads of one socket that together want the lock for more than the whole
    /// time.
    Saturated,
    /// Means the same, with threads on several sockets.
    AcrossSockets,
    /// There are more threads than physical CPUs.
    Oversubscribed,
}

impl Regime {
    /// Every one, in order.
    pub(crate) const ALL: [Self; 5] = [
        Self::Alone,
        Self::Light,
        Self::Saturated,
        Self::AcrossSockets,
        Self::Oversubscribed,
    ];

    /// Returns its name in reports.
    #[must_use]
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Light => "light",
            Self::Saturated => "saturated",
            Self::AcrossSockets => "across sockets",
            Self::Oversubscribed => "oversubscribed",
        }
    }

    /// Holds what the names mean, for a report.
    pub(crate) const MEANING: &'static str = "A cell with one thread is of the regime alone. It is light if several \
         threads together hold the lock for less than the whole time: threads x critical / \
         (critical + non-critical) is below 1, with the lock's own time left out. It is saturated \
         if that is 1 or more and the threads are on one socket, and across sockets if they are \
         on several. It is oversubscribed if there are more threads than physical CPUs.";

    /// Returns the regime of one cell of a plan.
    #[must_use]
    pub(crate) fn of(plan: &Plan, block: &Block, place: locklab_workload::Place) -> Self {
        let machine = &plan.machines[block.machine];
        let workload = &plan.file.workloads[block.workload];
        let [threads, critical, non_critical, locks] = place;
        let physical = workload
            .physical
            .unwrap_or_else(|| machine.hardware_threads());
        if threads == 1 {
            Self::Alone
        } else if threads > physical as u64 {
            Self::Oversubscribed
        } else if load(workload.work, threads, critical, non_critical) < locks as f64 {
            Self::Light
        } else if threads > a_socket(machine) {
            Self::AcrossSockets
        } else {
            Self::Saturated
        }
    }
}

/// Returns the demand for the lock as a multiple of the whole time, if the lock itself took
/// no time.
fn load(work: Work, threads: u64, critical: u64, non_critical: u64) -> f64 {
    let (inside, outside) = match work {
        // A length of n is n + 1 units.
        Work::Units => (critical as f64 + 1.0, non_critical as f64 + 1.0),
        Work::Fstat => {
            let call = Fstat::default();
            (call.inside_ns, call.outside_ns)
        }
    };
    threads as f64 * inside / (inside + outside)
}

/// Returns the number of hardware threads of one socket.
fn a_socket(machine: &Machine) -> u64 {
    let sockets = machine.get(FigureKey::TopologySockets).max(1.0);
    (machine.hardware_threads() as f64 / sockets) as u64
}
