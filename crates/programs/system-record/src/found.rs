//! Holds what a recording says, in numbers: waits of a program, or of the kernel, and the share of
//! the time that they took.

use crate::kernel_waits::{KernelUse, kernel_use};
use crate::kinds::EventKind;
use crate::recording::{Events, Source};
use crate::waits::{Waits, waits};
use locklab_document::contention_profile::{Bound, Seen, Times};
use locklab_preload_run::{Runtime, Waiter};
use locklab_trace::is_crowded;

/// Describes what a recording says, and the recording.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) events: Events,
    pub(crate) found: Found,
    /// The runtime of the program, if it has one whose locks are not seen.
    pub(crate) runtime: Option<&'static Runtime>,
    /// The account of all threads, or of the kernel's locks that of all CPU time.
    pub(crate) times: Times,
    /// Says what no lock can exceed.
    pub(crate) bound: Bound,
}

/// Names what was found, by what was recorded.
#[derive(Debug)]
pub(crate) enum Found {
    Program(Waits),
    Kernel(KernelUse),
}

impl Findings {
    pub(crate) fn of(events: Events) -> Self {
        let runtime = runtime(&events);
        let mut seen = Seen {
            lost: lost(&events),
            windows: events.windows().map(|windows| windows.count),
            ..Seen::default()
        };
        let (found, times, windows) = match events.head.source {
            Source::System => {
                let mut found = waits(&events);
                let waits = |waiter| runtime.is_some_and(|runtime| runtime.waiter == waiter);
                let times = found.times(waits(Waiter::Condition));
                seen.blind = waits(Waiter::Task) || found.yields;
                seen.cpus_ns = events.head.cpus as f64 * events.recorded();
                let used = found.ran as f64 / events.recorded().max(1.0);
                let others = events.head.others.unwrap_or(0.0);
                seen.crowded = is_crowded([used, others], events.head.cpus);
                seen.samples = found.ran as f64 / EventKind::SAMPLE as f64;
                let windows = std::mem::take(&mut found.windows);
                (Found::Program(found), times, windows)
            }
            Source::Kernel => {
                let mut found = kernel_use(&events);
                let windows = std::mem::take(&mut found.windows);
                let mut times = Times::default();
                windows.iter().for_each(|window| times.add(window));
                (Found::Kernel(found), times, windows)
            }
        };
        Self {
            bound: Bound::of(&times, &windows, seen),
            events,
            found,
            runtime,
            times,
        }
    }

    /// Returns the share of events that were lost.
    pub(crate) fn lost(&self) -> f64 {
        lost(&self.events)
    }
}

/// Returns the runtime of the program, by its files or by the functions of its stacks.
fn runtime(events: &Events) -> Option<&'static Runtime> {
    let named = events.head.runtime.as_deref().and_then(Runtime::named);
    named.or_else(|| {
        let of = |function: &crate::recording::Function| {
            Runtime::of_function(&function.0).or_else(|| Runtime::of_name(&function.2))
        };
        events.functions.iter().find_map(of)
    })
}

fn lost(events: &Events) -> f64 {
    let lost = events.head.lost as f64;
    lost / (lost + events.events.len() as f64).max(1.0)
}
