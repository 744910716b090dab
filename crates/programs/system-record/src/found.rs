//! Holds what a recording says, in numbers: waits of a program, or of the kernel, and the share of
//! the time that they took.

use crate::bound::{Interval, interval};
use crate::kernel_waits::{KernelUse, kernel_use};
use crate::recording::{Events, Source};
use crate::waits::{Waits, waits};

/// Describes what a recording says, and the recording.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) events: Events,
    pub(crate) found: Found,
    /// The share of the time with work that waiting for locks took, or of the kernel's
    /// locks that of all CPU time.
    pub(crate) share: Interval,
}

/// Names what was found, by what was recorded.
#[derive(Debug)]
pub(crate) enum Found {
    Program(Waits),
    Kernel(KernelUse),
}

impl Findings {
    pub(crate) fn of(events: Events) -> Self {
        let lost = lost(&events);
        let (found, share) = match events.head.source {
            Source::System => {
                let found = waits(&events);
                let share = interval(&found.windows, lost);
                (Found::Program(found), share)
            }
            Source::Kernel => {
                let found = kernel_use(&events);
                let share = interval(&found.windows, lost);
                (Found::Kernel(found), share)
            }
        };
        Self {
            events,
            found,
            share,
        }
    }

    /// Returns a bound: no lock can make the program more than so many times as fast.
    pub(crate) fn limit(&self, found: &Waits) -> f64 {
        let without = 1.0 / (1.0 - self.share.high).max(0.001);
        let work = found.ran.saturating_sub(found.woke + found.spun).max(1);
        let cpus = self.events.head.cpus as f64 * self.events.recorded() / work as f64;
        without.min(cpus.max(1.0))
    }

    /// Returns the share of events that were lost.
    pub(crate) fn lost(&self) -> f64 {
        lost(&self.events)
    }
}

fn lost(events: &Events) -> f64 {
    let lost = events.head.lost as f64;
    lost / (lost + events.events.len() as f64).max(1.0)
}
